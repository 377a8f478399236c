"""What the servers of the emulated BMCs share: one thread that accepts for all of them, and silence."""

from __future__ import annotations

import select
import selectors
import socket
import threading
from collections.abc import Sequence
from typing import Protocol

from bmc.machine import Processor

WAITING = 64  # connections
LOOK_SECONDS = 0.1  # how often a silent one looks whether it is repaired


def listen(address: str, port: int) -> socket.socket:
    """Return a socket that listens; raise OSError when the address or port is not to be had."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((address, port))
        found.listen(WAITING)
    except OSError:
        found.close()
        raise
    return found


class Listening(Protocol):
    """Something that listens."""

    def fileno(self) -> int:
        """The listening socket."""

    def accept(self) -> None:
        """Take the connection that waits, without waiting for anything else."""

    def close(self) -> None:
        """Listen no more."""


def accept_for(listening: Sequence[Listening], ended: int) -> None:
    """Take connections until ``ended`` can be read."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(ended, selectors.EVENT_READ)
        for one in listening:
            waiting.register(one.fileno(), selectors.EVENT_READ, one)
        while True:
            for key, _ in waiting.select():
                if key.data is None:
                    return
                key.data.accept()


def wait_while_silent(processor: Processor, stopping: threading.Event, connection: socket.socket) -> bool:
    """Return whether to answer: False after silence, when the client or the fault has ended."""
    if not processor.own.faults().silent:
        return True
    watch = select.poll()
    watch.register(connection, select.POLLRDHUP | select.POLLHUP | select.POLLERR)
    while not stopping.is_set() and processor.own.faults().silent:
        if watch.poll(LOOK_SECONDS * 1000):
            break
    return False
