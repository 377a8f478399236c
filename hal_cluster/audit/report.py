"""The report for people: findings by role, equal ones of many nodes as one, with the command that repairs them.

Findings are made of what nodes say. So their texts are made printable, and cut, before anything else is done with
them, and Painter lets nothing else through.
"""

from __future__ import annotations

import itertools
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len, chop_cells

from hal_cluster.audit.document import limit
from hal_cluster.audit.findings import ASIDE, Finding, quoted, shown
from hal_cluster.audit.repairs import is_known, repair
from hal_cluster.expect.report import PLAIN_REASONS
from hal_inventory.printable import one_line, printable
from hal_inventory.ranges import fold

WIDTH = 80
MOST_WIDTH = 120
MOST_VALUE = 200
MOST_DIFF_LINE = 400
HASHES = ("sha256", "sha1", "keyed")
LABEL = 9
# The indent of a node's text. Commands and labels stand further left, so no text looks like one, however it is broken.
# No line is wider than the terminal, which would put the rest at its left edge.
TEXT = " " * 6
# Fields of a finding that may be of any type; _value() makes words of them.
VALUES = ("should", "is_")
CODES = {"": "", "bold": "1", "drift": "31", "unknown": "33", "good": "32", "dim": "2", "name": "36"}
ITEM = re.compile(r"(expectation:.*) \[(.*)\]", re.DOTALL)
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
OWN_NAME = "(the node's name)"
DECLARED, RECORDED, FOUND = "declared", "recorded", "found"
HEADERS = ("--- recorded", "+++ now")
PLACE = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")
NOBODY = "no role"
NO_ROLE = "(this project has no such role)"
NODES = "nodes"
NOT_MANAGED = "(not managed here: managed_roles)"


@dataclass(frozen=True)
class Group:
    """Findings that differ in nothing but the node."""

    finding: Finding
    hosts: tuple[str, ...]
    commits: tuple[str, ...]
    since: tuple[str, ...]
    also: tuple[str, ...] = ()
    # Items of an expectation's loop, if it does not hold for several of them.
    items: tuple[str, ...] = ()


