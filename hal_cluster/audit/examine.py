"""The audit of one host at the controller: what to ask the node, and what to make of its answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hal_cluster.audit import accepted, answers, causes, inputs, questions, unmanaged
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Accepted, Finding, expectation, not_managed, unreachable, unreadable
from hal_cluster.audit.plan import Plan
from hal_cluster.audit.store import Store, pack
from hal_cluster.expect import promises
from hal_cluster.expect.prepare import Prepared
from hal_inventory import managed
from hal_inventory.bounded import MIB, BoundError, check, limited, parsed
from hal_inventory.printable import one_line, printable

WATCHED = Path(__file__).parent / "watched.yml"
CHECKS = ("uid_0", "kernel", "packages", "clock")
IN_STEP = (("login", "compute"),)
# Bytes of a node's findings and of all else that is said of it: they are kept with those of all other nodes. A
# thousand findings, a hundred of them with a diff, have 2 MB.
MOST_KEPT = 4 * MIB
MOST_WORD = 100
# The most of one kind that a node counts. Python does not turn a number of some thousand digits into text.
MOST_COUNTED = 10**9
COSTS = ("seconds", "cpu_seconds", "memory_mb")
# What the result keeps of a record beside its status and number.
SEAL = ("digest", "sealed_at", "commit")
# What is added to an answer about a node before its takeover.
NO_RECORD = {"record": {"status": "ok", "used": "none"}, "differences": [], "packages": {}}
_watched: list[dict[str, Any]] = []


@dataclass
class Examination:
    """One host: `arguments` for the module, then `payload` of its answer.

    `planner` works out what roles that do not act here (managed_roles) would manage. `takeover`: no role acts here yet.
    """

    host: str
    loader: Any
    variables: Mapping[str, Any]
    own: Mapping[str, Any]
    only: Sequence[str] = ()
    roles: list[str] = field(default_factory=list)
    prepared: list[Prepared] = field(default_factory=list)
    store: Store | None = None
    copy: bytes = b""
    planner: Callable[[Sequence[str]], Plan] | None = None
    takeover: bool = False
    # Roles that are looked at and do not act on the node.
    aside: list[str] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)

    def arguments(self) -> dict[str, Any]:
        """Return what the module is asked. Raises AuditError for settings that cannot be used."""
        groups = self.variables.get("group_names") or []
        every = questions.ROLES.of(groups, self.loader)
        wanted = [name for name in every if not self.only or name in self.only]
        acting = set() if self.takeover else self._acting(every)
        self.roles = [name for name in wanted if name in acting]
        self.aside = [name for name in wanted if name not in acting]
        self.prepared = questions.prepare(wanted, self.loader, self.variables, self.own)
        self.plan = self.planner(self.aside) if self.planner and self.aside else Plan()
        if not self.takeover:
            self.store = Store(str(self._setting("hal_audit_dir", str, "")))
            self.copy = self.store.copy(self.host)
        left_out = self._list("audit_checks_left_out")
        # What is accepted as of a moment the node still lists, with the time of its last change: unmanaged.py.
        known = (
            []
            if self.only
            else [acceptance.pattern for acceptance in self._accepted(accepted.PATHS) if not acceptance.as_of]
        )
        return {
            "node": self.host,
            "record": pack(self.copy) if self.copy else "",
            "questions": [promise.question for promise in self.prepared if promise.question is not None],
            "roles": list(self.only),
            "watched": [] if self.only else self._watched(known),
            "accepted": known,
            "checks": [] if self.only else [name for name in CHECKS if name not in left_out],
            **unmanaged.asked(bool(self.only) or self.takeover, self.variables.get("audit_deep")),
            **self.plan.arguments(),
        }

    def payload(self, answer: Mapping[str, Any], declared: Any = None) -> dict[str, Any]:
        """Return what the callback takes over; `declared` is redeclare's function for this host.

        An answer that cannot be used becomes a finding.
        """
        try:
            check(answer)
            return self._of(answer, declared)
        except BoundError as error:
            return self._lost(unreadable(self.host, f"it answered {error}"))
        except (ValueError, OverflowError, KeyError, TypeError, AttributeError) as error:
            words = f"the module's answer cannot be used: {type(error).__name__}: {error}"
            return self._lost(unreadable(self.host, words))

    def _of(self, answer: Mapping[str, Any], declared: Any) -> dict[str, Any]:
        problem = answers.problem_of(answer)
        if problem or answer.get("failed"):
            reason = promises.no_answer(answer) if answer.get("failed") or answer.get("msg") else problem
            return self._lost(unreadable(self.host, reason))
        sent = [promise for promise in self.prepared if promise.question is not None]
        replies = answer["answers"]
        if len(replies) != len(sent):
            words = f"{len(sent)} expectations were sent, {len(replies)} answers came back"
            return self._lost(unreadable(self.host, words))
        of_record = {**answer, **NO_RECORD} if self.takeover else answer
        findings = answers.of_answer(
            *(self.host, of_record, self._expectations(replies), self._accepted("audit_packages_accepted")),
            partial=bool(self.only),
        )
        if not self.roles:  # nothing of ours belongs there, so neither does a record
            findings = [finding for finding in findings if finding.kind != "no-record"]
        record = of_record["record"]
        findings = self._with_planned(findings, answer)
        findings += self._kept(record)
        findings += self._declared(record, declared)
        once = accepted.over(self._list(accepted.PATHS), accepted.PATHS, self.host)
        findings = unmanaged.added(findings, self.host, answer, self._accepted(accepted.PATHS), once)
        asked = {
            expectation({"role": promise.role, "id": promise.id}): promise.question or {} for promise in self.prepared
        }
        findings = causes.followed(findings, asked)
        if not self.takeover:
            findings = [not_managed(finding) if finding.role in self.aside else finding for finding in findings]
        counts = answer["counts"]
        node = {
            "roles": self.roles,
            **({"planned": self.plan.counted(), "in_a_run": self.plan.tasks_in_a_run()} if self.aside else {}),
            "resources": _number(counts.get("resources")),
            "expectations": sum(
                promise.status != "skipped" or promise.question is not None for promise in self.prepared
            ),
            "watched_files": _number(counts.get("watched_files")),
            **{name: None if answer.get(name) is None else _cost(answer[name]) for name in COSTS},
            "record": {
                "status": _word(record.get("status") or ""),
                "serial": None if record.get("serial") is None else int(record["serial"]),
                **{name: None if record.get(name) is None else _word(record[name]) for name in SEAL},
            },
            "software": {str(name): str(version) for name, version in (answer.get("software") or {}).items()},
        }
        return self._payload(findings, node)

    def unreachable(self, reason: str) -> dict[str, Any]:
        """Return the payload of a node that did not answer."""
        return self._lost(unreachable(self.host, reason))

    def unreadable(self, reason: str) -> dict[str, Any]:
        """Return the payload of a node that could not be asked."""
        return self._lost(unreadable(self.host, reason))

    def _lost(self, finding: Finding) -> dict[str, Any]:
        return self._payload([finding], {"roles": self.roles})

    def _payload(self, findings: Sequence[Finding], node: Mapping[str, Any]) -> dict[str, Any]:
        groups = set(self.variables.get("group_names") or [])
        steps = self._setting("audit_in_step", list, [list(step) for step in IN_STEP])
        kept = {"node": dict(node), "findings": [finding.document() for finding in findings]}
        limited(json.dumps(kept), MOST_KEPT)
        return {
            **kept,
            "in_step": [step for step in steps if groups.intersection(step)],
            "audit_dir": str(self.store.folder) if self.store else "",
            "only": list(self.only),
            **({"takeover": True} if self.takeover else {}),
        }

    def _with_planned(self, findings: list[Finding], answer: Mapping[str, Any]) -> list[Finding]:
        """Return the findings, and what a rollout of the roles that do not act here would change."""
        said = {(finding.resource, finding.kind, finding.attribute) for finding in findings}
        planned = answers.planned(self.host, answer, self.plan.certain)
        return [
            *findings,
            *(finding for finding in planned if (finding.resource, finding.kind, finding.attribute) not in said),
            *self.plan.untold(self.host),
        ]

    def _acting(self, every: Sequence[str]) -> set[str]:
        """Return the roles that act on the node: all of its own, or those of managed_roles."""
        if managed.VARIABLE not in self.variables:
            return set(every)
        value = questions.templated(self.variables[managed.VARIABLE], self.loader, self.variables)
        if wrong := managed.problem(value):
            raise AuditError(wrong)
        return set(value)

    def _expectations(self, answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        results = promises.results(self.prepared, answers)
        return [{**result, "finding": promise.finding} for promise, result in zip(self.prepared, results, strict=True)]

    def _kept(self, record: Mapping[str, Any]) -> list[Finding]:
        """Keep a newer record of the node as the controller's copy: another controller may have rolled it out."""
        packed = record.get("packed")
        if record.get("status") != "ok" or not packed or self.store is None:
            return []
        try:
            self.copy = self.store.keep_record(self.host, str(packed), str(record.get("digest")))
        except (AuditError, OSError) as error:
            return [Finding(self.host, "record", "record:node", "unknown", summary=str(error))]
        return []

    def _declared(self, record: Mapping[str, Any], declared: Any) -> list[Finding]:
        """Return what the project declares now and did not when the record was made."""
        if declared is None or record.get("used") == "none" or not self.copy or self.store is None:
            return []
        try:
            document = parsed(self.copy)
            recorded, entries = document["roles"], document["entries"]
            known = inputs.Variables(self.variables)
            key = self.store.key()
            folders = questions.ROLES.folders(self.loader)
            changed = [
                name
                for name in self.roles
                if name in recorded
                and _inputs_of(recorded[name]) != {inputs.inputs_hash(folders[name], known, key, INPUTS)}
            ]
            every = questions.ROLES.of(self.variables.get("group_names") or [], self.loader)
            return list(declared(self, changed, every, recorded, entries))
        except (ValueError, KeyError, TypeError, AttributeError, OSError, AuditError) as error:
            words = f"what is declared now could not be compared with the record: {type(error).__name__}: {error}"
            return [Finding(self.host, "record", "record:node", "unknown", summary=one_line(words))]

    def _watched(self, known: Sequence[str]) -> list[dict[str, Any]]:
        watched = [*default_watched(), *self._list("audit_watched_extra")]
        for folder in watched:
            if not isinstance(folder, Mapping) or not folder.get("path"):
                raise AuditError("audit_watched_extra: each needs a path, and may have names, accepted and what")
        return [{**folder, "accepted": [*(folder.get("accepted") or []), *known]} for folder in watched]

    def _accepted(self, name: str) -> list[Accepted]:
        return accepted.in_force(self._list(name), name, self.host)

    def _list(self, name: str) -> list[Any]:
        value: list[Any] = self._setting(name, list, [])
        return value

    def _setting(self, name: str, kind: type, default: Any) -> Any:
        raw = self.variables.get(name, default)
        value = questions.templated(raw, self.loader, self.variables)
        if not isinstance(value, kind) or (kind is str and not value):
            raise AuditError(f"{name} has to be a {'list' if kind is list else 'text'}")
        return value


