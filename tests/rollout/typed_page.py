"""A page for users, as somebody reads it who does what it says: files to write, lines to type, what comes of them.

In docs/users.md a block `console` is typed, line by line, and any other block is a file: the comment before it has its
name, <!-- file: NAME -->. Below a typed line is what it says; without such lines it says nothing.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

READER = "alice"
"""Whom the page speaks of."""
JOB = "17"
"""Number of every batch job on the page."""
PROMPT = re.compile(r"(?P<venv>(?:\(\w+\) )?)\[(?P<user>\w+)@(?P<node>[\w-]+) [^\]\n]*\]\$ ")
_FENCE = re.compile(
    r"(?:^[ ]*<!-- file: (?P<file>\S+) -->\n)?^(?P<indent>[ ]*)```(?P<kind>\w+)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
# What is another each time, where the page has one of it.
_VARY = (
    (r"\bhal\d\d\b", r"hal\\d\\d"),
    (r"(?<=job\\ )" + JOB + r"\b", r"\\d+"),
    (r"\b20345\b", r"2\\d{4}"),
    (r"\b\d{4}\\-\d\d\\-\d\d\b", r"\\d{4}-\\d\\d-\\d\\d"),
)


class PageError(Exception):
    """A block that nobody could follow; the line of the page is in the text."""


@dataclass(frozen=True)
class File:
    """What a reader writes into a file of his home."""

    name: str
    content: str


@dataclass
class Line:
    """A line to type, at which prompt, and what the page says that comes of it."""

    number: int
    prompt: re.Match[str]
    text: str
    says: list[str] = field(default_factory=list)

    @property
    def until_interrupted(self) -> bool:
        """Whether it goes on until Ctrl-C."""
        return "Ctrl-C ends it" in self.text


def steps(page: Path) -> Iterator[File | list[Line]]:
    """Give what a reader does, in the page's order: a file, or the lines of a block. PageError for other blocks."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        at = text.count("\n", 0, found.start("kind")) + 1
        body = textwrap.dedent(found["body"])
        if found["kind"] != "console":
            if not found["file"]:
                raise PageError(f"{page.name}:{at}: not a console, and no <!-- file: NAME --> before it")
            yield File(found["file"], body)
            continue
        lines: list[Line] = []
        for number, words in enumerate(body.splitlines(), at + 1):
            prompt = PROMPT.match(words)
            if prompt:
                lines.append(Line(number, prompt, words[prompt.end() :]))
            elif lines:
                lines[-1].says.append(words)
            else:
                raise PageError(f"{page.name}:{number}: does not begin with a prompt: {words}")
        yield lines


def expected(says: Sequence[str], user: str) -> re.Pattern[str]:
    """Return what an output has to be: the page's, with `user` for its reader, and anything where it has `...`.

    A line that is nothing but `...` stands for any number of lines. Blanks count as one.
    """
    made = []
    for line in says:
        if line.strip() == "...":
            made.append(r"(?:[^\n]*\n)*?")
            continue
        words = re.escape(" ".join(line.replace(READER, user).split()))
        for pattern, instead in _VARY:
            words = re.sub(pattern, instead, words)
        made.append(words.replace(r"\.\.\.", "[^\n]*") + "\n")
    return re.compile("".join(made))


def plain(output: str) -> str:
    """Return an output as it is compared: without colours, blanks as one, each line ended."""
    output = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r", "", output)
    return "".join(f"{' '.join(line.split())}\n" for line in output.strip("\n").split("\n") if output.strip("\n"))
