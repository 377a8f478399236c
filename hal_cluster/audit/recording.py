"""What a run did on each host, as the host will be told: resources with their owners, and tasks that were reached.

Knows nothing of Ansible: the callback tells it what happened.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hal_cluster.audit.resources import Resource

FORMAT = 1
BETWEEN_TASKS_SECONDS = 1


@dataclass(frozen=True)
class Run:
    """One rollout. Identifiers sort by time."""

    id: str
    commit: str
    started: float

    @classmethod
    def begin(cls, commit: str, now: float) -> Run:
        """A run that begins now."""
        stamp = datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime("%Y%m%dT%H%M%S.%fZ")
        return cls(f"{stamp}-{secrets.token_hex(3)}", commit, now)

    def document(self) -> dict[str, Any]:
        """As it is spooled and sent."""
        return {"id": self.id, "commit": self.commit, "started": round(self.started, 3)}


@dataclass(frozen=True)
class Owner:
    """The task that manages a resource: `task` is its id, which stays when lines move."""

    role: str
    task: str
    source: str


@dataclass
class Entry:
    """A resource with its owner."""

    owner: Owner
    declared: dict[str, Any]
    secret: bool
    units: set[str]
    changed: bool


@dataclass(frozen=True)
class LoadedRole:
    """A role of a play. `whole`: no tag or starting point leaves out any of its tasks.

    `needed`: the tasks that every host goes through if nothing fails.
    """

    folder: str
    tasks: tuple[str, ...]
    whole: bool = True
    needed: frozenset[str] = frozenset()


@dataclass
class Host:
    """What happened on one host."""

    entries: dict[str, Entry] = field(default_factory=dict)
    # Task id: whether all its calls did what they declare.
    tasks: dict[str, bool] = field(default_factory=dict)
    transient: set[str] = field(default_factory=set)
    readers: dict[str, set[str]] = field(default_factory=dict)
    handled: dict[str, None] = field(default_factory=dict)
    windows: list[list[float]] = field(default_factory=list)
    changes: list[list[float]] = field(default_factory=list)
    # Roles that were loaded as a whole, by name; and those of which a task failed.
    roles: dict[str, LoadedRole] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    # Tasks that a rescue replaced, and the tasks of the rescue.
    replaced: set[str] = field(default_factory=set)
    rescue: set[str] = field(default_factory=set)
    folders: dict[str, str] = field(default_factory=dict)
    dirty: bool = False

    @property
    def worth_telling(self) -> bool:
        """False when the host has nothing to learn from this run."""
        return bool(self.entries or self.roles or self.handled)

    def manages(self, owner: Owner, resources: Iterable[Resource], units: Iterable[str], changed: bool) -> None:
        """A task did what it declares. The last owner wins; what several tasks declare adds up."""
        self.dirty = True
        for resource in resources:
            old = self.entries.get(resource.resource)
            declared = dict(resource.declared)
            if old and old.declared.get("state") == declared.get("state", old.declared.get("state")):
                declared = {**old.declared, **declared}
                if not (old.declared.get("content") is False is resource.declared.get("content")):
                    declared.pop("content", None)  # one of them knows what is in it
            entry = Entry(owner, declared, resource.secret, set(units), changed)
            if old:
                entry.secret = entry.secret or old.secret
                entry.units |= old.units
                entry.changed = entry.changed or old.changed
            if entry.secret:
                entry.declared = dict(Resource(resource.resource, declared).without_content().declared)
            self.entries[resource.resource] = entry

    def tried(self, task: str, complete: bool) -> None:
        """A task has ended. One incomplete call is enough not to trust it."""
        self.dirty = True
        self.tasks[task] = complete and self.tasks.get(task, True)

    def skipped(self, task: str, transient: bool) -> None:
        """A task was left out, for a reason of this run (transient) or because the site declares so."""
        self.tried(task, not transient)
        if transient:
            self.transient.add(task)

    def rescued(self, replaced: Iterable[str], rescue: Iterable[str]) -> None:
        """A task failed and its block has a rescue, which must be done instead."""
        self.replaced.update(replaced)
        self.rescue.update(rescue)

    def complete(self, name: str) -> bool:
        """True when the whole role was rolled out, not only a part: a run can end anywhere."""
        role = self.roles[name]
        needed = (role.needed | (self.rescue & set(role.tasks))) - self.replaced
        return role.whole and name not in self.broken and needed <= self.tasks.keys()

    def effective(self, units: Iterable[str]) -> None:
        """Units that now run with their files."""
        self.dirty = True
        self.handled.update(dict.fromkeys(units))

    def reads(self, readers: Mapping[str, Iterable[str]]) -> None:
        """Which units read which file."""
        for resource, units in readers.items():
            self.readers.setdefault(resource, set()).update(units)

    def window(self, begin: float, end: float) -> None:
        """Packages may have been installed between these times."""
        self.windows.append([round(begin, 3), round(end, 3)])

    def change(self, begin: float, end: float) -> None:
        """A task changed something between these times. Times that follow each other closely become one."""
        self.dirty = True
        if self.changes and begin <= self.changes[-1][1] + BETWEEN_TASKS_SECONDS:
            begin = self.changes.pop()[0]
        self.changes.append([round(begin, 3), round(end, 3)])


def spool(node: str, run: Run, host: Host, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return what the node is to be told; `inputs` has the hash of each role's inputs."""
    return {
        "format": FORMAT,
        "node": node,
        "run": {**run.document(), "changes": host.changes},
        # The node accepts the present state only of what this run has changed.
        "entries": [
            {**_entry(resource, entry, host, inputs), "changed": entry.changed}
            for resource, entry in sorted(host.entries.items())
        ],
        "roles": {name: _role(name, role, host, inputs) for name, role in sorted(host.roles.items())},
        "reached": sorted(task for task, complete in host.tasks.items() if complete),
        "skipped": sorted(host.transient),
        "windows": host.windows,
        "handled": list(host.handled),
    }


def proposal(node: str, run: Run, host: Host, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return what check mode showed: what is already as declared, and what is not."""
    entries = {resource: _entry(resource, entry, host, inputs) for resource, entry in sorted(host.entries.items())}
    return {
        "format": FORMAT,
        "node": node,
        "run": run.document(),
        "adoptable": [entry for resource, entry in entries.items() if not host.entries[resource].changed],
        "differs": [entry for resource, entry in entries.items() if host.entries[resource].changed],
        "roles": {name: _role(name, role, host, inputs) for name, role in sorted(host.roles.items())},
    }


def _entry(resource: str, entry: Entry, host: Host, inputs: Mapping[str, str]) -> dict[str, Any]:
    return {
        "resource": resource,
        "declared": entry.declared,
        "role": entry.owner.role,
        "task": entry.owner.task,
        "source": entry.owner.source,
        "secret": entry.secret,
        "units": sorted(entry.units | host.readers.get(resource, set())),
        "inputs_hash": inputs.get(entry.owner.role, ""),
    }


def _role(name: str, role: LoadedRole, host: Host, inputs: Mapping[str, str]) -> dict[str, Any]:
    return {
        "inputs_hash": inputs.get(name, ""),
        "tasks": sorted(set(role.tasks)),
        "complete": host.complete(name),
    }
