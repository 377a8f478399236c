"""TAB in a shell: the words that fit at the cursor, for each console script.

The shell calls the program at each TAB, and argcomplete asks the program's own parser. What only an answer needs is
imported when a shell asks for one.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal_inventory.packed import Packed

PROGRAMS = tuple(f"hal-{part}" for part in ("inventory", "audit", "packages", "environments"))
"""The console scripts of pyproject.toml. Whole names would be programs that this file runs (tests/register)."""
SHELLS = ("bash", "zsh")
FILES = ("FILE", "PATH", "SOURCE")
LAST_NAME = re.compile(r"[^ ,:&!()]*$")
"""Of an expression (`gpu and not hal05`) or a pattern (`gpu:!hal05`)."""
Words = Callable[[argparse.Namespace], Iterable[str]]


def script(shell: str) -> str:
    """Return what a shell runs at its start, so that it completes PROGRAMS. `shell`: of SHELLS."""
    from argcomplete.shell_integration import shellcode

    return shellcode(PROGRAMS, shell=shell, complete_arguments=["-o", "nospace"])


def answer(parser: argparse.ArgumentParser, words: Mapping[str, Words] | None = None) -> None:
    """Tell the shell what fits at the cursor, and end. Return if no shell asks.

    `words`: an argument's metavar -> what it may be, given the options before the cursor. NODE, EXPRESSION and the like
    are known to all programs.
    """
    if "_ARGCOMPLETE" not in os.environ:
        return
    from argcomplete.completers import FilesCompleter
    from argcomplete.finders import CompletionFinder

    known = {"NODE": _nodes, "NODES": _nodes, "EXPRESSION": names, "GROUP": names, "PATTERN": names, **(words or {})}

    def completer(prefix: str, action: argparse.Action, parsed_args: argparse.Namespace, **_: object) -> Iterable[str]:
        if action.metavar in known:
            before = LAST_NAME.sub("", prefix)
            return [before + word for word in known[action.metavar](parsed_args)]
        if action.type is Path or action.metavar in FILES:
            return FilesCompleter()(prefix)
        return ()

    find = CompletionFinder()
    find(parser, always_complete_options=False, default_completer=completer)  # type: ignore[arg-type]  # it is called


def names(options: argparse.Namespace) -> list[str]:
    """Return what an expression may name: nodes and groups of the sources. Raises HalError if they cannot be read."""
    from hal_inventory.packed import group_members

    packed = _packed(options)
    return [*(host[0] for host in packed["hosts"]), *group_members(packed)]


def _nodes(options: argparse.Namespace) -> list[str]:
    return [host[0] for host in _packed(options)["hosts"]]


def _packed(options: argparse.Namespace) -> Packed:
    from hal_inventory.compiled import Compiled
    from hal_inventory.script import source_of
    from hal_inventory.settings import configured_sources

    return Compiled(source_of(getattr(options, "sources", None) or configured_sources())).inventory()
