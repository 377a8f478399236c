"""The report of a look before a takeover, for people: a table of roles, then what would change of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hal_cluster.audit import report
from hal_cluster.audit.document import limit
from hal_cluster.audit.findings import UNDECIDED, Finding
from hal_cluster.audit.repairs import is_known
from hal_cluster.audit.takeover import NEW
from hal_inventory.printable import one_line
from hal_inventory.ranges import fold

LEGEND = (
    "SAME: as declared already. NEW: a rollout makes it. OTHER: it is there and differs; a rollout replaces or removes"
    " it. UNKNOWN: it could not be read, which is not fine. PROMISES: those that do not hold now. IN RUN: tasks that"
    " only a run can show."
)
MOST_NAMES = 12
MOST_REASON = 100
COLUMNS = {
    "same": "SAME",
    "new": "NEW",
    "other": "OTHER",
    "unknown": "UNKNOWN",
    "promises": "PROMISES",
    "in_a_run": "IN RUN",
}


def text(document: Mapping[str, Any], *, width: int = report.WIDTH, colour: bool = False) -> str:
    """Return the whole report: a table of roles, then what would change of each, then one line that sums it up."""
    paint = report.Painter(max(40, min(width, report.MOST_WIDTH)), colour)
    findings = [report.readable(Finding.read(finding)) for finding in document["findings"]]
    paint.line("What a rollout would change, least first. Nothing was changed.", "bold")
    paint.line("")
    _table(paint, document["takeover"])
    sections = dict(report.sections(findings))
    for role in document["takeover"]:
        if role["role"] in sections:
            paint.line("")
            _role(paint, role, sections.pop(role["role"]), document)
    for title, groups in sections.items():
        paint.line("")
        paint.headed("on the nodes, and of no role" if title == report.NOBODY else title, "bold")
        for group in groups:
            report.add_finding(paint, group)
    paint.line("")
    paint.wrapped(closing(document), "", {0: "good", 2: "drift"}.get(document["status"], "unknown"))
    return "\n".join(paint.lines) + "\n"


def _table(paint: report.Painter, roles: Sequence[Mapping[str, Any]]) -> None:
    paint.line(f"{'ROLE':<17}" + "".join(f"{head:>{len(head) + 2}}" for head in COLUMNS.values()) + "  NODES", "dim")
    for role in roles:
        cells = "".join(f"{role[name]:>{len(head) + 2}}" for name, head in COLUMNS.items())
        row = f"{role['role']:<17}{cells}  "
        nodes = fold(role["nodes"])
        room = paint.width - len(row)
        paint.line(row + (nodes if len(nodes) <= room else f"{len(role['nodes'])} nodes"))
    paint.line("")
    paint.wrapped(LEGEND, "", "dim")


def _role(
    paint: report.Painter, role: Mapping[str, Any], groups: Sequence[report.Group], document: Mapping[str, Any]
) -> None:
    """Say what would change of a role: what is there and differs in full, the rest by name."""
    paint.headed(str(role["role"]), "bold")
    for group in groups:
        if _listed(group.finding) == "":
            report.add_finding(paint, _brief(group))
    for label in ("new", "not kept", "unknown", "in a run"):
        _names(paint, label, [group for group in groups if _listed(group.finding) == label])
    if not is_known(str(role["role"])):
        return
    for name, meaning in role["permissions"].items():
        paint.paragraph("may need", f"{name}: {meaning}")
    limited = limit(role["nodes"], document["groups"])
    words = f"ansible-playbook {document['options']}playbooks/site.yml --limit {limited} --tags {role['role']} --check"
    paint.labelled("next", report.command(words, paint.width - 4 - report.LABEL), ["name"] * 9)


def _listed(finding: Finding) -> str:
    """Return the label under which a finding is named; "" for one that is shown in full."""
    if finding.kind == UNDECIDED:
        return "in a run"
    if finding.status == "unknown":
        return "unknown"
    if finding.resource.startswith("expectation:"):
        return "not kept"
    return "new" if finding.kind in NEW else ""


def _brief(group: report.Group) -> report.Group:
    """Return a finding without its task and source: the heading names the role, and nobody has rolled it out."""
    return replace(group, finding=replace(group.finding, task="", source="", why="", cause="node"), also=())


def _names(paint: report.Painter, label: str, groups: Sequence[report.Group]) -> None:
    """Add the names of findings, one paragraph for each range of nodes."""
    by_nodes: dict[tuple[str, ...], list[report.Group]] = {}
    for group in groups:
        by_nodes.setdefault(group.hosts, []).append(group)
    for hosts, same in by_nodes.items():
        names = _folded(same) if label == "new" else [_name(group) for group in same]
        more = [f"and {len(names) - MOST_NAMES} more (as JSON: all)"] if len(names) > MOST_NAMES else []
        paint.paragraph(label, f"{fold(hosts)}: " + "; ".join([*names[:MOST_NAMES], *more]))


def _folded(groups: Sequence[report.Group]) -> list[str]:
    """Return the names of what is new. What is inside a new folder is only counted."""
    names = sorted({group.finding.resource.removeprefix("file:") for group in groups})
    inside = Counter(dict.fromkeys(names, 0))
    for name in names:
        above = [other for other in names if name.startswith(f"{other}/")]
        if above:
            inside[above[0]] += 1
            del inside[name]
    return [f"{name} ({number} in it)" if number else name for name, number in inside.items()]


def _name(group: report.Group) -> str:
    finding = group.finding
    why = one_line(finding.summary, MOST_REASON)
    if finding.kind == UNDECIDED:
        return one_line(finding.summary.partition(": ")[2], MOST_REASON * 4)
    if finding.resource.startswith("expectation:"):
        name = ", ".join(group.items) if group.items else finding.resource.partition(f"{finding.role}: ")[2]
        return f"{name} ({why})" if finding.status == "unknown" else name
    return f"{finding.resource.replace(':', ' ', 1)}: {why}"


def closing(document: Mapping[str, Any]) -> str:
    """Return the last line: how much was looked at, and what a rollout would change of it."""
    summary, roles = document["summary"], document["takeover"]
    size = f"{summary['nodes']} node{'' if summary['nodes'] == 1 else 's'}, {summary['seconds']} s"
    total = {name: sum(role[name] for role in roles) for name in ("same", "new", "other", "unknown", "promises")}
    lost = summary["unknown"] - total["unknown"]
    words = (
        f"{total['other']} resources would be replaced or removed, {total['new']} made,"
        f" {total['same']} are as declared; {total['promises']} promises do not hold; {total['unknown'] + lost} unknown"
    )
    return f"Nothing to change: {size}" if document["status"] == 0 else f"{words} ({size})"
