"""Turns for switching on: a rack's breaker carries the inrush of a few machines at once, not of all.

Runs have no common clock but the kernel's, so turns are kept in a file of the controller. They count for all who name
that file: the nodes of one run, and two runs at the same time. NAME.lock is beside it.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from hal_cluster.lock import locked

_BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Turns are times since the controller started: those before its last start mean nothing."""


def next_turn(taken: Sequence[float], now: float, at_once: int, pause_seconds: float) -> float:
    """Return when the next turn is, given those that are taken, in their order: never more than ``at_once`` a pause."""
    if not taken:
        return now
    earliest = max(now, taken[-1])
    return max(earliest, taken[-at_once] + pause_seconds) if len(taken) >= at_once else earliest


@dataclass(frozen=True)
class Turns:
    """``at_once`` machines in any ``pause_seconds``. All who use the same ``file`` keep to the same turns."""

    file: Path
    at_once: int
    pause_seconds: float
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def check(self) -> None:
        """Raise ValueError for a number that cannot be, OSError for a file that cannot be written or locked.

        No turn is taken.
        """
        if self.at_once < 1 or self.pause_seconds < 0:
            raise ValueError(
                f"{self.at_once} at once, {self.pause_seconds:g} s between: give 1 or more, and 0 s or more"
            )
        place = self.file if os.path.lexists(self.file) else self.file.parent
        if self.pause_seconds > 0 and not os.access(place, os.W_OK):
            number = errno.EACCES if place.exists() else errno.ENOENT
            raise OSError(number, os.strerror(number))
        if self.pause_seconds > 0:
            with self._locked():
                pass

    def wait(self) -> None:
        """Take the next turn, and wait for it; raise as ``check`` does."""
        self.check()
        if self.pause_seconds == 0:
            return
        turn = self._take()
        while (left := turn - self.monotonic()) > 0:
            self.sleep(left)

    def _take(self) -> float:
        boot = _BOOT.read_text().strip()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
        with self._locked(), os.fdopen(os.open(self.file, flags, 0o600), "r+") as kept:
            taken = _read(kept.read(), boot)
            turn = next_turn(taken, self.monotonic(), self.at_once, self.pause_seconds)
            kept.seek(0)
            kept.truncate()
            json.dump({"boot": boot, "turns": [*taken, turn][-self.at_once :]}, kept)
        return turn

    def _locked(self) -> AbstractContextManager[None]:
        """Held while a line is written, and not while somebody waits for a turn."""
        lock = self.file.with_name(f"{self.file.name}.lock")
        return locked(lock, lambda words: OSError(errno.EACCES, words), "turns to be switched on")


def _read(text: str, boot: str) -> list[float]:
    """Return the turns that are taken; none if they cannot be read, so that no node stays without power."""
    try:
        said = json.loads(text)
        return sorted(float(turn) for turn in said["turns"]) if said["boot"] == boot else []
    except (ValueError, TypeError, KeyError):
        return []
