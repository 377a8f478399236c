"""Faults that change nothing anybody could see, as somebody has decided: equivalent.yml, one with its reason each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.mutate.mutant import Mutant

FILE = "tests/mutate/equivalent.yml"


@dataclass(frozen=True)
class Equivalent:
    """One of them: it is known by the lines that it changes, so another line is a fault again."""

    file: str
    hunk: str
    why: str


def load(root: Path) -> list[Equivalent]:
    """What the project's file says; nothing when it has none."""
    text = (root / FILE).read_text() if (root / FILE).is_file() else "[]"
    return [Equivalent(one["file"], one["hunk"].strip("\n"), one["why"]) for one in yaml.safe_load(text)]


def known(mutant: Mutant, among: list[Equivalent]) -> bool:
    """Whether a fault is one of them."""
    return any((one.file, one.hunk) == (mutant.path, mutant.hunk) for one in among)


def gone(among: list[Equivalent], root: Path) -> list[Equivalent]:
    """Those whose lines are not in the file any more."""
    return [one for one in among if not _is_there(one, root / one.file)]


def _is_there(one: Equivalent, path: Path) -> bool:
    taken = [line[1:] for line in one.hunk.splitlines() if line.startswith("-")]
    return path.is_file() and set(taken) <= set(path.read_text().splitlines())
