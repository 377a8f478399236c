"""How often a source is asked again, what is said of it, and what is left of a file that does not come."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.datasets.conftest import Server

KEPT = "what has come is kept, and the next call goes on"
FULL = "the disk is full; what has come is kept: make room, then call again"
GOOD = hashlib.sha256(b"good").hexdigest()


@pytest.fixture
def module(parts: Any) -> Any:
    return parts("fetch")


@pytest.fixture
def waits(module: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What was waited, without waiting."""
    found: list[int] = []
    monkeypatch.setattr(module.time, "sleep", found.append)
    return found


@pytest.fixture
def place(parts: Any, tmp_path: Path) -> Any:
    return parts("common").Place(str(tmp_path / "root"), {"name": "n", "version": "1"})


class Source:
    """It does one thing after another: writes that many bytes and breaks, raises, or comes to its end."""

    source = "x://y/"

    def __init__(self, module: Any, *steps: Any) -> None:
        self._module, self._steps = module, list(steps)

    def more(self, _name: str, part: str) -> None:
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        if step is None:
            return
        with open(part, "ab") as target:
            target.write(b"x" * step)
        raise self._module.BrokenError("broken")


def test_a_source_that_brings_nothing_is_asked_seven_times_ever_more_slowly(
    module: Any, parts: Any, waits: list[int], tmp_path: Path
) -> None:
    part = str(tmp_path / "part")
    with pytest.raises(parts("common").Problem) as refused:
        module._complete(Source(module, *[0] * 7), "a", part)
    assert str(refused.value) == f"x://y/: broken; {KEPT}"
    assert waits == [1, 2, 4, 8, 16, 30]


def test_a_source_that_brings_something_is_asked_again_soon(module: Any, waits: list[int], tmp_path: Path) -> None:
    module._complete(Source(module, 0, 0, 1, 0, 5, None), "a", str(tmp_path / "part"))
    assert waits == [1, 2, 1, 2, 1]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_said_and_another_error_is_not_hidden(
    module: Any, parts: Any, tmp_path: Path, number: int
) -> None:
    with pytest.raises(parts("common").Problem, match=f"^{FULL}$"):
        module._complete(Source(module, OSError(number, "full")), "a", str(tmp_path / "part"))
    with pytest.raises(OSError, match="broken disk"):
        module._complete(Source(module, OSError(errno.EIO, "broken disk")), "a", str(tmp_path / "part"))


def test_what_is_written_behind_a_beginning_cuts_what_was_there(module: Any, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.write_bytes(b"0123456789")
    blocks = [b"ab", b"c", b""]
    assert module._copy(lambda size: blocks.pop(0), str(part), 4) == 3
    assert part.read_bytes() == b"0123abc"
    blocks = [b"new", b""]
    assert module._copy(lambda size: blocks.pop(0), str(part), 0) == 3
    assert part.read_bytes() == b"new"


def test_a_folder_gives_what_a_part_lacks(module: Any, tmp_path: Path) -> None:
    part, origin = tmp_path / "part", tmp_path / "origin"
    (origin / "sub").mkdir(parents=True)
    (origin / "file").write_bytes(b"xx34")
    part.write_bytes(b"12")
    module.Folder(str(origin)).more("file", str(part))
    assert part.read_bytes() == b"1234"
    part.write_bytes(b"12345")
    module.Folder(str(origin)).more("file", str(part))
    assert part.read_bytes() == b"1234", "a part that is too long is cut"
    os.mkfifo(origin / "fifo")  # opened as a file it would be waited for
    for name, words in (
        ("sub", f"is not a file in {origin}"),
        ("fifo", f"is not a file in {origin}"),
        ("none", f"{origin}: No such file or directory"),
        ("file/below", f"{origin}: Not a directory"),
    ):
        with pytest.raises(module.RefusedError) as refused:
            module.Folder(str(origin)).more(name, str(part))
        assert str(refused.value) == words
    with pytest.raises(OSError, match="too long"):
        module.Folder(str(origin)).more("x" * 300, str(part))


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (404, "RefusedError", "HTTP 404 Not Found"), (403, "RefusedError", "HTTP 403 Forbidden"),
        (499, "RefusedError", "HTTP 499 "), (204, "RefusedError", "HTTP 204 No Content"),
        (429, "BrokenError", "HTTP 429 Too Many Requests"), (500, "BrokenError", "HTTP 500 Internal Server Error"),
        (503, "BrokenError", "HTTP 503 Service Unavailable"),
    ],
)  # fmt: skip
def test_an_answer_of_a_server_is_for_this_file_or_for_now(
    module: Any, server: Server, tmp_path: Path, status: int, error: str, words: str
) -> None:
    server.says["a b"] = [status]
    server.files["a b"] = b"good"
    one, part = module.Http(server.url + "//"), tmp_path / "part"
    with pytest.raises(getattr(module, error), match=f"^{words}$"):
        one.more("a b", str(part))
    assert not part.exists()
    one.more("a b", str(part))
    assert part.read_bytes() == b"good"


