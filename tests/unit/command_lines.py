"""A program's command line without the program: its own `main` reads it, and ends before anything is done.

In the words of a Line, `--option=word` and `NAME:word` are required. NAME is not typed: where the word is missing, the
program's refusal has this name.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.unit.interpreters import LAB
from tests.unit.modules import PROJECT, by_path

Given = dict[str, Any]
MODULES: dict[str, ModuleType] = {}


class ReadError(Exception):
    """In place of what the program does next."""

    def __init__(self, given: Given) -> None:
        super().__init__()
        self.given = given


@dataclass(frozen=True)
class Line:
    """What is required on a command line of a program, and all that the program then has from it."""

    program: str
    words: str
    gives: Given

    @property
    def name(self) -> str:
        """For tests: the program and its command."""
        return f"{short(self.program)} {self.gives.get('command') or ''}".strip()

    @property
    def argv(self) -> list[str]:
        return [_plain(word) for word in self.words.split()]

    def lacking(self) -> list[tuple[str, list[str]]]:
        """What has to be missed, and the words without it; without a command also without what follows it."""
        words = self.words.split()
        found = []
        for at, word in enumerate(words):
            name, equals, _ = word.partition("=" if word.startswith("-") else ":")
            if equals:
                rest = words[:at] + ([] if name.lower() == "command" else words[at + 1 :])
                found.append((name, [_plain(one) for one in rest]))
        return found


def _plain(word: str) -> str:
    return word if word.startswith("-") else word.rpartition(":")[2]


def short(program: str) -> str:
    """A name for tests."""
    return Path(program).stem if "/" in program else program.partition(".")[0]


def lacks(lines: list[Line]) -> list[Any]:
    """A test's parameters: a line's program, what is missing, the words that are left."""
    return [
        pytest.param(line.program, name, argv, id=f"{line.name} without {name}")
        for line in lines
        for name, argv in line.lacking()
    ]


def module(program: str) -> Any:
    """The program's module: of a package by its name, of a role by its path in the project."""
    if "/" not in program:
        return importlib.import_module(program)
    if program not in MODULES:
        path = PROJECT / program
        own = [str(path.parent), str(LAB)]  # the program's other parts are beside it
        sys.path[:0] = own
        try:
            MODULES[program] = by_path(path, f"{path.stem}_command_line")
        finally:
            del sys.path[: len(own)]
    return MODULES[program]


def main(program: str, argv: list[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Call it as a shell does."""
    monkeypatch.setattr(sys, "argv", ["program", *argv])
    does = module(program).main
    return does(argv) if inspect.signature(does).parameters else does()


def read(program: str, argv: list[str], monkeypatch: pytest.MonkeyPatch, method: str = "parse_args") -> Given:
    """What the program reads from its command line; a refusal is SystemExit.

    With the method `parse_known_args` also `others`, the words that it leaves to another program.
    """
    real = getattr(argparse.ArgumentParser, method)

    def ended(self: argparse.ArgumentParser, args: list[str] | None = None) -> None:
        found = real(self, args)
        raise ReadError({**vars(found[0]), "others": found[1]} if isinstance(found, tuple) else dict(vars(found)))

    monkeypatch.setattr(argparse.ArgumentParser, method, ended)
    with pytest.raises(ReadError) as done:
        main(program, argv, monkeypatch)
    return done.value.given


def refusal(
    program: str, argv: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: int = 2
) -> str:
    """The sentence that a command line is refused with, which is the last line, after how it is used."""
    with pytest.raises(SystemExit) as ended:
        read(program, argv, monkeypatch)
    assert ended.value.code == status
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()[-1]
