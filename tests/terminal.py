"""A terminal in which somebody types: a program on a pseudo-terminal, read until its prompt comes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Sequence
from types import TracebackType

SECONDS = 300  # for what hangs
ROWS, COLUMNS = 2000, 250  # no pager stops, no line is broken
INTERRUPT = b"\x03"


class TerminalError(Exception):
    """What was waited for did not come; the text has what came instead."""


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Start it."""
        self.fd, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        surroundings = {**os.environ, "TERM": "dumb"}
        self.process = subprocess.Popen(
            argv, stdin=other, stdout=other, stderr=other, start_new_session=True, env=surroundings
        )
        os.close(other)

    def __enter__(self) -> Terminal:
        """Give itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up."""
        self.process.terminate()
        self.process.wait()
        os.close(self.fd)

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self.fd, f"{text}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self.fd, INTERRUPT)

    def read(self, until: re.Pattern[str], seconds: float = SECONDS) -> tuple[str, re.Match[str]]:
        """Return what is said up to the pattern, and its match; TerminalError when it does not come."""
        said, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            try:
                more = os.read(self.fd, 65536)
            except OSError:  # the other side is closed
                more = b""
            if not more:
                raise TerminalError(f"it ended; it said:\n{said.decode(errors='replace')}")
            said += more
            text = said.decode(errors="replace").replace("\r", "")
            found = until.search(text)
            if found:
                return text[: found.start()], found
        raise TerminalError(f"not within {seconds:.0f} s: {until.pattern}; it said:\n{said.decode(errors='replace')}")
