"""What was measured, as a page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.mutate.trial import Verdict

GOALS = {"python": 90, "yaml": 80}
SNAPSHOT = "contract tests, snapshot"  # tests/contract/written: the last of them that is asked
SHOWN_LINES = 8  # of a fault


@dataclass(frozen=True)
class Measured:
    """A run: what was asked for and on what, the faults that were tried, how many there was no time for."""

    command: str
    commit: str
    date: str
    asked: str
    verdicts: Sequence[Verdict]
    not_tried: int
    equivalent: int


def page(run: Measured) -> str:
    """The report. Same run, same text: all of it is sorted."""
    verdicts = sorted(run.verdicts, key=lambda one: (one.mutant.path, one.mutant.line, one.mutant.kind))
    survivors = [one for one in verdicts if not one.by]
    lines = [
        "# What the tests notice",
        "",
        "Small faults are put into a copy of the project, one at a time, and the tests are run. What nothing notices",
        "is a *survivor*: a test is missing there, or the line is not needed. Written by this command; do not edit it:",
        "",
        "```console",
        f"$ {run.command}",
        "```",
        "",
        *textwrap.wrap(
            f"Commit {run.commit}, {run.date}. Asked: {run.asked}. {len(verdicts)} tried, {run.not_tried} not tried "
            f"for want of time, {run.equivalent} left out as [equivalent](../tests/mutate/equivalent.yml).",
            120,
        ),
        "",
        *table("", verdicts, lambda one: one.mutant.language, goals=True),
        "How they were seen: " + ", ".join(f"{name} {count}" for name, count in _by(verdicts)) + ".",
        "",
        "## By area",
        "",
        *table("Area", verdicts, lambda one: one.mutant.area),
        "## By kind",
        "",
        *table("Kind", verdicts, lambda one: f"{one.mutant.language}: {one.mutant.kind}"),
        "## Survivors",
        "",
    ]
    for area in sorted({one.mutant.area for one in survivors}):
        lines += [f"### {area}", ""]
        for one in survivors:
            if one.mutant.area == area:
                lines += ["```diff", f"# {one.mutant.where}: {one.mutant.kind}", *_short(one.mutant.hunk), "```", ""]
    return "\n".join([*lines, *([] if survivors else ["None.", ""])]).rstrip("\n") + "\n"


def table(title: str, verdicts: Iterable[Verdict], of: Callable[[Verdict], str], goals: bool = False) -> list[str]:
    """Tried and seen by what `of` says of each."""
    groups: dict[str, list[Verdict]] = {}
    for one in verdicts:
        groups.setdefault(of(one), []).append(one)
    lines = [f"| {title} | Tried | Seen | |", "| --- | --- | --- | --- |"]
    for name, members in sorted(groups.items()):
        goal = f", goal {GOALS[name]} %" if goals else ""
        lines.append(
            f"| {name} | {len(members)} | {seen(members)} | {100 * seen(members) / len(members):.0f} %{goal} |"
        )
    return [*lines, ""]


def seen(verdicts: Iterable[Verdict]) -> int:
    """How many were seen."""
    return sum(bool(one.by) for one in verdicts)


def _by(verdicts: Iterable[Verdict]) -> list[tuple[str, int]]:
    """What saw how many. A snapshot notices any change, and only who reads its difference knows a fault from a wish."""
    names = [
        SNAPSHOT if one.test.startswith("tests/contract/test_written") else one.by or "by nothing" for one in verdicts
    ]
    return sorted({name: names.count(name) for name in names}.items())


def _short(hunk: str) -> list[str]:
    lines = hunk.splitlines()
    return lines if len(lines) <= SHOWN_LINES else [*lines[:SHOWN_LINES], f"# ... {len(lines) - SHOWN_LINES} more"]
