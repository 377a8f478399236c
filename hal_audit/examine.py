"""The audit of one host at the controller: what to ask the node, and what to make of its answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hal_audit import findings, inputs, questions
from hal_audit.errors import AuditError
from hal_audit.findings import Accepted, Finding
from hal_audit.store import Store, pack, unpack
from hal_expect import promises
from hal_expect.prepare import Prepared

WATCHED = Path(__file__).parent / "watched.yml"
CHECKS = ("uid_0", "kernel", "packages", "clock")
IN_STEP = (("login", "compute"),)
_watched: list[dict[str, Any]] = []


@dataclass
class Examination:
    """One host: `arguments` for the module, then `payload` of its answer."""

    host: str
    loader: Any
    variables: Mapping[str, Any]
    own: Mapping[str, Any]
    only: Sequence[str] = ()
    roles: list[str] = field(default_factory=list)
    prepared: list[Prepared] = field(default_factory=list)
    store: Store | None = None
    copy: bytes = b""

    def arguments(self) -> dict[str, Any]:
        """Return what the module is asked. Raises AuditError for settings that cannot be used."""
        groups = self.variables.get("group_names") or []
        every = questions.ROLES.of(groups, self.loader)
        self.roles = [name for name in every if not self.only or name in self.only]
        self.prepared = questions.prepare(self.roles, self.loader, self.variables, self.own)
        self.store = Store(str(self._setting("hal_audit_dir", str, "")))
        path = self.store.record(self.host)
        self.copy = path.read_bytes() if path.is_file() else b""
        left_out = self._list("audit_checks_left_out")
        return {
            "node": self.host,
            "record": pack(self.copy) if self.copy else "",
            "questions": [one.question for one in self.prepared if one.question is not None],
            "roles": list(self.only),
            "watched": [] if self.only else self._watched(),
            "checks": [] if self.only else [name for name in CHECKS if name not in left_out],
        }

    def payload(self, answer: Mapping[str, Any], declared: Any = None) -> dict[str, Any]:
        """Return what the callback takes over; `declared` is redeclare's function for this host."""
        problem = findings.problem_of(answer)
        if problem or answer.get("failed"):
            reason = promises.no_answer(answer) if answer.get("failed") or answer.get("msg") else problem
            return self._lost(findings.unreadable(self.host, reason))
        sent = [one for one in self.prepared if one.question is not None]
        answers = answer["answers"]
        if len(answers) != len(sent):
            words = f"{len(sent)} expectations were sent, {len(answers)} answers came back"
            return self._lost(findings.unreadable(self.host, words))
        found = findings.of_answer(
            *(self.host, answer, self._expectations(answers), self._accepted("audit_packages_accepted")),
            partial=bool(self.only),
        )
        record = answer["record"]
        found += self._kept(record)
        found += self._declared(record, declared)
        asked = {findings.expectation({"role": one.role, "id": one.id}): one.question or {} for one in self.prepared}
        found = findings.followed(found, asked)
        counts = answer["counts"]
        node = {
            "roles": self.roles,
            "resources": counts.get("resources", 0),
            "expectations": sum(one.status != "skipped" or one.question is not None for one in self.prepared),
            "watched_files": counts.get("watched_files", 0),
            **{name: answer.get(name) for name in ("seconds", "cpu_seconds", "memory_mb")},
            "record": {name: record.get(name) for name in ("status", "serial", "digest", "sealed_at", "commit")},
            "software": answer.get("software") or {},
        }
        return self._payload(found, node)

    def unreachable(self, reason: str) -> dict[str, Any]:
        """Return the payload of a node that did not answer."""
        return self._lost(findings.unreachable(self.host, reason))

    def unreadable(self, reason: str) -> dict[str, Any]:
        """Return the payload of a node that could not be asked."""
        return self._lost(findings.unreadable(self.host, reason))

    def _lost(self, one: Finding) -> dict[str, Any]:
        return self._payload([one], {"roles": self.roles})

    def _payload(self, found: Sequence[Finding], node: Mapping[str, Any]) -> dict[str, Any]:
        groups = set(self.variables.get("group_names") or [])
        steps = self._setting("audit_in_step", list, [list(one) for one in IN_STEP])
        return {
            "node": dict(node),
            "findings": [one.document() for one in found],
            "in_step": [one for one in steps if groups.intersection(one)],
            "audit_dir": str(self.store.folder) if self.store else "",
        }

    def _expectations(self, answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        results = promises.results(self.prepared, answers)
        return [{**result, "finding": one.finding} for one, result in zip(self.prepared, results, strict=True)]

    def _kept(self, record: Mapping[str, Any]) -> list[Finding]:
        """Keep a newer record of the node as the controller's copy: another controller may have rolled out."""
        packed = record.get("packed")
        if record.get("status") != "ok" or not packed or self.store is None:
            return []
        try:
            self.store.keep_record(self.host, str(packed), str(record.get("digest")))
            self.copy = unpack(str(packed))
        except (AuditError, OSError) as error:
            return [Finding(self.host, "record", "record:node", "unknown", summary=str(error))]
        return []

    def _declared(self, record: Mapping[str, Any], declared: Any) -> list[Finding]:
        """Return what the project declares now and did not when the record was made."""
        if declared is None or record.get("used") == "none" or not self.copy or self.store is None:
            return []
        try:
            document = json.loads(self.copy)
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
            return [Finding(self.host, "record", "record:node", "unknown", summary=" ".join(words.split()))]

    def _watched(self) -> list[dict[str, Any]]:
        accepted = [one.pattern for one in self._accepted("audit_accepted")]
        watched = [*default_watched(), *self._list("audit_watched_extra")]
        for one in watched:
            if not isinstance(one, Mapping) or not one.get("path"):
                raise AuditError("audit_watched_extra: each has a path, and may have names, accepted and what")
        return [{**one, "accepted": [*(one.get("accepted") or []), *accepted]} for one in watched]

    def _accepted(self, name: str) -> list[Accepted]:
        key = "path" if name == "audit_accepted" else "name"
        found = []
        for one in self._list(name):
            if not isinstance(one, Mapping) or not one.get(key) or not one.get("reason"):
                raise AuditError(f"{name}: each needs {key} and reason, this one does not: {one!r}")
            found.append(Accepted(str(one[key]), str(one["reason"])))
        return found

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
