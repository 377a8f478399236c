"""Locks that say who is alive: a process holds one as long as it runs, on whichever node, and all nodes see that."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path


def held(path: Path) -> bool:
    """Return whether a process somewhere holds the lock."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def take(path: Path, seconds: float = 2) -> bool:
    """Take the lock for this process and for the program it becomes; False when another holds it for so long."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(handle)
                return False
            time.sleep(0.05)  # somebody only looks
            continue
        os.set_inheritable(handle, True)
        return True
