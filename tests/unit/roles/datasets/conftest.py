"""hal-dataset as on a transfer node, below a folder of the test, with a web server whose behaviour is chosen."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.unit.interpreters import EVERY, LAB, beside, interpreter

FILES = Path(__file__).resolve().parents[4] / "roles" / "datasets" / "files"


@pytest.fixture(scope="session")
def parts() -> Any:
    """A function: the name of a part of the program -> its module."""
    sys.path[:0] = [str(FILES), str(LAB)]
    return lambda name: importlib.import_module(f"dataset_{name}")


def manifest_of(files: dict[str, bytes]) -> str:
    """What sha256sum prints."""
    return "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())


class Server:
    """A web server of a folder: it notes each request, and does to files what it is told."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.ranges = True
        self.wrong_range = False
        self.ends_after: dict[str, list[int]] = {}  # bytes of the next answers, then whole ones
        self.damages: dict[str, int] = {}  # so many answers
        self.says: dict[str, list[int]] = {}  # statuses of the next answers
        self.asked: list[tuple[str, str]] = []
        self.sent: dict[str, int] = {}
        handler = type("Handler", (_Handler,), {"told": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/pub"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def requests(self, name: str) -> list[str]:
        """The Range of each request for a file, "" for all of it."""
        return [asked for asked_name, asked in self.asked if asked_name == name]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    told: Server

    def log_message(self, *words: Any) -> None:
        pass

    def do_GET(self) -> None:
        told, name = self.told, unquote(self.path).removeprefix("/pub/")
        wanted = self.headers.get("Range", "")
        told.asked.append((name, wanted))
        if told.says.get(name):
            return self._nothing(told.says[name].pop(0))
        if name not in told.files:
            return self._nothing(404)
        content, status, begin = told.files[name], 200, 0
        if told.damages.get(name, 0) > 0:
            told.damages[name] -= 1
            content = bytes([content[0] ^ 1]) + content[1:]
        if wanted and told.ranges:
            begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if begin >= len(content):
                return self._nothing(416, f"bytes */{len(content)}")
            status = 206
        self.send_response(status)
        self.send_header("Content-Length", str(len(content) - begin))
        if status == 206:
            first = 0 if told.wrong_range else begin
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        rest = content[begin:]
        if told.ends_after.get(name):
            rest = rest[: told.ends_after[name].pop(0)]
            self.close_connection = True
        self.wfile.write(rest)
        told.sent[name] = told.sent.get(name, 0) + len(rest)
        return None

    def _nothing(self, status: int, content_range: str = "") -> None:
        self.send_response(status)
        if content_range:
            self.send_header("Content-Range", content_range)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """A folder with none but root's above it: where root runs the tests of a user, the usual one is in his."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield Path(folder)


class Site:
    """A root, its table, and hal-dataset."""

    def __init__(self, folder: Path, python: str) -> None:
        self.root = folder / "datasets"
        self.root.mkdir()
        self.hidden = self.root / ".hal"
        self._table = folder / "datasets.json"
        self._python = python
        self._sets: list[dict[str, Any]] = []
        self.settings: dict[str, Any] = {"reserve_gb": "0", "streams": "3", "verify_threads": "2", "mount": "/"}
        self.settings["verify_max_days"] = "14"

    def declare(self, files: dict[str, bytes], **changes: Any) -> dict[str, Any]:
        """Declare a version in front of those declared before; `files` make its manifest."""
        one: dict[str, Any] = {
            "name": "digits", "version": "1.0", "title": "Handwritten größe", "owner": "root", "licence": "CC BY 4.0",
            "source": "", "manifest": "SHA256SUMS", "manifest_sha256": "", "checksums": manifest_of(files),
            "size_gb": "0.001", "note": "", "default": True, "retired": "", "access": "all",
        }  # fmt: skip
        one |= changes
        key = (one["name"], one["version"])
        self._sets = [one, *(other for other in self._sets if (other["name"], other["version"]) != key)]
        self.write()
        return one

    def write(self) -> None:
        page = {"title": "Data sets on HAL"}
        self._table.write_text(json.dumps({"root": str(self.root), "page": page, "sets": self._sets, **self.settings}))

    def command(self, *words: str) -> list[str]:
        program = [*beside(self._python), str(FILES / "hal_dataset.py")]
        return [*program, "--table", str(self._table), *words]

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
        return subprocess.run(
            self.command(*words), capture_output=True, text=True, check=False, env=environment, timeout=600
        )

    def done(self, *words: str) -> str:
        """Run what has to succeed."""
        done = self.call(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *words: str) -> str:
        """Run what has to be refused in words, not by a traceback."""
        done = self.call(*words)
        assert done.returncode == 1, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr.strip()

    def state(self, label: str = "digits/1.0") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.done("status", label))
        return found


@pytest.fixture(params=EVERY)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    python = interpreter(request.param)
    return Site(tmp_path, python)
