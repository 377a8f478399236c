"""Run a command so that nothing of it is left: keeper.py LOG QUIET_SECONDS COMMAND...

Whatever it started and left behind becomes a child of this process, which kills it: at the command's end, at SIGTERM,
and when who started this process is gone. A command that writes nothing for QUIET_SECONDS hangs: it is killed, and the
exit status is 124.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

HUNG = 124
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


def keep(log: Path, quiet_seconds: float, command: list[str]) -> int:
    """The command's exit status, HUNG, or 128 and the number of the signal that ended it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    size, since = 0, time.monotonic()
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _leave)
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)  # orphans too: their ends are waited for by who looks at /proc
            if ended == process.pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if ended:
                continue
            time.sleep(0.05)
            if (now := log.stat().st_size) != size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > quiet_seconds:
                return HUNG
    finally:
        _end_all()


def _leave(number: int, _frame: object) -> NoReturn:
    """Leave by an exception, once: each thread of who started this process may end with a signal of its own."""
    for other in (signal.SIGTERM, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


def _end_all() -> None:
    """Kill every descendant, until there is none: one that is orphaned meanwhile comes here."""
    while family := _descendants(os.getpid()):
        for member in family:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # sudo's: it ends with its terminal
                os.kill(member, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


def _descendants(parent: int) -> list[int]:
    parents = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name, in parentheses, may have blanks; then state and parent (proc(5)).
            parents.append((int(path.parent.name), int(path.read_text(errors="replace").rpartition(")")[2].split()[1])))
    family = [parent]
    for member in family:  # grows while it is read
        family.extend(child for child, above in parents if above == member)
    return family[1:]


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
