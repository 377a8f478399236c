"""Commands on other machines, as the parts of this package need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to: its exit status, and what it wrote."""

    status: int
    out: str = ""
    err: str = ""


class Run(Protocol):
    """Runs commands as root on one machine. A machine that cannot be reached is Trouble that may pass."""

    def __call__(self, argv: Sequence[str], stdin: bytes = b"", /) -> Done:
        """Run a command, with this on its standard input, and return what it came to, whatever its exit status."""
