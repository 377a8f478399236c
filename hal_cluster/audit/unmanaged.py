"""Findings of what no role manages: below /etc and /boot, and files of packages that were replaced.

Knows nothing of Ansible. Nothing that a node says here is trusted.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hal_cluster.audit import accepted as acceptances
from hal_cluster.audit.findings import WORDS, Accepted, Finding, task_title, unreadable
from hal_inventory.printable import one_line

KINDS = frozenset({"extra", "changed", "mode", "owner", "type", "target", "missing"})
# A node leaves out the rest, and says how much that was (MOST of hal_node/audit/unmanaged.py and verify.py).
MOST = 200
MOST_LINES = 40
NEW = "it is new since it was recorded"
LATEST = 2**33


def asked(partial: bool, deep: Any) -> dict[str, bool]:
    """Return the arguments of the module. An audit of some roles only looks at nothing that no role manages."""
    wanted = str(deep).lower() in ("true", "yes", "on", "1")
    return {"tree": not partial, "deep": wanted and not partial}


def added(
    findings: Sequence[Finding],
    host: str,
    answer: Mapping[str, Any],
    accepted: Sequence[Accepted],
    over: Sequence[Accepted] = (),
) -> list[Finding]:
    """Return the findings of an answer with those of this module, without what is accepted.

    `over`: acceptances that held once. A finding says if it follows from another one: a file in which a resource has
    its line, and a file that came or went with a package.
    """
    times = {f"file:{entry.get('path')}": _time(entry) for entry in _dicts(answer, "extra")}
    kept = [
        replace(finding, since=_moment(times.get(finding.resource, 0))) if finding.kind == "extra" else finding
        for finding in findings
        if finding.kind != "extra" or not acceptances.covering(accepted, _path(finding), times.get(finding.resource, 0))
    ]
    differing = {finding.resource for finding in findings if finding.status == "drift" and finding.cause == "node"}
    more: list[Finding] = []
    for name, made in (("unmanaged", _unmanaged), ("package_files", _package_file)):
        every = _dicts(answer, name)
        if len(every) > MOST:
            words = f"the module's answer has {len(every)} {name}: more than {MOST}, so it was not read"
            more.append(unreadable(host, words))
            continue
        for entry in every:
            finding = made(host, entry, differing)
            when = None if is_missing(finding) else _time(entry)
            if not acceptances.covering(accepted, _path(finding), when):
                more.append(finding)
    return [_reminding(finding, over) for finding in (*kept, *more)]


def is_missing(finding: Finding) -> bool:
    """Tell whether a finding is that a file went. Nobody knows when: its folder may have changed since."""
    return "missing" in (finding.kind, finding.attribute)


def _reminding(finding: Finding, over: Sequence[Accepted]) -> Finding:
    """A finding that was accepted once says until when, and why."""
    if finding.role or not finding.resource.startswith("file:") or finding.kind not in KINDS:
        return finding
    once = acceptances.covering(
        [Accepted(acceptance.pattern, acceptance.reason, acceptance.until) for acceptance in over], _path(finding)
    )
    if once is None:
        return finding
    words = f"{finding.summary}; it was accepted until {once.until}: {once.reason}"
    return replace(finding, summary=one_line(words))


def _path(finding: Finding) -> str:
    return finding.resource.partition(":")[2]


def _unmanaged(host: str, entry: Mapping[str, Any], differing: set[str]) -> Finding:
    kind = str(entry.get("kind"))
    kind = kind if kind in KINDS else "changed"
    package, note = str(entry.get("package") or ""), str(entry.get("note") or "")
    whose = f"no role manages it; package {package} has it" if package else "no role manages it"
    words = NEW if kind == "extra" else WORDS[kind]
    within = [str(resource) for resource in _list(entry.get("within"))]
    causes = [resource for resource in (*within, f"package:{package}") if resource in differing]
    return Finding(
        *(host, kind, f"file:{entry.get('path')}", "drift", "node"),
        summary=one_line(", ".join(part for part in (words, note) if part) + f": {whose}"),
        attribute=str(entry.get("attribute") or ""),
        should=_lines(entry.get("should")),
        is_=_lines(entry.get("is")),
        since=_moment(_time(entry)),
        follows=causes[0] if causes else "",
    )


def _package_file(host: str, entry: Mapping[str, Any], differing: set[str]) -> Finding:
    package = str(entry.get("package") or "")
    differs = [str(attribute) for attribute in _list(entry.get("differs"))] or ["content"]
    brought = f"as package {package} brought it" if package else "as its package brought it"
    return Finding(
        *(host, "package-file", f"file:{entry.get('path')}", "drift", "node"),
        summary=one_line("it is missing" if differs == ["missing"] else f"it is not {brought}: {', '.join(differs)}"),
        attribute=differs[0],
        role=str(entry.get("role") or ""),
        task=task_title(str(entry.get("task") or "")),
        source=str(entry.get("source") or ""),
        commit=str(entry.get("commit") or ""),
        since=str(entry.get("converged_at") or "") if entry.get("role") else _moment(_time(entry)),
        follows=f"package:{package}" if f"package:{package}" in differing else "",
    )


def _dicts(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return [entry for entry in _list(answer.get(name)) if isinstance(entry, Mapping)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _lines(value: Any) -> Any:
    return list(_bounded(value)) if isinstance(value, list) else value


def _bounded(lines: Sequence[Any]) -> Iterator[str]:
    yield from (str(line) for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"... {len(lines) - MOST_LINES} more"


def _time(entry: Mapping[str, Any]) -> int:
    """Return when something was last changed, 0 if the node does not say so."""
    when = entry.get("when")
    return when if isinstance(when, int) and not isinstance(when, bool) and 0 < when < LATEST else 0


def _moment(when: int) -> str:
    return datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime(acceptances.MOMENT) if when else ""
