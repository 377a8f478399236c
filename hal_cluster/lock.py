"""One at a time, at the controller: the lock that programs of nodes have, hal_node/lock.py."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from hal_node import lock as hal_lock

WAIT_SECONDS = 600
"""Long enough for a rollout with many forks on a busy machine. After that the one who holds it is named."""


def locked(path: Path, problem: Callable[[str], Exception], what: str) -> AbstractContextManager[None]:
    """Hold the lock of a file, which is made where it is missing, for its owner alone.

    ``problem`` makes the error, of one line, when it cannot be had: another holds it for more than WAIT_SECONDS, or
    others than its owner may write to its folder. ``what``: what is locked, in words.
    """
    return hal_lock.locked(str(path), problem, WAIT_SECONDS, what)