def test_an_answer_that_ends_too_early_or_is_another_range_is_broken(
    module: Any, server: Server, tmp_path: Path
) -> None:
    server.files["a"] = b"good" * 200
    one, part = module.Http(server.url), tmp_path / "part"
    server.ends_after["a"] = [600]
    with pytest.raises(module.BrokenError):
        one.more("a", str(part))
    assert part.read_bytes() == b"good" * 150
    one.more("a", str(part))
    one.more("a", str(part))
    assert part.read_bytes() == b"good" * 200, "no byte behind the last is no fault"
    part.write_bytes(b"go")
    server.wrong_range = True
    with pytest.raises(module.BrokenError, match="the server sent another range than it was asked for"):
        one.more("a", str(part))
    assert not part.exists()
    assert server.requests("a") == ["", "bytes=600-", "bytes=800-", "bytes=2-"]


class Answer:
    """What a server says, without one."""

    def __init__(self, status: int, **headers: str) -> None:
        self.status, self._headers = status, headers

    def getheader(self, name: str) -> str | None:
        return self._headers.get(name.replace("-", "_"))

    def read(self) -> bytes:
        return b""


def answered(one: Any, monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> list[Any]:
    """Have a source answer this; return what it is asked."""
    asked: list[Any] = []
    left = list(answers)

    class Connection:
        def request(self, method: str, path: str, headers: dict[str, str]) -> None:
            asked.append((method, path, headers))

        def getresponse(self) -> Answer:
            return left.pop(0)

    def connect(scheme: str, host: str) -> None:
        asked.append((scheme, host))
        one._connection = Connection()

    monkeypatch.setattr(one, "_connect", connect)
    return asked


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_server_may_lead_elsewhere(module: Any, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    one = module.Http("https://a.example/pub")
    asked = answered(one, monkeypatch, Answer(status, Location="//b.example/c?d=e"), Answer(200))
    assert one._get("https://a.example/pub/f", 7).status == 200
    headers = {"User-Agent": "hal-dataset", "Accept-Encoding": "identity", "Range": "bytes=7-"}
    assert asked == [
        ("https", "a.example"), ("GET", "/pub/f", headers), ("https", "b.example"), ("GET", "/c?d=e", headers),
    ]  # fmt: skip


def test_a_server_may_not_lead_in_circles_nor_out_of_https(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = module.Http("https://a.example/pub")
    asked = answered(one, monkeypatch, *[Answer(301)] * 5)
    with pytest.raises(module.RefusedError, match=r"^the server leads in circles$"):
        one._get("https://a.example/pub/f", 0)
    plain = {"User-Agent": "hal-dataset", "Accept-Encoding": "identity"}
    assert asked[1::2] == [("GET", "/pub/f", plain)] * 5
    answered(one, monkeypatch, Answer(302, Location="http://a.example/pub/f"))
    with pytest.raises(module.RefusedError, match=r"^the server leads from https to http://a\.example/pub/f$"):
        one._get("https://a.example/pub/f", 0)


def test_a_connection_is_kept_for_a_host_and_closed_for_another(module: Any) -> None:
    one = module.Http("http://a.example")
    one._connect("http", "a.example")
    first = one._connection
    assert (type(first), first.host, first.timeout) == (module.HTTPConnection, "a.example", 60)
    one._connect("http", "a.example")
    assert one._connection is first
    one._connect("https", "a.example")
    assert (type(one._connection), one._connection.timeout) == (module.HTTPSConnection, 60)
    one._close()
    one._connect("https", "a.example")
    assert one._connection is not None
    one._connect("https", "b.example")
    assert one._connection.host == "b.example"
    one._close()
    one._close()
    assert one._connection is None


def test_a_file_that_is_right_moves_with_its_owner_and_mode_and_a_damaged_one_comes_twice(
    module: Any, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.makedirs(place.parts)
    os.makedirs(place.data)
    brought = [b"bad", b"good"]
    given: list[str] = []

    def complete(_one: Any, _name: str, part: str) -> None:
        assert not os.path.exists(part)
        Path(part).write_bytes(brought.pop(0))

    monkeypatch.setattr(module, "_complete", complete)
    assert module._bring(None, ("d/a", GOOD), place, given.append) == ("d/a", 4, "")
    part = os.path.join(place.parts, hashlib.sha1(b"d/a").hexdigest())
    assert given == [part]
    assert Path(place.data, "d/a").read_bytes() == b"good"
    assert Path(place.data, "d").stat().st_mode & 0o777 == 0o700
    brought += [b"bad", b"bad"]
    twice = "what comes is not what the manifest says, twice"
    assert module._bring(None, ("b", GOOD), place, given.append) == ("b", 0, twice)
    brought += [b"good", b"good"]
    both = "the manifest has it as a file and as a folder"
    assert module._bring(None, ("d", GOOD), place, given.append) == ("d", 0, both)


def test_a_manifest_comes_fresh_and_what_refuses_it_is_named(module: Any, parts: Any, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "SUMS").write_text("new")
    target.write_text("old one")
    module.fetch_text_file(f"{source}/", "SUMS", str(target))
    assert target.read_text() == "new"
    with pytest.raises(parts("common").Problem) as refused:
        module.fetch_text_file(f"{source}/", "NONE", str(target))
    assert str(refused.value) == f"{source}/NONE: {source}/: No such file or directory"
    assert not target.exists()


# ---------------------------------------------------------------- rsync
@pytest.fixture
def rsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function: a shell's words -> an rsync that notes its arguments and does that; how it was called is returned."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    log = tmp_path / "calls"

    def plant(words: str) -> Path:
        path = tmp_path / "bin/rsync"
        path.write_text(f'#!/bin/sh\necho "$*" >>"{log}"\n{words}\n')
        path.chmod(0o755)
        return log

    return plant


@pytest.mark.parametrize("status", [10, 12, 30, 35])
def test_rsync_is_called_again_when_the_network_broke(
    module: Any, parts: Any, rsync: Any, waits: list[int], status: int
) -> None:
    log = rsync(f"echo 'rsync error: all'; echo ' lost '; exit {status}")
    with pytest.raises(parts("common").Problem) as refused:
        module._rsync(["a", "b"])
    assert str(refused.value) == f"rsync:  lost; {KEPT}"
    assert waits == [1, 2, 4, 8, 16, 30]
    assert log.read_text() == "--timeout=60 --contimeout=60 a b\n" * 7


def test_rsync_is_not_called_again_for_what_stays_wrong(module: Any, parts: Any, rsync: Any, waits: list[int]) -> None:
    for words, said in (
        ("exit 23", f"rsync: exit status 23; {KEPT}"),
        ("echo no; exit 1", f"rsync: no; {KEPT}"),
        ("echo x; echo 'No space left on device'; exit 12", FULL),
    ):
        rsync(words)
        with pytest.raises(parts("common").Problem, match=f"^{re.escape(said)}$"):
            module._rsync([])
    rsync("exit 23")
    module._rsync([], also=(23, 24))
    rsync("exit 0")
    module._rsync([])
    assert waits == []


def test_files_of_rsync_are_looked_at_and_asked_for_once_more(
    module: Any, place: Any, rsync: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RSYNC_FILES", 2)
    os.makedirs(place.hidden)
    given: list[str] = []
    wanted = Path(place.hidden, "wanted")
    names, lists, seen = f'tr "\\0" " " <"{wanted}"', Path(place.hidden, "lists"), Path(place.hidden, "seen")
    log = rsync(
        f'for word; do to="$word"; done\n{{ {names}; stat -c %a "$to"; ls "$to"; }} >>"{lists}"\n'
        f'case "$({names})" in *again*)\n[ -e "{seen}" ] && printf good >"$to/again"; printf bad >"$to/bad"\n'
        f'touch "{seen}" ;; esac\nprintf good >"$to/late"; ln -sf late "$to/none"; exit 24'
    )
    entries = [("again", GOOD), ("bad", GOOD), ("late", GOOD), ("none", GOOD)]
    found = list(module.fetch("rsync://x/y/", entries, place, given.append, 3))
    assert found == [
        ("again", 4, ""), ("bad", 0, "what comes is not what the manifest says, twice"),
        ("late", 4, ""), ("none", 0, "the source does not have it"),
    ]  # fmt: skip
    assert given == [f"{place.incoming}/again", f"{place.incoming}/late"]
    assert lists.read_text() == (
        "again bad 700\nagain bad 700\nlate\nnone\nlate none 700\nlate\nnone\nnone 700\nnone\n"
    )
    assert not wanted.exists()
    assert not os.path.exists(place.incoming)
    assert os.stat(place.parts).st_mode & 0o777 == 0o700
    words = f"--files-from={wanted} --from0 --times --partial-dir=.partial rsync://x/y/ {place.incoming}/"
    assert log.read_text().splitlines() == [f"--timeout=60 --contimeout=60 {words}"] * 4
