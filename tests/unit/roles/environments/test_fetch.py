"""Archives come from one place, go on where they ended, and are used only when they are the locked ones."""

from __future__ import annotations

import errno
import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

CONTENT = bytes(range(256)) * 4100  # more than a block
SUM = hashlib.sha256(CONTENT).hexdigest()
PACKAGE = {"channel": "ibm", "subdir": "noarch", "file": "a+b-1-0.conda", "size": len(CONTENT), "sha256": SUM}
GOES_ON = "what came is kept, and the next run goes on"


@pytest.fixture
def module(part: Callable[[str], Any]) -> Any:
    return part("fetch")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a source+.conda"
    path.write_bytes(CONTENT)
    return path


class Server(HTTPServer):
    """It notes what it was asked for."""

    resumes = True

    def __init__(self) -> None:
        """On a port of this machine."""
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append((self.path, asked))
        if self.path == "/none":
            self.send_error(404, "Not Found")
            return
        first = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.server.resumes else 0
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(CONTENT) - first))
        self.end_headers()
        self.wfile.write(CONTENT[first:])

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_an_archive_has_its_place_by_its_checksum_and_one_source(module: Any) -> None:
    assert module.archive("/apps", PACKAGE) == f"/apps/.packages/files/{SUM}/a+b-1-0.conda"
    channels = {"ibm": "https://ibm.example/conda/", "main": "https://main.example"}
    assert module.address(PACKAGE, channels, "") == "https://ibm.example/conda/noarch/a%2Bb-1-0.conda"
    assert module.address(PACKAGE, channels, "http://mirror/c/") == "http://mirror/c/ibm/noarch/a%2Bb-1-0.conda"