INPUTS = inputs.Roles()


def _word(said: Any) -> str:
    return printable(str(said), MOST_WORD)


def _number(counted: Any) -> int:
    """Return how many of something were looked at; ValueError for what cannot be a number of things."""
    number = int(counted or 0)
    if not 0 <= number <= MOST_COUNTED:
        raise ValueError(f"{number} things were looked at")
    return number


def _cost(said: Any) -> float:
    """Return what it took; ValueError for a number that JSON does not have."""
    number = float(said)
    if not math.isfinite(number):
        raise ValueError(f"it took {number}")
    return number


def _inputs_of(role: Mapping[str, Any]) -> set[Any]:
    """What a role was rolled out with: once as a whole, and perhaps in part by a later run that failed."""
    return {role.get(name) for name in ("inputs_hash", "begun") if name == "inputs_hash" or name in role}


def default_watched() -> list[dict[str, Any]]:
    """Return the folders of watched.yml, read once."""
    if not _watched:
        _watched.extend(yaml.safe_load(WATCHED.read_text(encoding="utf-8")))
    return _watched


def warm_up(loader: Any, variables: Mapping[str, Any]) -> None:
    """Read roles and compile templates before workers are forked: what one host needs, most others need, too."""
    questions.ROLES.read_all(loader)
    default_watched()
    questions.prepare(questions.ROLES.of(variables.get("group_names") or [], loader), loader, variables, {})
    known = inputs.Variables(variables)
    for folder in questions.ROLES.folders(loader).values():
        inputs.inputs_hash(folder, known, b"", INPUTS)
