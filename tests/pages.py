"""The commands of the pages: what a reader is told to type, and what he then sees."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PROMPT = re.compile(r"^(?P<prompt>(?:\[[^\]]*\])?[$#]) (?P<typed>\S.*)$")
# A program of ours without a prompt is typed, too.
BARE = re.compile(r"^(?P<prompt>)(?P<typed>(?:hal-(?:audit|environments|inventory|packages)|ansible-playbook) \S.*)$")
FENCE = re.compile(r"^\s*```(?P<kind>\w*)")
SHOWN = ("console", "text")


@dataclass(frozen=True)
class Command:
    """One command of a page, at its line; `prompt` as `$` or `[root@hal05 ~]#`, `said` the lines below it."""

    page: str
    line: int
    prompt: str
    typed: str
    said: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Where it stands, and what it is."""
        return f"{self.page}:{self.line}: {self.typed}"

    @property
    def words(self) -> list[str]:
        """The words as a shell reads them, without the comment."""
        return shlex.split(self.typed, comments=True)


def pages() -> list[Path]:
    """README, CONTRIBUTING, docs/ and the roles' pages."""
    return [
        PROJECT / "README.md",
        PROJECT / "CONTRIBUTING.md",
        *sorted(PROJECT.glob("docs/*.md")),
        *sorted(PROJECT.glob("roles/*/README.md")),
    ]


def commands(page: Path) -> Iterator[Command]:
    """Yield the commands of a page in their order; a line that ends in a backslash goes on."""
    kind, found, typed, said = "", None, "", list[str]()
    name = str(page.relative_to(PROJECT)) if page.is_relative_to(PROJECT) else page.name
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence, start = FENCE.match(line), PROMPT.match(line.strip()) or BARE.match(line)
        if fence or (start and not typed.endswith("\\")):
            if found:
                yield Command(name, found[0], found[1], typed, tuple(said))
            found, typed, said = None, "", []
        if fence:
            kind = "" if kind else fence["kind"] or "none"
        elif kind in SHOWN and start and not typed.endswith("\\"):
            found, typed = (number, start["prompt"]), start["typed"]
        elif found and typed.endswith("\\"):
            typed = f"{typed[:-1].rstrip()} {line.strip()}"
        elif found:
            said.append(line)
