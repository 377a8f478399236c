"""The one printer: tables and colour on a terminal, stable plain columns in a pipe, JSON where it is asked for."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO


@dataclass(frozen=True)
class Table:
    """Rows of text under headings; ``numbers`` are the headings of columns that are aligned to the right."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    numbers: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Facts:
    """Names with their values, one a line."""

    rows: Sequence[tuple[str, str]]
    title: str = ""


@dataclass(frozen=True)
class Tree:
    """A name with what belongs to it."""

    label: str
    children: Sequence[Tree] = ()


@dataclass(frozen=True)
class Answer:
    """What a command has to say: as data for --json, and as parts to show."""

    data: Any
    parts: Sequence[Table | Facts | Tree | str]


def show(answer: Answer, *, as_json: bool, stream: TextIO | None = None) -> None:
    """Print an answer. BrokenPipeError is the caller's."""
    out = stream or sys.stdout
    if as_json:
        out.write(json.dumps(answer.data, indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    elif is_terminal(out):
        _rich(answer, out)
    else:
        out.write("\n\n".join(_plain(part) for part in answer.parts if _plain(part)) + "\n")
    out.flush()


def is_terminal(stream: TextIO) -> bool:
    """Tell whether somebody is looking: a terminal that can do more than print."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _plain(part: Table | Facts | Tree | str) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Facts):
        width = max((len(name) for name, _ in part.rows), default=0)
        return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in part.rows)
    if isinstance(part, Tree):
        return "\n".join(_branch(part, 0))
    columns = [[heading.upper(), *(row[at] for row in part.rows)] for at, heading in enumerate(part.headings)]
    widths = [max(len(cell) for cell in column) for column in columns]
    right = [heading in part.numbers for heading in part.headings]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in zip(*columns, strict=True)
    ]
    return "\n".join(lines)


def _branch(tree: Tree, depth: int) -> list[str]:
    lines = ["  " * depth + tree.label]
    for child in tree.children:
        lines += _branch(child, depth + 1)
    return lines


def _rich(answer: Answer, out: TextIO) -> None:
    from rich import box
    from rich.console import Console, JustifyMethod, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text
    from rich.tree import Tree as RichTree

    def grown(tree: Tree, branch: RichTree) -> RichTree:
        for child in tree.children:
            grown(child, branch.add(Text(child.label)))
        return branch

    def drawn(part: Table | Facts | Tree | str) -> RenderableType:
        if isinstance(part, str):
            return Text(part)
        if isinstance(part, Tree):
            return grown(part, RichTree(Text(part.label, style="bold")))
        if isinstance(part, Facts):
            grid = RichTable.grid(padding=(0, 2))
            grid.add_column(style="cyan", no_wrap=True)
            grid.add_column(overflow="fold")
            for name, value in part.rows:
                grid.add_row(Text(name), Text(value))
            return grid
        table = RichTable(box=box.SIMPLE_HEAD, title=part.title or None, title_justify="left", pad_edge=False)
        for at, heading in enumerate(part.headings):
            last = at == len(part.headings) - 1
            justify: JustifyMethod = "right" if heading in part.numbers else "left"
            table.add_column(heading, justify=justify, overflow="fold", no_wrap=not last)
        for row in part.rows:
            table.add_row(*(Text(cell) for cell in row))
        return table

    console = Console(file=out, highlight=False)
    for at, part in enumerate(answer.parts):
        if at:
            console.print()
        console.print(drawn(part))
