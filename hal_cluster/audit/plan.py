"""What roles would manage on a node, for the node to compare: nothing is run, and nothing is recorded.

For roles that were never rolled out on a node: all roles before a takeover, and roles that act only on other nodes
(managed_roles).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible.errors import AnsibleError
from ansible.playbook.play import Play

from hal_cluster.audit import plays, redeclare
from hal_cluster.audit.differing import Declared
from hal_cluster.audit.findings import UNDECIDED, Finding, task_title
from hal_cluster.audit.observer import base_folder
from hal_cluster.audit.resources import COMMANDS, MANAGING
from hal_cluster.audit.resources.files import readable_by_others
from hal_cluster.audit.resources.model import Call
from hal_inventory.printable import one_line

KEY_BYTES = 32
MOST_TEXT = 256 * 1024
"""Bytes of a file that is sent for a diff; a node does not show a longer one."""
MOST_TASKS = 10
MOST_WHY = 60


@dataclass(frozen=True)
class Undecided:
    """A task of which only a run shows what it does, if anything. `why` in words."""

    role: str
    title: str
    source: str
    why: str


@dataclass
class Plan:
    """What was worked out for one node. `certain`: resources that every run manages."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    certain: set[str] = field(default_factory=set)
    undecided: list[Undecided] = field(default_factory=list)
    # Role: why its tasks cannot be loaded.
    faults: dict[str, str] = field(default_factory=dict)
    key: bytes = field(default_factory=lambda: secrets.token_bytes(KEY_BYTES))

    def arguments(self) -> dict[str, Any]:
        """Return what the module hal_audit is asked."""
        return {"planned": self.entries, "planned_key": base64.b64encode(self.key).decode()} if self.entries else {}

    def counted(self) -> dict[str, int]:
        """Return how many resources each role declares."""
        return dict(Counter(str(entry["role"]) for entry in self.entries))

    def tasks_in_a_run(self) -> dict[str, int]:
        """Return how many tasks of each role cannot be told before a run."""
        return dict(Counter(task.role for task in self.undecided))

    def untold(self, host: str) -> list[Finding]:
        """Return a finding for each role of which a part cannot be told before a run."""
        findings = [
            Finding(host, UNDECIDED, f"role:{role}", "unknown", "declaration", f"its tasks cannot be loaded: {why}")
            for role, why in self.faults.items()
        ]
        roles = dict.fromkeys(task.role for task in self.undecided)
        for role in roles:
            tasks = [task for task in self.undecided if task.role == role]
            names = [f"{task.title} ({task.source}: {one_line(task.why, MOST_WHY)})" for task in tasks[:MOST_TASKS]]
            more = [f"{len(tasks) - MOST_TASKS} more tasks"] if len(tasks) > MOST_TASKS else []
            words = "only a run shows what these tasks do: " + "; ".join([*names, *more])
            findings.append(Finding(host, UNDECIDED, f"role:{role}", "aside", "declaration", words, role=role))
        return findings

    def add(self, role: str, declared: Declared, contents: Mapping[str, bytes], *, texts: bool) -> None:
        """Take over what a role declares. If several roles declare a resource, the last one owns it, as in a run."""
        if declared.fault:
            self.faults[role] = declared.fault
        for task in declared.undecided.values():
            self.undecided.append(Undecided(role, task_title(task.owner.task), task.owner.source, task.reason))
        mine = [self._entry(name, entry, contents.get(name), texts) for name, entry in declared.entries.items()]
        again = {entry["resource"] for entry in mine}
        self.entries = [entry for entry in self.entries if entry["resource"] not in again] + mine
        self.certain |= declared.certain

    def _entry(self, resource: str, now: Any, content: bytes | None, texts: bool) -> dict[str, Any]:
        declared = dict(now.declared)
        entry = {"role": now.owner.role, "task": now.owner.task, "source": now.owner.source}
        entry |= {"resource": resource, "secret": now.secret, "units": []}
        written = content is not None and resource.startswith("file:") and declared.get("content") is not False
        if content is not None and written and declared.get("state") != "absent":
            if now.secret or not readable_by_others(Call({}, {}), declared):
                digest = hashlib.sha1(content).hexdigest()
                declared.pop("sha1", None)
                declared["sha1_keyed"] = hmac.new(self.key, digest.encode(), hashlib.sha256).hexdigest()
            elif texts and len(content) <= MOST_TEXT and (text := _text(content)) is not None:
                entry["text"] = text
        return {**entry, "declared": declared}


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def planned(task: Any, host: str, roles: Iterable[str], *, texts: bool) -> Plan:
    """Return what these roles would manage on a host. `task` knows the inventory; `texts`: with what diffs need."""
    plan, manager = Plan(), task._variable_manager
    for role in roles:
        try:
            play = redeclare._play(role, host, manager, task._loader)
            static = redeclare.Static(play, play.roles[0], manager._inventory.get_host(host), with_secrets=True)
            plan.add(role, static.declared(), static.contents, texts=texts)
            plan.undecided += commands(play, role)
        except (AnsibleError, OSError) as error:
            plan.faults[role] = redeclare._words(error)
    return plan


def commands(play: Play, role: str) -> Sequence[Undecided]:
    """Return the tasks of a role that change what is not a resource, and those that a run chooses to include."""
    base, undecided = base_folder(), []
    for task in (task for block in play.roles[0]._task_blocks for task in plays.tasks_of(block)):
        known_task = plays.known(task, base)
        if known_task is None or known_task.manages is not None or known_task.module in MANAGING:
            continue
        why = ""
        if known_task.module in plays.DYNAMIC:
            why = "which tasks it takes in"
        elif known_task.module in COMMANDS and not plays.only_looks(known_task, task):
            why = "it runs a program"
        if why:
            undecided.append(Undecided(role, task_title(known_task.owner.task), known_task.owner.source, why))
    return undecided
