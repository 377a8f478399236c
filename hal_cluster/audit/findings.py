"""What an audit has to say: findings, and their exit status. Knows nothing of Ansible."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from hal_inventory.printable import one_line

CLEAN, ERROR, DRIFT, INCOMPLETE = 0, 1, 2, 3
ASIDE = "aside"
UNDECIDED = "undecided"
MOST_ROLE = 80
# What differs of a file when its content does.
CONTENT = {"changed", "sha256", "sha1", "keyed", "size"}
WORDS = {
    "changed": "the content differs",
    "missing": "it is missing",
    "present": "it is there, and should not be",
    "owner": "the owner differs",
    "mode": "the mode differs",
    "type": "it is of another type",
    "target": "the link leads elsewhere",
    "acl": "the access list differs",
    "immutable": "it is marked immutable",
    "version": "the version differs",
    "state": "the state differs",
    "enabled": "whether it starts at boot differs",
    "masked": "whether it is masked differs",
    "drop_ins": "the unit has other drop-ins",
    "saved": "the setting for the next boot differs",
    "live": "the setting in force differs",
    "options": "the options in force differ",
    "not-effective": "what runs does not have it yet",
    "unreadable": "it cannot be read",
    "orphaned": "no task manages it any more",
}


@dataclass(frozen=True)
class Finding:
    """One thing that is not as declared (drift), or could not be seen (unknown). findings.schema.json explains it.

    A third status, aside, is for what is shown and does not count: declarations of roles that do not act on the node.
    """

    host: str
    kind: str
    resource: str
    status: str = "drift"
    cause: str = ""
    summary: str = ""
    attribute: str = ""
    should: Any = None
    is_: Any = None
    diff: tuple[str, ...] = ()
    role: str = ""
    task: str = ""
    source: str = ""
    commit: str = ""
    since: str = ""
    severity: str = "error"
    why: str = ""
    follows: str = ""
    repair: str = ""
    units: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        data = asdict(self)
        data["is"] = data.pop("is_")
        return {**data, "diff": list(self.diff), "units": list(self.units)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Finding:
        """A finding from its document."""
        lists = {name: tuple(data.get(name) or ()) for name in ("diff", "units")}
        known = {**data, "is_": data.get("is"), **lists}
        known.pop("is", None)
        return cls(**known)


@dataclass(frozen=True)
class Accepted:
    """What is right though nobody declares it: a pattern, and why."""

    pattern: str
    reason: str
    # The last day on which that holds, and as of which moment. "" is for ever, and whatever becomes of it.
    until: str = ""
    as_of: str = ""
    # Whether it was missing then.
    missing: bool = False


def exit_status(findings: Iterable[Finding], nodes: int) -> int:
    """Return 0 clean, 2 drift, 3 not everything was seen. Nothing looked at is not clean.

    Promises that are warnings do not count, unless they say what they find (hardware).
    """
    counted = [
        finding
        for finding in findings
        if finding.status != ASIDE and (finding.severity != "warning" or finding.kind != "expectation")
    ]
    if any(finding.status == "drift" for finding in counted):
        return DRIFT
    return INCOMPLETE if counted or not nodes else CLEAN


def order(finding: Finding) -> tuple[Any, ...]:
    """Findings by role: what differs on the node, what is declared otherwise, then promises; each by resource."""
    kind = 2 if finding.resource.startswith("expectation:") else int(finding.cause == "declaration")
    return (finding.role == "", finding.role, kind, finding.resource, finding.kind, finding.attribute, finding.host)


def unreachable(host: str, reason: str) -> Finding:
    """A node that did not answer."""
    return Finding(host, "unreachable", "node", "unknown", summary=one_line(reason))


def unreadable(host: str, reason: str) -> Finding:
    """A node whose answer cannot be used."""
    return Finding(host, "unreadable", "node", "unknown", summary=one_line(reason))


def not_managed(finding: Finding) -> Finding:
    """Return a finding of a role that does not act on the node (managed_roles): it does not count as drift."""
    return replace(finding, status=ASIDE, cause="not-managed")


def expectation(result: Mapping[str, Any]) -> str:
    """Return how the finding of an expectation calls it."""
    return f"expectation:{result['role']}: {result['id']}"


def task_title(identity: str) -> str:
    """Return the name of a task from its id, "<role>|<file>|<name>"."""
    return identity.split("|", 2)[2] if identity.count("|") >= 2 else identity


def quoted(name: str) -> str:
    """Return a name that others chose as messages quote it."""
    return f'"{one_line(name, MOST_ROLE)}"'


def shown(value: Any) -> str:
    """Return a value as one line for people."""
    if isinstance(value, str):
        return one_line(value) if value.strip() else json.dumps(value)
    return one_line(json.dumps(value, ensure_ascii=False, sort_keys=True))
