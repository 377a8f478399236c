"""Emulated iPXE: what becomes of a script, for the few commands that boot configurations need.

Read from ipxe.org/scripting and ipxe.org/cmd (kernel, initrd, boot, exit, echo), 2026-11; nothing here is its code. A
line that fails ends the script, and a script that ends gives back to the firmware.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Save = Callable[[str], "str | None"]
"""Fetches a URL; returns why it could not be had, None when it was."""


@dataclass(frozen=True)
class Booted:
    """A kernel with its initial file systems and its words."""

    kernel: str
    initrds: tuple[str, ...]
    append: str


@dataclass(frozen=True)
class Exited:
    """The firmware goes on with what is next in its order."""

    why: str


def run(script: str, settings: Mapping[str, str], save: Save, say: Callable[[str], None]) -> Booted | Exited:
    """Run a script. ``settings`` are what ${...} stands for; files are fetched when their line comes."""
    lines = script.splitlines()
    if not lines or not lines[0].startswith("#!ipxe"):
        return Exited("Exec format error: the script does not begin with #!ipxe")
    kernel, append, initrds = "", "", []
    for line in lines[1:]:
        words = _expanded(line, settings).split()
        if not words or words[0].startswith("#"):
            continue
        command, rest = words[0], words[1:]
        if command == "exit":
            return Exited("exit")
        if command == "echo":
            say(" ".join(rest))
        elif command in ("kernel", "initrd"):
            rest = _without_name(rest)
            if not rest:
                return Exited(f"{command}: no image is named")
            say(f"{rest[0]}...")
            if why := save(rest[0]):
                return Exited(f"{rest[0]}: {why}")
            if command == "kernel":
                kernel, append = rest[0], " ".join(rest[1:])
            else:
                initrds.append(rest[0])
        elif command == "boot":
            if not kernel:
                return Exited("boot: no kernel was loaded")
            return Booted(kernel, tuple(initrds), append)
        else:
            return Exited(f"{command}: command not found")
    return Exited("the script ended")


def _expanded(line: str, settings: Mapping[str, str]) -> str:
    return re.sub(r"\$\{([^}]*)\}", lambda reference: settings.get(reference[1], ""), line)


def _without_name(words: list[str]) -> list[str]:
    if words[:1] in (["--name"], ["-n"]):
        return words[2:]
    return words[1:] if words and words[0].startswith("--name=") else words
