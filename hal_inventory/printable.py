"""Text that others chose, for people: nothing in it drives a terminal, begins a line, hides, or goes on for ever.

A node, a BMC, a console, Slurm and a user choose what they say. All that prints it goes through these functions.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

MOST_CHARACTERS = 2000
"""The most of one text: some 25 lines of a terminal. The longest of ours, a promise with its reason, has 400."""

MOST_LINES = 2000
"""The most lines of one text: a console at 115200 baud says less in a minute."""

CUT = "..."

# isprintable() knows controls, bidirectional marks, separators, surrogates, tags and unassigned characters. It takes
# these for letters and marks, although they are invisible, too (Unicode's Default_Ignorable_Code_Point, and Braille's
# blank).
_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def printable(text: str, most: int | None = MOST_CHARACTERS) -> str:
    """Return a text as one line with its blanks as they are. What is invisible is an escape: ``\\x1b``, ``\\u202e``.

    ``most``: more characters than that are cut, and CUT says so; None for text of our own, which programs read.
    A backslash stays as it is, so the four letters ``\\x1b`` look like an escape. That deceives nobody: no command is
    made by this (shlex quotes those), and json_text() is exact for those who need the text back.
    """
    shown = _seen(text if most is None else text[: most + 1], _escape)
    return shown if most is None or len(shown) <= most else f"{shown[: most - len(CUT)]}{CUT}"


def one_line(text: str, most: int | None = MOST_CHARACTERS) -> str:
    """Return a text as printable() does, with one blank wherever there is a blank, a tab or an end of a line."""
    return printable(" ".join(text.split()), most)


def few(texts: Iterable[str], most: int = 12, width: int = 160) -> str:
    """Return texts that others chose as one line: the first, cut to ``width`` characters, and how many more."""
    every = [one_line(text, width) for text in texts]
    more = [f"and {len(every) - most} more"] if len(every) > most else []
    return "; ".join([*every[:most], *more])


def lines(text: str, most: int | None = MOST_CHARACTERS) -> str:
    """Return a text of several lines, each as printable() has it; without an end of line behind the last."""
    every = text.splitlines()
    shown = [printable(line, most) for line in (every if most is None else every[:MOST_LINES])]
    more = len(every) - len(shown)
    return "\n".join([*shown, f"{CUT} {more} more lines"] if more else shown)


def json_text(data: Any) -> str:
    """Return data as JSON for a terminal or a program: the same data, with what is invisible as ``\\u001b``."""
    text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False)
    return "\n".join(_seen(line, _json_escape) for line in text.split("\n"))


def complain(error: object) -> None:
    """Print an error on standard error, its lines as lines."""
    print(lines(str(error)), file=sys.stderr)


def _seen(text: str, escape: Callable[[str], str]) -> str:
    if text.isprintable() and not _HIDDEN.search(text):
        return text
    return "".join(mark if mark.isprintable() and not _HIDDEN.match(mark) else escape(mark) for mark in text)


def _escape(mark: str) -> str:
    return ascii(mark)[1:-1]


def _json_escape(mark: str) -> str:
    return f"\\u{ord(mark):04x}" if ord(mark) <= 0xFFFF else json.dumps(mark)[1:-1]
