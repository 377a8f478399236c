"""Which resources the roles of a run will manage on a host: names, worked out at the controller before it begins.

A name needs less than a declaration (redeclare.Static): content need not be rendered, and a unit is known although only
the run shows its state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible import context
from ansible.errors import AnsibleError

from hal_cluster.audit import inputs, plays
from hal_cluster.audit.recording import Host
from hal_cluster.audit.redeclare import CannotTellError, Static
from hal_cluster.audit.resources import MANAGING, UNITS, identities
from hal_cluster.audit.store import Store
from hal_cluster.expect.templating import CompilingTemplar
from hal_cluster.rollout import managing, refusals
from hal_inventory.bounded import parsed

PROJECT = Path(__file__).resolve().parents[2]
ACTION = "hal_originals"
CONTENT = frozenset({"block", "content", "text"})
"""Arguments that are content, and do not name anything."""
SENT = frozenset(
    [
        *("state", "type", "content", "version", "file", "value", "source", "fstype", "loaded", "name", "live", "mode"),
        *("uid", "gid", "group", "groups", "home", "shell", "target", "enabled", "masked", "owner"),
    ]
)
"""What the node is told of a declaration: no content, which may be secret."""


@dataclass(frozen=True)
class Wanted:
    """What roles will manage on a host, as the module takes it, and the tasks that cannot be told."""

    resources: list[dict[str, Any]] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)


class Names(Static):
    """One role of one host: what its tasks manage, by name."""

    def _gather(self, task: Any, known_task: plays.Known, variables: dict[str, Any], gathered: Host) -> None:
        known, templar = inputs.Variables(variables), CompilingTemplar(self.play._loader, variables)
        resources = (
            [plays.said(entry) for entry in templar.template(known_task.manages) or []]
            if known_task.manages is not None
            else []
        )
        if known_task.module in MANAGING and known_task.manages != []:
            arguments = self._told(task, known_task, known, templar)
            managed = identities(known_task.module, arguments, {}, task=known_task.owner.task)
            nameless = any(resource.resource.endswith(":") for resource in managed)
            if nameless or (not managed and not resources and not _says_that_nothing(known_task, arguments)):
                raise CannotTellError("only a run shows what it manages")
            said = {resource.resource for resource in resources}
            resources += [resource for resource in managed if resource.resource not in said]
        gathered.manages(known_task.owner, resources, (), False)

    def _told(self, task: Any, known_task: plays.Known, known: inputs.Variables, templar: Any) -> dict[str, Any]:
        """Return the arguments as far as they can be told before the run."""
        told = {}
        for name, value in task.args.items():
            value = without_content(value)
            try:
                self._decidable(known_task, known, value)
                told[name] = templar.template(value)
            except (CannotTellError, AnsibleError):
                if name == "state" and known_task.module in UNITS:
                    told[name] = "started"  # or restarted: a unit is managed
        omit = known.values.get("omit")
        return {name: value for name, value in told.items() if value != omit}


def _says_that_nothing(known_task: plays.Known, arguments: Mapping[str, Any]) -> bool:
    """Return whether a call manages nothing, such as systemd's daemon_reload without a unit."""
    return known_task.module in UNITS and "name" not in arguments


def without_content(value: Any) -> Any:
    """Return the value of an argument with empty content."""
    if isinstance(value, Mapping):
        return {key: "" if key in CONTENT else without_content(part) for key, part in value.items()}
    return [without_content(part) for part in value] if isinstance(value, list) else value


class Playbook:
    """The roles of the running playbook, read once before workers are forked, so that all of them have it."""

    def __init__(self) -> None:
        """Nothing read yet."""
        self._listed: list[refusals.Role] | None = None
        self._roles: list[refusals.Role] | None = None

    def listed(self, loader: Any, manager: Any) -> list[refusals.Role]:
        """Return them as it lists them, maybe none."""
        if self._listed is None:
            self._listed = refusals.roles_of(context.CLIARGS.get("args") or [], loader, manager)
        return self._listed

    def roles(self, loader: Any, manager: Any) -> list[refusals.Role]:
        """Return them; those of the site if it lists none, as validate.yml alone."""
        if self._roles is None:
            site = [str(PROJECT / "playbooks" / "site.yml")]
            self._roles = self.listed(loader, manager) or refusals.roles_of(site, loader, manager)
        return self._roles


RUNNING = Playbook()
TEXTS = inputs.Roles()


def of_host(roles: Iterable[refusals.Role], host: Any) -> list[refusals.Role]:
    """Return the roles that act on the host in this run: within --tags, without those that managed_roles leaves out."""
    return [role for role in roles if role.wanted and host in _acting(role)]


def _acting(role: refusals.Role) -> list[Any]:
    manager = role.play._variable_manager
    return managing.acting(role.name, role.hosts(manager._inventory), manager, role.play._loader)


def unrecorded(roles: Sequence[refusals.Role], variables: Mapping[str, Any], store: Store, copy: bytes) -> list[Any]:
    """Return the roles that were not rolled out as a whole with these inputs, as the copy of the node's record says.

    What the other roles manage is in the record, so it is known to be ours.
    """
    recorded = _recorded(copy)
    known, key = inputs.Variables(variables), store.key()
    return [
        role
        for role in roles
        if recorded.get(role.name, {}).get("inputs_hash")
        != inputs.inputs_hash(role.role.get_role_path(), known, key, TEXTS)
    ]


def _recorded(copy: bytes) -> Mapping[str, Any]:
    """Return the roles of a record; none if it cannot be used, and then the node is asked."""
    try:
        roles = parsed(copy)["roles"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {name: role for name, role in roles.items() if isinstance(role, dict)} if isinstance(roles, dict) else {}


def wanted(roles: Iterable[refusals.Role], host: Any) -> Wanted:
    """Return what these roles will manage on a host."""
    managed = Wanted()
    for role in roles:
        declared = Names(role.play, role.role, host, TEXTS).declared()
        managed.resources.extend(
            _sent(role.name, resource, entry.declared) for resource, entry in declared.entries.items()
        )
        managed.uncovered.extend(
            f"{role.name}: {task.owner.task.rpartition('|')[2]} ({task.owner.source})"
            for task in declared.undecided.values()
        )
    return managed


def _sent(role: str, resource: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "role": role,
        "resource": resource,
        "declared": {name: value for name, value in declared.items() if name in SENT},
    }
