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
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(WAITING)
    except OSError:
        listener.close()
        raise
    return listener


class Listening(Protocol):
    """Something that listens."""

    def fileno(self) -> int:
        """The listening socket."""

    def accept(self) -> None:
        """Take the connection that waits, without waiting for anything else."""

    def close(self) -> None:
        """Listen no more."""


class Talking:
    """Listens at an address, and talks with each client in a thread of its own; how, the subclass says."""

    def __init__(self, address: str, port: int) -> None:
        """Listen; raise OSError when the address or port is not to be had. Port 0 takes a free one."""
        self._socket = listen(address, port)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._socket.getsockname()[1])

    def fileno(self) -> int:
        """The listening socket."""
        return self._socket.fileno()

    def accept(self) -> None:
        """Take a connection."""
        try:
            connection, _ = self._socket.accept()
        except OSError:
            return  # it went away before it was taken
        threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection: socket.socket) -> None:
        """Talk until one of the two ends it."""
        raise NotImplementedError

    def close(self) -> None:
        """Listen no more."""
        self._socket.close()


def accept_for(listening: Sequence[Listening], ended: int) -> None:
    """Take connections until ``ended`` can be read."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(ended, selectors.EVENT_READ)
        for listener in listening:
            waiting.register(listener.fileno(), selectors.EVENT_READ, listener)
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
