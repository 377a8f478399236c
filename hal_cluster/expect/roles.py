"""Find a role and its variables without running it. Ansible's own loader reads them, so every form works."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError
from ansible.playbook.role import Role
from ansible.utils.vars import combine_vars, load_extra_vars

from hal_cluster.expect.errors import ExpectationsError
from hal_cluster.expect.templating import CompilingTemplar

Variables = dict[str, Any]


def find_role(name: str, loader: Any, caller: str | None) -> str:
    """Return the folder of a role: beside the playbook, in roles_path, then beside the calling role."""
    folders = [os.path.join(loader.get_basedir(), "roles"), *constants.DEFAULT_ROLES_PATH]
    if caller:
        folders.append(os.path.dirname(caller))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            return os.path.abspath(path)
    raise ExpectationsError(f"there is no role {name} in {', '.join(folders)}")


@dataclass(frozen=True)
class Layers:
    """The variables that a role brings with it: the lowest layer, and one above the host's."""

    folder: str
    defaults: Variables
    fixed: Variables

    def around(self, outer: Mapping[str, Any], own: Mapping[str, Any], extra: Mapping[str, Any]) -> Variables:
        """Return the variables as a task of the role sees them. See `variables_in`."""
        name = os.path.basename(self.folder)
        magic = {"role_name": name, "ansible_role_name": name, "role_path": self.folder}
        variables: Variables = {}
        for layer in (self.defaults, outer, self.fixed, own, extra, magic):
            variables = combine_vars(variables, dict(layer))
        return variables


def templar_in(
    path: str, loader: Any, variables: Mapping[str, Any], kind: type[CompilingTemplar] = CompilingTemplar
) -> CompilingTemplar:
    """Return what renders the data of the role at `path` (expect.yml, firewall.yml, its variables) outside of a play.

    `variables`: as a task of the role sees them (Layers.around). The role's own files are found first, as there.
    """
    templar = kind(loader, variables)
    templar.environment.loader.searchpath = [path, *(variables.get("ansible_search_path") or [])]
    return templar


def layers(path: str, loader: Any) -> Layers:
    """Read the variables of the role at `path`."""
    return Layers(path, *_role_variables(path, loader, ()))


def variables_in(path: str, loader: Any, outer: Mapping[str, Any], own: Mapping[str, Any]) -> Variables:
    """Return the variables as a task of the role at `path` would see them, from outside of it.

    Lowest first: the role's defaults, `outer` (what the calling task sees), the role's vars, `own` (vars of the calling
    task and its blocks), extra vars. Differs from a task in the role in one point: set_fact of a name that is also in
    the role's vars/ cannot be told from an inventory variable here, so the role's vars win.
    """
    return layers(path, loader).around(outer, own, load_extra_vars(loader))


def _role_variables(path: str, loader: Any, above: tuple[str, ...]) -> tuple[Variables, Variables]:
    """Return (defaults, vars) of a role, those of its dependencies below its own, as Ansible has it."""
    defaults: Variables = {}
    fixed: Variables = {}
    for name in _dependencies(path, loader):
        dependency = find_role(name, loader, path)
        if dependency not in above:
            more = _role_variables(dependency, loader, (*above, path))
            defaults, fixed = combine_vars(defaults, more[0]), combine_vars(fixed, more[1])
    return combine_vars(defaults, _load(path, "defaults", loader)), combine_vars(fixed, _load(path, "vars", loader))


def _load(path: str, folder: str, loader: Any) -> Variables:
    role = Role()
    role._loader, role._role_path, role._role_name = loader, path, os.path.basename(path)
    try:
        data = role._load_role_yaml(folder, allow_dir=True)
    except AnsibleError as error:
        raise ExpectationsError(f"{path}/{folder} cannot be loaded: {error}") from error
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        raise ExpectationsError(f"{path}/{folder} has to be a mapping of variables")
    return dict(data)


def _dependencies(path: str, loader: Any) -> list[str]:
    meta = Path(path, "meta", "main.yml")
    if not meta.is_file():
        return []
    data = loader.load_from_file(str(meta)) or {}
    listed = data.get("dependencies") or [] if isinstance(data, Mapping) else []
    names = [item if isinstance(item, str) else item.get("role") or item.get("name") for item in listed]
    return [str(name) for name in names if name]
