"""The socket by which others reach the serving process: ipmi_sim's chassis commands, and the command for faults."""

from __future__ import annotations

import os
import socketserver
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.errors import VirtualNodesError

SOCKET = "control.socket"


class Control:
    """A socket in a folder that only its owner may enter. Each connection is one request, in words."""

    def __init__(self, folder: Path, answer: Callable[[Sequence[str]], str]) -> None:
        """Listen. ``answer`` returns what to say, or raises ValueError or VirtualNodesError."""
        path = folder / SOCKET
        path.unlink(missing_ok=True)
        self.path = path
        place = os.open(folder, os.O_PATH)
        try:
            # By the folder's number: the path of a socket may have 107 bytes, one of a state folder more.
            self._server = _Server(f"/proc/self/fd/{place}/{SOCKET}", answer)
        finally:
            os.close(place)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, name="control", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self.path.unlink(missing_ok=True)


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        words = self.rfile.read().decode(errors="replace").split("\0")
        try:
            said = "ok\n" + self.server.answer(words)
        except (ValueError, VirtualNodesError) as error:
            said = f"failed\n{error}\n"
        self.wfile.write(said.encode())


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: str, answer: Callable[[Sequence[str]], str]) -> None:
        self.answer = answer
        super().__init__(path, _Handler)
