"""The ways in which mm commands speak: plain lines, errors, lines for programs (-Y)."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import NoReturn


class Failed(Exception):
    """A command cannot do its work; its text is printed, then that the command failed."""

    def __init__(self, text: str = "", status: int = 1) -> None:
        super().__init__(text)
        self.status = status


def out(text: str = "") -> None:
    """Print a line of the answer."""
    print(text)


def note(text: str) -> None:
    """Print a line beside the answer, on standard error."""
    sys.stdout.flush()
    print(text, file=sys.stderr)


def usage(command: str, text: str) -> NoReturn:
    """End a command that was called wrongly."""
    note(f"{command}: {text}")
    raise Failed


def dated(command: str, text: str) -> None:
    """Print a line that begins with the time, as commands that take long do."""
    out(f"{time.strftime('%a %b %e %H:%M:%S %Z %Y')}: {command}: {text}")


def done(command: str) -> None:
    """Say that the configuration was changed."""
    out(f"{command}: Command successfully completed")
    propagating(command)


def propagating(command: str) -> None:
    """Say that the other nodes learn of it."""
    note(
        f"{command}: Propagating the cluster configuration data to all\n"
        "  affected nodes.  This is an asynchronous process."
    )


def encoded(value: object, also: str = "") -> str:
    """Return a value as it stands between the colons of -Y."""
    text = str(value).replace("%", "%25").replace(":", "%3A")
    for character in also:
        text = text.replace(character, f"%{ord(character):02X}")
    return text


def rows(command: str, section: str, header: Sequence[str], values: Iterable[Sequence[object]], also: str = "") -> None:
    """Print a section of -Y: a line that names the columns, then the rows."""
    out(":".join([command, section, "HEADER", "version", "reserved", "reserved", *header, ""]))
    for row in values:
        out(":".join([command, section, "0", "1", "", "", *(encoded(value, also) for value in row), ""]))


def heading(text: str, line: str = "-") -> None:
    """Print a title with a line of the same length below."""
    out(text)
    out(line * len(text))
