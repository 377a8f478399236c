"""What is declared now against what was recorded: other values, new resources, and those that nobody declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hal_cluster.audit.findings import Finding, task_title
from hal_cluster.audit.recording import Entry, Owner

# Kinds that a rollout takes away when they are no longer declared. Resources of other kinds stay on the node.
WITHDRAWN = ("repository", "slurm-qos", "slurm-account", "slurm-user", "slurm-reservation")
# The values of these mean nothing to people.
DIGESTS = ("sha1", "sha256", "keyed")
MOST_TASKS = 5


@dataclass(frozen=True)
class Undecided:
    """A task of which only a run shows what it manages, and the reason."""

    owner: Owner
    reason: str


@dataclass
class Declared:
    """What one role declares for one host, as far as it can be told without a run."""

    entries: dict[str, Entry] = field(default_factory=dict)
    certain: set[str] = field(default_factory=set)
    undecided: dict[str, Undecided] = field(default_factory=dict)
    # Ids of all tasks of the role, in whichever file; and of those that were loaded.
    tasks: set[str] = field(default_factory=set)
    loaded: set[str] = field(default_factory=set)
    fault: str = ""

    def add(self, resource: str, entry: Entry, certain: bool) -> None:
        """A task declares this. Several tasks add up, the last one owns it."""
        old = self.entries.get(resource)
        if old and old.declared.get("state") == entry.declared.get("state", old.declared.get("state")):
            entry.declared = {**old.declared, **entry.declared}
        self.entries[resource] = entry
        if certain:
            self.certain.add(resource)


# Which task of any role of the host declares a resource now.
OwnerOf = Callable[[str], "Owner | None"]


def nobody(_resource: str) -> Owner | None:
    """No role declares it."""
    return None


def whole_roles(
    host: str,
    roles: Sequence[str],
    every: Sequence[str],
    recorded: Mapping[str, Any],
    entries: Sequence[Mapping[str, Any]],
    *,
    partial: bool,
    owner_of: OwnerOf = nobody,
) -> Iterator[Finding]:
    """Yield the roles that the host has and its record lacks, and resources of roles that it no longer has."""
    for name in roles:
        if name not in recorded:
            words = f"the role {name} was never rolled out here as a whole"
            yield Finding(host, "not-rolled-out", f"role:{name}", "drift", "declaration", words, role=name)
    for entry in entries if not partial else ():
        if entry["role"] not in every and not entry.get("orphaned"):
            reason = f"the node no longer has the role {entry['role']}"
            yield _left(host, entry, owner_of(str(entry["resource"])), reason)


def compare(
    host: str,
    role: str,
    declared: Declared,
    entries: Sequence[Mapping[str, Any]],
    commit: str,
    owner_of: OwnerOf = nobody,
) -> Iterator[Finding]:
    """Yield what a rollout of the role would change because its declaration has changed."""
    mine = {str(entry["resource"]): entry for entry in entries if entry["role"] == role and not entry.get("orphaned")}
    others = {str(entry["resource"]) for entry in entries if entry["role"] != role}
    undecided = dict(declared.undecided)
    for resource, now in declared.entries.items():
        entry = mine.get(resource)
        if entry is not None:
            yield from _differently(host, entry, now)
            if not _content_is_known(entry, now):
                undecided[now.owner.task] = Undecided(now.owner, f"the content of {resource} is kept out of records")
        elif resource in others:
            continue
        elif resource in declared.certain:
            if now.declared.get("state") != "absent":
                yield _new(host, resource, now)
        else:
            reason = f"whether {resource} is managed depends on the run"
            undecided.setdefault(now.owner.task, Undecided(now.owner, reason))
    for resource, entry in mine.items():
        task = str(entry["task"])
        if resource in declared.entries or task in undecided or declared.fault:
            continue
        if task in declared.tasks and task not in declared.loaded:
            continue  # in a file that is included while running
        gone = "its task no longer manages it" if task in declared.tasks else "its task is gone"
        yield _left(host, entry, owner_of(resource), gone)
    if undecided or declared.fault:
        yield _inputs_changed(host, role, list(undecided.values()), declared.fault, commit)


def _differently(host: str, entry: Mapping[str, Any], now: Entry) -> Iterator[Finding]:
    before = entry.get("declared") or {}
    kind = str(entry["resource"]).partition(":")[0]
    names = [name for name in now.declared if name in before and before[name] != now.declared[name]]
    # Of new attributes only those that do not come from a result.
    names += [name for name in now.declared if name not in before and name not in DIGESTS]
    if kind in WITHDRAWN:
        names += [name for name in before if name not in now.declared]
    for name in names:
        content = name in DIGESTS
        yield Finding(
            *(host, "declared-differently", str(entry["resource"]), "drift", "declaration"),
            "the declared content has changed" if content else f"the declared {name} has changed",
            name,
            now.declared.get(name),
            before.get(name),
            role=now.owner.role,
            task=task_title(now.owner.task),
            source=now.owner.source,
            commit=str(entry.get("commit") or ""),
            since=str(entry.get("converged_at") or ""),
        )


def _content_is_known(entry: Mapping[str, Any], now: Entry) -> bool:
    """False for a file whose content is declared and cannot be in the record."""
    before = entry.get("declared") or {}
    if not str(entry["resource"]).startswith("file:") or now.declared.get("type") != "file":
        return not (now.secret and str(entry["resource"]).startswith("line:"))
    if now.declared.get("content") is False:
        return True
    return any(name in before and name in now.declared for name in DIGESTS)


def _new(host: str, resource: str, now: Entry) -> Finding:
    return Finding(
        *(
            host,
            "not-rolled-out",
            resource,
            "drift",
            "declaration",
            "it is declared now and was not at the last rollout",
        ),
        role=now.owner.role,
        task=task_title(now.owner.task),
        source=now.owner.source,
    )


def _left(host: str, entry: Mapping[str, Any], now: Owner | None, reason: str) -> Finding:
    """What its task gave up: another role has taken it over, or nobody has."""
    if now is None:
        return _orphaned(host, entry, reason)
    return Finding(
        *(host, "declared-differently", str(entry["resource"]), "drift", "declaration"),
        f"the role {now.role} declares it now",
        *("declared by", now.role, str(entry["role"])),
        role=now.role,
        task=task_title(now.task),
        source=now.source,
        commit=str(entry.get("commit") or ""),
        since=str(entry.get("converged_at") or ""),
    )


def _orphaned(host: str, entry: Mapping[str, Any], reason: str) -> Finding:
    return Finding(
        *(host, "orphaned", str(entry["resource"]), "drift", "declaration", f"no task manages it any more: {reason}"),
        role=str(entry["role"]),
        task=task_title(str(entry["task"])),
        source=str(entry.get("source") or ""),
        commit=str(entry.get("commit") or ""),
        since=str(entry.get("converged_at") or ""),
    )


def _inputs_changed(host: str, role: str, undecided: list[Undecided], fault: str, commit: str) -> Finding:
    words = f"inputs of role {role} changed since commit {commit or '(none)'}"
    if fault:
        words += f"; its tasks cannot be loaded: {fault}"
    else:
        names = [f"{task_title(task.owner.task)} ({task.owner.source}: {task.reason})" for task in undecided]
        more = f" and {len(names) - MOST_TASKS} more" if len(names) > MOST_TASKS else ""
        words += f"; only a rollout shows what these tasks declare now: {'; '.join(names[:MOST_TASKS])}{more}"
    return Finding(host, "inputs-changed", f"role:{role}", "unknown", "declaration", words, role=role)
