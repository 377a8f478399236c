"""Commands on other machines, as the parts of this package need them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hal_cluster.reimage.errors import Trouble
from hal_inventory.bounded import MOST_ANSWER, BoundError, limited

MOST_SAID = 2 * MOST_ANSWER
"""The most bytes that one command prints: manifests of 200 images are 7 MB, 1,000 nodes of scontrol 1 MB."""
_FAREWELL = re.compile(r"^(?:Shared c|C)onnection to \S+ closed\.\r?\n?", re.MULTILINE)
"""What ssh adds after a command that had a terminal, and mitogen after each: the command did not say it."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to: its exit status, and what it wrote."""

    status: int
    out: str = ""
    err: str = ""


def done_of(host: str, status: int, out: bytes | str, err: bytes | str) -> Done:
    """Return what a command on a host came to; Trouble when it printed more than MOST_SAID."""
    try:
        for said in (out, err):
            limited(said, MOST_SAID)
    except BoundError as error:
        raise Trouble(f"{host}: it printed {error}") from None
    return Done(status, _text(out), _FAREWELL.sub("", _text(err)))


def _text(said: bytes | str) -> str:
    return said if isinstance(said, str) else said.decode("utf-8", "replace")


class Run(Protocol):
    """Runs commands as root on one machine. A machine that cannot be reached is Trouble that may pass."""

    def __call__(self, argv: Sequence[str], stdin: bytes = b"", /) -> Done:
        """Run a command, with this on its standard input, and return what it came to, whatever its exit status."""
