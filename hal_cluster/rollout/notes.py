"""What a rollout notes of itself at the controller, and the processes that a killed one has left.

A rollout holds its note open and locked. Ansible's workers are forks, so they hold it, too. Programs that they start do
not (close on exec). So a note that nobody holds belongs to a rollout that is over. If a note is held and its first
process is gone, the processes that have it open are what that rollout has left, whatever their names are.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hal_cluster.rollout.processes import PROC, Here, Life, judge, started
from hal_inventory.printable import one_line

TRIES = 100
PAUSE_SECONDS = 0.1


@dataclass
class Note:
    """The note of a rollout that runs here."""

    path: Path
    handle: int

    @classmethod
    def begin(cls, folder: Path, holder: Mapping[str, Any]) -> Note:
        """Write it, 0600 in a folder that is ours alone, and hold it. OSError if that cannot be done."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        temporary = folder / f".new-{holder['run']}"
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, json.dumps(dict(holder), sort_keys=True).encode())
        path = folder / f"{holder['run']}.json"
        os.rename(temporary, path)  # others see it only when it is held
        return cls(path, handle)

    def end(self) -> None:
        """The rollout ended as it should."""
        self.path.unlink(missing_ok=True)
        os.close(self.handle)


def clear_away(folder: Path, here: Here) -> list[str]:
    """End what rollouts that are gone have left here, and remove their notes. Returns what was done, a line each."""
    said = []
    for path in sorted(folder.glob("*.json")):
        try:
            if _held(path):
                said += _end_what_is_left(path, here)
            if not _held(path):
                path.unlink(missing_ok=True)
        except OSError as error:
            said.append(one_line(f"{path}: {error.strerror}"))
    return said


def _end_what_is_left(path: Path, here: Here) -> list[str]:
    try:
        note = json.loads(path.read_bytes())
    except ValueError:
        note = None
    if not isinstance(note, dict) or judge(note, here) is not Life.OVER:
        return []
    ended: set[int] = set()
    for _ in range(TRIES):
        ended.update(pid for pid in list(_holders(path)) if _end(pid, path))
        if not _held(path):
            break
        time.sleep(PAUSE_SECONDS)
    else:
        left = ", ".join(map(str, _holders(path))) or "of another user"
        return [f"a rollout that is gone has left processes here that do not end: {left}"]
    command = one_line(str(note.get("command")), 200)
    return [f"ended {len(ended)} process{'es' * (len(ended) != 1)} that a killed rollout had left: {command}"]


def _end(pid: int, path: Path) -> bool:
    """End a process if, at this moment, it is still ours and has the note open. No other process gets the signal."""
    try:
        handle = os.pidfd_open(pid)  # it names this process and never one that gets its number later
    except ProcessLookupError:
        return False
    except OSError:  # an old kernel
        return _end_by_number(pid, path)
    try:
        if not _has_open(pid, path):
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def _end_by_number(pid: int, path: Path) -> bool:
    before = started(pid)
    if before is None or not _has_open(pid, path) or started(pid) != before:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def _holders(path: Path) -> Iterator[int]:
    for folder in PROC.iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid() and _has_open(int(folder.name), path):
            yield int(folder.name)


def _has_open(pid: int, path: Path) -> bool:
    """Whether a process of our user has a file open."""
    place = PROC / str(pid)
    try:
        if place.stat().st_uid != os.geteuid():
            return False
        seen = path.stat()
        return any(os.path.samestat(handle.stat(), seen) for handle in (place / "fd").iterdir() if _is_open(handle))
    except OSError:
        return False


def _is_open(handle: Path) -> bool:
    try:
        handle.stat()
    except OSError:  # closed meanwhile
        return False
    return True


def _held(path: Path) -> bool:
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look do not disturb each other
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
