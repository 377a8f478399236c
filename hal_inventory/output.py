"""The one printer: tables and colour on a terminal, stable plain columns in a pipe, JSON on request.

Others may have chosen what it prints: a node's record has the node's own words. So all of it is made printable here.
Nothing is cut, because programs read it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TextIO, TypeAlias

from hal_inventory.printable import json_text, lines, printable


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


Part: TypeAlias = Table | Facts | Tree | str


@dataclass(frozen=True)
class Answer:
    """What a command has to say: as data for --json, and as parts to show."""

    data: Any
    parts: Sequence[Part]


def show(answer: Answer, *, as_json: bool, stream: TextIO | None = None) -> None:
    """Print an answer. BrokenPipeError is the caller's."""
    out = stream or sys.stdout
    if as_json:
        out.write(json_text(answer.data) + "\n")
    elif is_terminal(out):
        _rich([_printable(part) for part in answer.parts], out)
    else:
        parts = [_plain(_printable(part)) for part in answer.parts]
        out.write("\n\n".join(part for part in parts if part) + "\n")
    out.flush()


def is_terminal(stream: TextIO) -> bool:
    """Tell whether somebody is looking: the stream is a terminal that can do more than print."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _printable(part: Part) -> Part:
    """Return a part with every text in it printable; a cell is one line."""
    if isinstance(part, str):
        return lines(part, None)
    if isinstance(part, Facts):
        return replace(part, rows=[(printable(name, None), printable(value, None)) for name, value in part.rows])
    if isinstance(part, Tree):
        return _printable_tree(part)
    return replace(part, rows=[[printable(cell, None) for cell in row] for row in part.rows])


def _printable_tree(tree: Tree) -> Tree:
    return Tree(printable(tree.label, None), [_printable_tree(child) for child in tree.children])


def _plain(part: Part) -> str:
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


def _rich(parts: Sequence[Part], out: TextIO) -> None:
    from rich import box
    from rich.console import Console, JustifyMethod, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text
    from rich.tree import Tree as RichTree

    def grown(tree: Tree, branch: RichTree) -> RichTree:
        for child in tree.children:
            grown(child, branch.add(Text(child.label)))
        return branch

    def drawn(part: Part) -> RenderableType:
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
    for at, part in enumerate(parts):
        if at:
            console.print()
        console.print(drawn(part))