def test_an_archive_is_here_when_it_is_the_locked_one_and_another_is_removed(module: Any, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    assert module.is_here(str(path), PACKAGE) is False
    path.write_bytes(CONTENT)
    assert module.is_here(str(path), PACKAGE) is True
    assert path.exists()
    for other, package in (
        (CONTENT[:-1] + b"x", PACKAGE),
        (CONTENT[:-1], PACKAGE),
        (CONTENT, {**PACKAGE, "size": len(CONTENT) + 1}),
    ):
        path.write_bytes(other)
        assert module.is_here(str(path), package) is False
        assert not path.exists()


@pytest.mark.parametrize("have", [0, 1, len(CONTENT) - 1])
def test_it_goes_on_where_it_ended(module: Any, tmp_path: Path, source: Path, have: int) -> None:
    source.write_bytes(b"x" * have + CONTENT[have:])  # what is here is not read again
    if have:
        (tmp_path / "archive.part").write_bytes(CONTENT[:have])
    module.fetch(source.as_uri(), str(tmp_path / "archive"), PACKAGE, 60)
    assert (tmp_path / "archive").read_bytes() == CONTENT
    assert not (tmp_path / "archive.part").exists()


def test_what_is_all_here_is_not_asked_for_and_what_is_too_long_is_begun_again(
    module: Any, tmp_path: Path, source: Path
) -> None:
    (tmp_path / "archive.part").write_bytes(CONTENT)
    module.fetch("file:///no/such", str(tmp_path / "archive"), PACKAGE, 60)
    assert (tmp_path / "archive").read_bytes() == CONTENT
    (tmp_path / "again.part").write_bytes(CONTENT + b"x")
    module.fetch(source.as_uri(), str(tmp_path / "again"), PACKAGE, 60)
    assert (tmp_path / "again").read_bytes() == CONTENT
    assert not (tmp_path / "again.part").exists()


@pytest.mark.parametrize("resumes", [True, False])
def test_a_server_that_resumes_sends_the_rest_and_another_sends_all(
    module: Any, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resumes: bool
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr(server, "resumes", resumes)
    address = f"http://127.0.0.1:{server.server_port}/a"
    module.fetch(address, str(tmp_path / "new"), PACKAGE, 60)
    (tmp_path / "old.part").write_bytes(CONTENT[:70] if resumes else b"x" * 70)
    module.fetch(address, str(tmp_path / "old"), PACKAGE, 60)
    assert (tmp_path / "new").read_bytes() == (tmp_path / "old").read_bytes() == CONTENT
    assert server.asked == [("/a", None), ("/a", "bytes=70-")]


def test_a_server_s_refusal_is_said_and_what_came_is_kept(
    module: Any, problem: Any, server: Server, tmp_path: Path
) -> None:
    (tmp_path / "archive.part").write_bytes(b"some")
    address = f"http://127.0.0.1:{server.server_port}/none"
    with pytest.raises(problem) as refused:
        module.fetch(address, str(tmp_path / "archive"), PACKAGE, 60)
    assert str(refused.value) == f"{address} cannot be read: Not Found; {GOES_ON}"
    assert (tmp_path / "archive.part").read_bytes() == b"some"


def test_one_that_ends_early_is_kept_and_one_that_is_another_is_not(
    module: Any, problem: Any, tmp_path: Path, source: Path
) -> None:
    path, kept = str(tmp_path / "archive"), tmp_path / "archive.part"
    source.write_bytes(CONTENT[:-1])
    with pytest.raises(problem) as refused:
        module.fetch(source.as_uri(), path, PACKAGE, 60)
    size = len(CONTENT)
    assert str(refused.value) == f"{source.as_uri()} ends after {size - 1} of {size} bytes; {GOES_ON}"
    assert kept.read_bytes() == CONTENT[:-1]
    kept.unlink()
    for other in (CONTENT[:-1] + b"x", CONTENT + b"x"):
        source.write_bytes(other + b"more" * (len(other) > size))
        digest = hashlib.sha256(other).hexdigest()
        with pytest.raises(problem) as refused:
            module.fetch(source.as_uri(), path, PACKAGE, 60)
        assert str(refused.value) == f"{source.as_uri()} has sha256 {digest}, locked is {SUM}: it is not used"
        assert [one.name for one in tmp_path.iterdir()] == [source.name], "neither half nor whole"


def test_the_right_bytes_of_another_size_are_not_used(module: Any, problem: Any, tmp_path: Path, source: Path) -> None:
    longer = {**PACKAGE, "size": len(CONTENT) - 1}
    with pytest.raises(problem, match=f"has sha256 {SUM}, locked is {SUM}: it is not used"):
        module.fetch(source.as_uri(), str(tmp_path / "archive"), longer, 60)
    assert not (tmp_path / "archive").exists()


@pytest.mark.parametrize(
    ("error", "full", "words"),
    [
        (OSError(errno.ENOSPC, "full"), True, f"no room for a+b-1-0.conda; {GOES_ON}"),
        (OSError(errno.EDQUOT, "quota"), True, f"no room for a+b-1-0.conda; {GOES_ON}"),
        (OSError(errno.EIO, "broken"), False, f"x://y cannot be read: [Errno 5] broken; {GOES_ON}"),
        (URLError("refused"), False, f"x://y cannot be read: refused; {GOES_ON}"),
        (ValueError("unknown"), False, f"x://y cannot be read: unknown; {GOES_ON}"),
    ],
)
def test_no_room_is_told_apart_from_what_cannot_be_read(
    part: Callable[[str], Any], module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    error: Exception, full: bool, words: str,
) -> None:  # fmt: skip
    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(module, "_append", refuse)
    with pytest.raises(part("common").Problem, match=f"^{re.escape(words)}$") as refused:
        module.fetch("x://y", str(tmp_path / "archive"), PACKAGE, 60)
    assert isinstance(refused.value, part("common").Full) is full


def test_an_answer_that_is_no_http_is_a_problem(
    module: Any, problem: Any, tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handler, "do_GET", lambda self: self.wfile.write(b"nonsense\n"))
    with pytest.raises(problem, match=f"cannot be read: nonsense\\s*; {GOES_ON}$"):
        module.fetch(f"http://127.0.0.1:{server.server_port}/", str(tmp_path / "archive"), PACKAGE, 60)