def text(document: Mapping[str, Any], *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole report, ending in one line that says how it went."""
    paint = Painter(max(40, min(width, MOST_WIDTH)), colour)
    findings = [readable(Finding.read(finding)) for finding in document["findings"]]
    for title, groups in sections(findings):
        paint.line("")
        paint.headed(title, "bold")
        _section(paint, groups, document)
    paint.line("")
    paint.wrapped(closing(document), "", _mood(document))
    return "\n".join(paint.lines).lstrip("\n") + "\n"


def readable(finding: Finding) -> Finding:
    """Return a finding whose texts are one line each, and bounded. Units are left: repair() judges them as they are."""
    every = {name: value for name, value in vars(finding).items() if name not in VALUES}
    texts: dict[str, Any] = {name: one_line(value) for name, value in every.items() if isinstance(value, str)}
    return replace(finding, **texts, diff=tuple(printable(line, MOST_DIFF_LINE) for line in finding.diff))


def sections(findings: Iterable[Finding]) -> list[tuple[str, list[Group]]]:
    """Return (title, groups): roles by name, then what no role has, then nodes that could not be looked at."""
    titled: dict[tuple[int, str], list[Group]] = {}
    for group in fold_findings(findings):
        finding = group.finding
        role = finding.role if is_known(finding.role) else f"{quoted(finding.role)} {NO_ROLE}"
        title = (
            (0, role) if finding.role else (2, NODES) if finding.resource in ("node", "record:node") else (1, NOBODY)
        )
        title = (3, f"{role} {NOT_MANAGED}") if finding.cause == "not-managed" else title
        titled.setdefault(title, []).append(group)
    return [(title, groups) for (_, title), groups in sorted(titled.items())]


def fold_findings(findings: Iterable[Finding]) -> list[Group]:
    """Put equal findings together. An expectation that fails because a resource differs stands with that resource."""
    every = list(findings)
    owned = {(finding.host, finding.resource) for finding in every if not finding.follows}
    alone = [finding for finding in every if not (finding.follows and (finding.host, finding.follows) in owned)]
    followers: dict[tuple[str, str], set[str]] = {}
    for finding in every:
        if finding.follows:
            followers.setdefault((finding.host, finding.follows), set()).add(finding.resource.partition(":")[2])
    gathered: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in alone:
        gathered.setdefault(_key(finding), []).append(finding)
    groups = []
    told: set[tuple[tuple[str, ...], str]] = set()
    for same in gathered.values():
        first = same[0]
        hosts = tuple(sorted({finding.host for finding in same if finding.host}))
        also = {name for finding in same for name in followers.get((finding.host, finding.resource), ())}
        if (hosts, first.resource) in told:  # said with the first of several findings of a resource
            also = set()
        told.add((hosts, first.resource))
        if len(hosts) > 1:  # equal but for the name
            should, is_ = (
                OWN_NAME if first.host and value == first.host else value for value in (first.should, first.is_)
            )
            first = replace(first, should=should, is_=is_)
        commits = tuple(sorted({finding.commit for finding in same if finding.commit}))
        since = tuple(sorted({finding.since for finding in same if finding.since}))
        groups.append(Group(first, hosts, commits, since, tuple(sorted(also))))
    return list(_loops(groups))


def _loops(groups: Iterable[Group]) -> Iterator[Group]:
    """Put items of one loop together that fail on the same nodes for the same entry."""
    gathered: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        match = ITEM.fullmatch(group.finding.resource)
        key = (match[1], group.finding.source, group.finding.status, group.hosts) if match else (id(group),)
        gathered.setdefault(key, []).append(group)
    for same in gathered.values():
        if len(same) == 1:
            yield same[0]
            continue
        items = tuple(ITEM.sub(r"\2", group.finding.resource) for group in same)
        whole = replace(same[0].finding, resource=ITEM.sub(r"\1", same[0].finding.resource))
        yield replace(same[0], finding=whole, items=items)


def closing(document: Mapping[str, Any]) -> str:
    """Return the last line: how much was looked at, and what came of it."""
    summary = document["summary"]
    nodes = summary["nodes"]
    size = ", ".join(
        [
            f"{nodes} node{'' if nodes == 1 else 's'}",
            f"{summary['resources']:,} resources",
            f"{summary['expectations']:,} expectations",
            f"{summary['seconds']} s",
        ]
    )
    parts = []
    findings = [Finding.read(finding) for finding in document["findings"]]
    for status, word in (("drift", "difference"), ("unknown", "unknown")):
        same = [finding for finding in findings if finding.status == status and finding.severity != "warning"]
        hosts = sorted({finding.host for finding in same if finding.host})
        plural = "s" if len(same) != 1 and status == "drift" else ""
        if same:
            parts.append(f"{len(same)} {word}{plural}" + (f" on {fold(hosts)}" if hosts else ""))
    if summary["warnings"]:
        parts.append(f"{summary['warnings']} warning{'' if summary['warnings'] == 1 else 's'}")
    if summary.get("aside"):
        parts.append(f"{summary['aside']} not managed here")
    if document["status"] == 0:
        return f"Clean: {size}" + "".join(f", {part}" for part in parts)
    return f"{'Drift' if document['status'] == 2 else 'Not everything was seen'}: {', '.join(parts)} ({size})"


class Painter:
    """Lines of text, wrapped, with colour if somebody is looking."""

    def __init__(self, width: int, colour: bool) -> None:
        """Nothing yet."""
        self.lines: list[str] = []
        self.width = width
        self.colour = colour

    def line(self, words: str, style: str = "") -> None:
        """Add a line as it is."""
        self.lines.append(self.painted(words, style))

    def painted(self, words: str, style: str) -> str:
        """The words in their colour. Nothing in them drives the terminal: all lines come through here."""
        words, code = printable(words, None), CODES[style] if self.colour else ""
        return f"\033[{code}m{words}\033[0m" if code and words else words

    def wrapped(self, words: str, indent: str, style: str = "") -> None:
        """Add a text over as many lines as it needs."""
        for line in _wrap(words, self.width - len(indent)):
            self.line(f"{indent}{line}", style)

    def headed(self, words: str, style: str) -> None:
        """Add a text that begins at the left edge, and goes on at the indent of a node's text."""
        for number, line in enumerate(_wrap(words, self.width - len(TEXT))):
            self.line(f"{TEXT if number else ''}{line}", style)

    def labelled(self, label: str, lines: Iterable[str], styles: Iterable[str] = ()) -> None:
        """Add lines beside a label."""
        margin = " " * 4
        given = iter(styles)
        for number, line in enumerate(lines):
            head = f"{label if number == 0 else '':<{LABEL}}"
            self.lines.append(f"{margin}{self.painted(head, 'dim')}{self.painted(line, next(given, ''))}".rstrip())

    def paragraph(self, label: str, words: str, style: str = "") -> None:
        """Add a wrapped text beside a label."""
        lines = _wrap(words, self.width - 4 - LABEL)
        self.labelled(label, lines, [style] * len(lines))


def command(words: str, width: int) -> list[str]:
    """Break a command where a shell takes it: between words, before an option."""
    lines: list[str] = []
    for part in _parts(shlex.split(words)):
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(part if not lines else f"  {part}")
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def _parts(argv: Sequence[str]) -> list[str]:
    """Return the words of a command as a shell takes them; those that belong on one line are one text."""
    parts: list[str] = []
    for number, word in enumerate(argv):
        nodes = argv[0] == "ansible" and number == len(argv) - 1
        if not parts or nodes or word.startswith("-"):
            parts.append(shlex.quote(word))
        else:
            parts[-1] += f" {shlex.quote(word)}"
    return parts


def _section(paint: Painter, groups: Sequence[Group], document: Mapping[str, Any]) -> None:
    if all(group.finding.status == ASIDE for group in groups):
        for group in groups:
            add_finding(paint, group)
        return
    repairs: dict[str, set[str]] = {}
    usual = next((group.finding.role for group in groups), "")
    for group in groups:
        add_finding(paint, group)
        finding = group.finding
        if _by_rollout(finding):
            repairs.setdefault(usual, set()).update(group.hosts)
        else:
            _repair(paint, repair(finding, limit(group.hosts, document["groups"]), document["options"]))
    for role, hosts in repairs.items():
        rollout = Finding("", "changed", "", role=role)
        paint.lines.append(f"  {paint.painted('repair:', 'dim')}")
        for line in command(repair(rollout, limit(hosts, document["groups"]), document["options"]), paint.width - 4):
            paint.line(f"    {line}", "name")


def _by_rollout(finding: Finding) -> bool:
    """True for what a rollout of the role repairs, said once at the end of the role's section."""
    return is_known(finding.role) and repair(finding, "x", "") == repair(
        Finding("", "changed", "", role=finding.role), "x", ""
    )


def add_finding(paint: Painter, group: Group) -> None:
    """Add a finding with its nodes, what is declared and what was found, and the task that owns it."""
    finding = group.finding
    nodes = fold(group.hosts) if group.hosts else ""
    subject = "" if finding.resource in ("node", "record:node") else finding.resource
    kind, _, name = subject.partition(":")
    name = name.removeprefix(f"{finding.role}: ")
    title = f"{kind.replace('-', ' ')} {name}" if name and kind not in ("check", "expectation") else name
    summary = ", ".join(group.items) if group.items else _summary(finding)
    words = ": ".join(part for part in (title, summary) if part)
    head = f"  {nodes}  " if nodes else "  "
    style = "unknown" if finding.status == "unknown" or finding.severity == "warning" else "drift"
    style = "dim" if finding.status == ASIDE else style
    lines = _wrap(words, paint.width - len(TEXT))
    if lines and cell_len(f"{head}{words}") <= paint.width:
        paint.lines.append(f"{paint.painted(head, 'name')}{paint.painted(words, style)}")
    else:
        paint.line(head.rstrip(), "name")
        paint.wrapped(words, TEXT, style)
    if not group.items:
        _values(paint, finding)
    if finding.why and finding.why != finding.summary:
        paint.paragraph("because", finding.why)
    if group.also:
        paint.paragraph("so also", "; ".join(group.also))
    owner = ", ".join(part for part in (finding.task, finding.source) if part)
    if owner:
        paint.paragraph("task" if finding.task else "from", owner)
    history = [f"commit {', '.join(group.commits)}"] if group.commits else []
    if group.since:
        history.append(f"{'converged' if finding.role or group.commits else 'last changed'} {_moment(group.since[-1])}")
    if history:
        paint.paragraph("", ", ".join(history), "dim")


def _summary(finding: Finding) -> str:
    words = "" if finding.summary in PLAIN_REASONS and finding.should is not None else finding.summary
    return f"warning: {words}".rstrip(": ") if finding.severity == "warning" else words


def _values(paint: Painter, finding: Finding) -> None:
    if finding.diff:
        _diff(paint, finding)
        return
    if finding.attribute in HASHES:
        return  # a digest tells nobody anything
    should, is_ = finding.should, finding.is_
    if finding.summary not in PLAIN_REASONS and isinstance(should, Mapping) and isinstance(is_, bool):
        return  # the summary says it
    if isinstance(should, Mapping) and finding.resource.startswith("expectation:") and len(should) == 1:
        matcher, wanted = next(iter(should.items()))
        paint.paragraph(_before(finding), f"{matcher.replace('_', ' ')} {_value(wanted)}")
    elif should is not None:
        paint.paragraph(_before(finding), _value(should))
    if is_ is not None:
        paint.paragraph(RECORDED if finding.cause == "declaration" else FOUND, _value(is_))


def _before(finding: Finding) -> str:
    """Return the label of what should be. Nobody declares a file that no role manages, so it is what was recorded."""
    return DECLARED if finding.role or not finding.resource.startswith("file:") else RECORDED


def _diff(paint: Painter, finding: Finding) -> None:
    """Show a unified diff in words: what is declared, what was found, and where."""
    kinds = {"-": (_before(finding), "good"), "+": (FOUND, "drift"), " ": ("", "dim")}
    for (label, style), same in itertools.groupby(_changes(finding.diff), lambda line: kinds.get(line[:1], kinds[" "])):
        parts = [part for line in same for part in _fitting(line[1:], paint.width - 4 - LABEL)]
        paint.labelled(label, parts, [style] * len(parts))


def _changes(lines: Iterable[str]) -> Iterator[str]:
    """Yield a diff's lines with their sign; instead of its headers the line where each part begins."""
    for number, line in enumerate(lines):
        if number < len(HEADERS) and line == HEADERS[number]:
            continue
        place = PLACE.match(line)
        yield f" line {place[1]}:" if place else line if line[:1] in tuple("-+ ") else f" {line}"


def _value(value: Any) -> str:
    words = ", ".join(shown(part) for part in value) if isinstance(value, list) and value else shown(value)
    return words if len(words) <= MOST_VALUE else f"{words[:MOST_VALUE]}..."


def _repair(paint: Painter, words: str) -> None:
    if words.startswith("ansible"):
        paint.labelled("repair", command(words, paint.width - 4 - LABEL), ["name"] * 9)
    elif words:
        paint.paragraph("repair", words)


def _key(finding: Finding) -> tuple[Any, ...]:
    words = ADDRESS.sub("its address", finding.summary) if finding.kind == "unreachable" else finding.summary

    def _alike(value: Any) -> str:
        return OWN_NAME if finding.host and value == finding.host else repr(value)

    words = words.replace(finding.host, "it") if finding.kind == "unreachable" and finding.host else words
    return (
        *(
            finding.kind,
            finding.resource,
            finding.status,
            finding.cause,
            words,
            finding.attribute,
            _alike(finding.should),
            _alike(finding.is_),
        ),
        *(finding.diff, finding.role, finding.task, finding.source, finding.severity, finding.units),
    )


def _wrap(words: str, width: int) -> list[str]:
    lines = textwrap.wrap(words, max(width, 20), break_long_words=False, break_on_hyphens=False) or [""]
    return [part for line in lines for part in _fitting(line, max(width, 20))]


def _fitting(line: str, width: int) -> list[str]:
    """Return a line in parts that fit: letters of some scripts take two columns, others none."""
    return chop_cells(line, width) or [line]


def _moment(stamp: str) -> str:
    return f"{stamp[:10]} {stamp[11:16]} UTC" if re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d.*Z", stamp) else stamp


def _mood(document: Mapping[str, Any]) -> str:
    return {0: "good", 2: "drift"}.get(document["status"], "unknown")
