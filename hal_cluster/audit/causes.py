"""Which finding is there because of another one on the same node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hal_cluster.audit.findings import CONTENT, Finding
from hal_cluster.audit.resources.system import UNIT_TYPES
from hal_cluster.audit.resources.table import READ_BY

UNIT_FILE = re.compile(r"file:/etc/systemd/system/([^/]+?)(?:\.d/.*)?$")


def followed(findings: Iterable[Finding], questions: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Return the findings, with `follows` in those that are there because of what differs on the same node.

    An expectation fails because of the resource it looks at. A mask and a drop-in of a unit are files, too. The first
    cause is named, not one that itself follows from another.

    `questions` has what each expectation asked.
    """
    every = list(findings)
    causes = {finding.resource: finding.follows for finding in every if finding.follows}
    for finding in every:
        if not finding.follows:
            causes.pop(finding.resource, None)
    differing: dict[str, set[str]] = {}
    for finding in every:
        if finding.cause and finding.status == "drift" and finding.resource not in questions:
            differing.setdefault(finding.resource, set()).update({finding.kind, finding.attribute})
    answers = []
    for finding in every:
        resource, read = read_by(questions.get(finding.resource, {}))
        unit = UNIT_FILE.match(finding.resource) if finding.kind == "extra" else None
        if unit:
            resource = f"service:{unit[1]}"
            follows = bool(differing.get(resource, set()) & {"masked", "drop_ins", "enabled", "changed"})
        else:
            follows = finding.status == "drift" and _explains(differing.get(resource, set()), resource, read)
        answers.append(replace(finding, follows=causes.get(resource, resource)) if follows else finding)
    return answers


def read_by(question: Mapping[str, Any]) -> tuple[str, str]:
    """Return (the resource that an expectation looks at, what of it); ("", "") if no task could manage it."""
    for reader, (kind, name) in READ_BY.items():
        request = question.get(reader)
        if isinstance(request, Mapping) and request.get(name):
            text = str(request[name])
            suffix = ".service" if kind == "service" and not text.endswith(UNIT_TYPES) else ""
            return f"{kind}:{text}{suffix}", str(request.get("read") or "content")
    return "", ""


def _explains(differing: set[str], resource: str, read: str) -> bool:
    """Tell whether what differs of a resource is what an expectation looked at."""
    if not resource.startswith("file:") or differing & {"missing", "present", "type", "not-rolled-out", "orphaned"}:
        return bool(differing)
    return bool(differing & (CONTENT if read in ("content", "lines", "sha256", "size") else {read}))
