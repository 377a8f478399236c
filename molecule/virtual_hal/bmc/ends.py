"""When the systems of nodes end: their first processes are watched, which costs nothing while they run."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable


class Ends:
    """Calls back, in a thread of its own, when a process has ended. Safe to use from several threads."""

    def __init__(self) -> None:
        """Begin to watch; nobody yet."""
        self._epoll = select.epoll()
        self._calls: dict[int, Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._ended, self._tell = os.pipe2(os.O_CLOEXEC)
        self._epoll.register(self._ended, select.EPOLLIN)
        self._thread = threading.Thread(target=self._watch, name="ends", daemon=True)
        self._thread.start()

    def follow(self, pid: int, call: Callable[[], None]) -> None:
        """Call when this process has ended; at once when it has already. The call may not wait for long."""
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            call()
            return
        with self._lock:
            self._calls[process] = call
        self._epoll.register(process, select.EPOLLIN)

    def close(self) -> None:
        """Watch nobody any more."""
        os.write(self._tell, b".")
        self._thread.join()
        self._epoll.close()
        for file in (self._ended, self._tell, *self._calls):
            os.close(file)

    def _watch(self) -> None:
        while True:
            for file, _ in self._epoll.poll():
                if file == self._ended:
                    return
                with self._lock:
                    call = self._calls.pop(file)
                self._epoll.unregister(file)
                os.close(file)
                call()
