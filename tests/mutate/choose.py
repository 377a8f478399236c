"""Which faults are tried: lines are drawn, and for each line one of the faults that it can have.

Drawn by lines, code that many operators fit counts no more than other code. Same seed, same tree: same faults.
"""

from __future__ import annotations

import fnmatch
import random
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.mutate.mutant import Mutant, area
from tests.mutate.python import Python
from tests.mutate.templates import Template
from tests.mutate.wiring import Wiring

LOOKED_AT = {
    "python": ("hal_*.py", "plugins/*.py", "roles/*/files/*.py"),
    "yaml": (
        *(f"roles/*/{folder}/*" for folder in ("tasks", "handlers", "defaults", "vars", "meta", "templates")),
        "roles/*/expect.yml",
        "roles/*/firewall.yml",
        "playbooks/*.yml",
        "inventory/hal/group_vars/*.yml",
    ),
}


class Faulty(Protocol):
    """A file whose lines can have faults."""

    def at(self, line: int) -> list[Mutant]:
        """The faults that begin on a line."""


@dataclass(frozen=True)
class Tree:
    """The files of a project that can have faults."""

    root: Path
    files: tuple[str, ...]

    @classmethod
    def of(cls, root: Path) -> Tree:
        """What git has or would take; sorted."""
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        said = subprocess.run(words, cwd=root, capture_output=True, check=True, text=True).stdout
        return cls(root, tuple(sorted(name for name in said.split("\0") if name and (root / name).is_file())))

    def of_language(self, language: str, only_area: str = "") -> list[str]:
        """The files of a language, and of an area if one is named."""
        return [
            name
            for name in self.files
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in LOOKED_AT[language])
            and (not only_area or area(name) == only_area)
            and (language == "python") == name.endswith(".py")
        ]

    def faulty(self, path: str) -> tuple[int, Faulty]:
        """How many lines a file has, and the faults that they can have."""
        text = (self.root / path).read_text()
        kind = Python if path.endswith(".py") else Wiring if path.endswith(".yml") else Template
        return len(text.splitlines()), kind(path, text)


def sample(tree: Tree, language: str, size: int, seed: int, only_area: str = "") -> list[Mutant]:
    """So many faults, in the order drawn: what is tried of them is a sample, too. Fewer if there are no more."""
    draw = random.Random(f"{seed} {language}")
    lines = [
        (name, number)
        for name in tree.of_language(language, only_area)
        for number in range(1, len((tree.root / name).read_text().splitlines()) + 1)
    ]
    draw.shuffle(lines)
    files: dict[str, Faulty] = {}
    found: list[Mutant] = []
    for name, number in lines:
        if len(found) == size:
            break
        if name not in files:
            files[name] = tree.faulty(name)[1]
        if candidates := files[name].at(number):
            found.append(draw.choice(candidates))
    return found


def everything(tree: Tree, language: str, only_area: str = "") -> Iterator[Mutant]:
    """Every fault of every line."""
    for name in tree.of_language(language, only_area):
        count, faulty = tree.faulty(name)
        for number in range(1, count + 1):
            yield from faulty.at(number)


def in_turn(lists: Sequence[Sequence[Mutant]]) -> list[Mutant]:
    """The first of each, the second of each: what time cuts short has some of both."""
    longest = max(map(len, lists), default=0)
    return [one[number] for number in range(longest) for one in lists if number < len(one)]
