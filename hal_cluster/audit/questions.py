"""The expectations of all roles of a host, ready to be asked there. What does not depend on the host is read once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError
from ansible.utils.vars import load_extra_vars

from hal_cluster.audit.templating import QuickTemplar
from hal_cluster.expect import promises
from hal_cluster.expect.errors import ExpectationsError
from hal_cluster.expect.prepare import Preparation, Prepared
from hal_cluster.expect.roles import Layers, layers, templar_in

FILE = "expect.yml"


@dataclass(frozen=True)
class Role:
    """A role as read from its folder: its entries, or why they cannot be read; its own variables."""

    name: str
    folder: str
    entries: list[Any]
    layers: Layers
    fault: str = ""


class Roles:
    """Every role that promises something. If it is filled before workers are forked, each role is read once."""

    def __init__(self) -> None:
        """Nothing read yet."""
        self._folders: dict[str, str] = {}
        self._searched: tuple[str, ...] = ()
        self._read: dict[str, Role] = {}

    def folders(self, loader: Any) -> Mapping[str, str]:
        """Return name -> folder of the roles beside the playbook and in roles_path; the first of a name counts."""
        places = (os.path.join(loader.get_basedir(), "roles"), *constants.DEFAULT_ROLES_PATH)
        if places != self._searched:
            self._searched = places
            self._folders = {}
            for place in places:
                for path in sorted(Path(place).glob(f"*/{FILE}")):
                    self._folders.setdefault(path.parent.name, str(path.parent.absolute()))
        return self._folders

    def of(self, groups: Iterable[str], loader: Any) -> list[str]:
        """Return the roles of a host: the group that gets a role has the role's name."""
        known = self.folders(loader)
        return sorted(name for name in set(groups) if name in known)

    def role(self, name: str, loader: Any) -> Role:
        """Return a role as it is in its folder."""
        folder = self.folders(loader)[name]
        if folder not in self._read:
            self._read[folder] = _role(name, folder, loader)
        return self._read[folder]

    def read_all(self, loader: Any) -> None:
        """Read all of them now: what is forked later has them."""
        for name in self.folders(loader):
            self.role(name, loader)


ROLES = Roles()


def prepare(
    names: Iterable[str],
    loader: Any,
    outer: Mapping[str, Any],
    own: Mapping[str, Any],
    roles: Roles = ROLES,
    having: str = "id",
) -> list[Prepared]:
    """Return the expectations of these roles that have a field. One is unknown for a role that cannot be read."""
    prepared: list[Prepared] = []
    extra = load_extra_vars(loader)
    for name in names:
        role = roles.role(name, loader)
        path = os.path.join(role.folder, FILE)
        if role.fault:
            prepared.append(promises.fault(name, promises.place(path), role.fault))
            continue
        # A broken entry is not a mapping, and is not left out.
        entries = [entry for entry in role.entries if not isinstance(entry, Mapping) or having in entry]
        if not entries:
            continue
        variables = role.layers.around(outer, own, extra)
        templar = templar_in(role.folder, loader, variables, QuickTemplar)
        prepared.extend(promises.prepare(entries, path, Preparation(templar, loader, variables, name), name))
    return prepared


def _role(name: str, folder: str, loader: Any) -> Role:
    path = os.path.join(folder, FILE)
    try:
        return Role(name, folder, promises.read(path, loader, name), layers(folder, loader))
    except (ExpectationsError, AnsibleError) as error:
        return Role(name, folder, [], Layers(folder, {}, {}), " ".join(str(error).split()))


def templated(value: Any, loader: Any, variables: Mapping[str, Any]) -> Any:
    """Return a setting of the audit as it is for this host."""
    return QuickTemplar(loader, variables).template(value)
