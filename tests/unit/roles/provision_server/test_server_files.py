"""Small files of the server: whole or not at all, the service's own, and named when something is wrong with them."""

from __future__ import annotations

import errno
import importlib
import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.roles.provision_server.refusals import problem
from tests.unit.roles.provision_server.test_store import settings_of

common: Any = importlib.import_module("provision_common")
Problem = common.Problem


@pytest.fixture
def place(tmp_path: Path) -> Any:
    return common.Place(str(settings_of(tmp_path, [node("hal06", 6), node("hal05", 5)])))


@pytest.fixture
def owned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """To whom files are given, as root does it in a folder of the service's account."""
    given: list[tuple[int, int]] = []
    folder = SimpleNamespace(st_uid=71, st_gid=72)
    replaced = {
        "geteuid": lambda: 0,
        "stat": lambda path: folder if os.path.isdir(path) else os.stat(path),
        "fchown": lambda handle, uid, gid: given.append((uid, gid)),
    }
    monkeypatch.setattr(common, "os", SimpleNamespace(**{**vars(os), **replaced}))
    return given


# ---------------------------------------------------------------- reading and writing


def test_a_file_is_read_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    assert common.read_json(str(path)) is None
    path.write_text('{"a": "größe"}', encoding="utf-8")
    assert common.read_json(str(path)) == {"a": "größe"}
    assert common.read_json(str(path / "below a file")) is None
    for content, said in ((b"{", "no JSON"), (b'"\xff"', "no JSON"), (b"[1]", "no mapping"), (b"null", "no mapping")):
        path.write_bytes(content)
        assert problem(common.read_json, str(path)) == f"{path}: is damaged; {said}"
    assert problem(common.read_json, str(tmp_path)) == f"{tmp_path}: cannot be read: Is a directory"
    for number in (errno.EPERM, errno.ESRCH, errno.EXDEV, errno.EISDIR):
        monkeypatch.setattr(common.io, "open", raises(OSError(number, "Some reason")))
        assert problem(common.read_json, "/x") == "/x: cannot be read: Some reason"


def raises(error: BaseException) -> Any:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    return fails


def test_a_file_is_written_whole_for_whom_its_folder_belongs_to(
    tmp_path: Path, owned: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "x", []
    path.write_text("former")
    monkeypatch.setattr(
        common.os, "fsync", lambda handle: seen.append((os.fstat(handle).st_size, path.read_text(), list(owned)))
    )
    common.write_json(str(path), {"b": [1], "a": "x"})
    content = '{\n "a": "x",\n "b": [\n  1\n ]\n}\n'
    assert path.read_text() == content
    assert path.stat().st_mode & 0o777 == 0o600
    assert seen == [(len(content), "former", [(71, 72)])]
    common.write_json(str(path), {}, 0o640)
    assert path.stat().st_mode & 0o777 == 0o640
    common.replace(str(path), b"\x00\xff")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"\x00\xff", 0o600)
    assert os.listdir(tmp_path) == ["x"]


def test_an_ordinary_user_gives_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common.os, "geteuid", lambda: 1)
    monkeypatch.setattr(common.os, "fchown", raises(AssertionError()))
    common.replace(str(tmp_path / "x"), b"1")
    os.close(common.opened(str(tmp_path / "y"), os.O_WRONLY))
    assert sorted(os.listdir(tmp_path)) == ["x", "y"]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone" / "x"
    assert problem(common.replace, str(gone), b"1") == f"{gone}: cannot be written: No such file or directory"
    (tmp_path / "folder").mkdir()
    assert problem(common.replace, str(tmp_path / "folder"), b"1").endswith(
        "/folder: cannot be written: Is a directory"
    )
    monkeypatch.setattr(common.os, "fsync", raises(OSError(errno.ENOSPC, "No space left on device")))
    assert (
        problem(common.replace, str(tmp_path / "x"), b"1")
        == f"{tmp_path}/x: cannot be written: No space left on device"
    )
    assert os.listdir(tmp_path) == ["folder"]


def test_a_file_is_removed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").touch()
    assert [common.remove(str(tmp_path / "x")) for _ in range(2)] == [True, False]
    assert problem(common.remove, str(tmp_path)) == f"{tmp_path}: cannot be removed: Is a directory"
    monkeypatch.setattr(common, "os", SimpleNamespace(unlink=raises(OSError(errno.EPERM, "Operation not permitted"))))
    assert problem(common.remove, "/x") == "/x: cannot be removed: Operation not permitted"
    monkeypatch.undo()
    (tmp_path / "y").touch()
    assert problem(common.remove, str(tmp_path / "y" / "z")) == f"{tmp_path}/y/z: cannot be removed: Not a directory"


def test_a_file_that_is_made_is_the_services_and_one_that_was_there_stays(
    tmp_path: Path, owned: list[tuple[int, int]]
) -> None:
    path = tmp_path / "x"
    handle = common.opened(str(path), os.O_WRONLY | os.O_APPEND)
    os.write(handle, b"1")
    os.close(handle)
    assert (path.stat().st_mode & 0o777, owned) == (0o600, [(71, 72)])
    path.chmod(0o644)
    handle = common.opened(str(path), os.O_WRONLY | os.O_APPEND)
    os.write(handle, b"2")
    os.close(handle)
    assert (path.read_text(), path.stat().st_mode & 0o777, owned) == ("12", 0o644, [(71, 72)])
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        common.opened(str(tmp_path / "link"), os.O_WRONLY)
    with pytest.raises(FileNotFoundError):
        common.opened(str(tmp_path / "gone" / "x"), os.O_WRONLY)


def test_a_file_that_is_renamed_meanwhile_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the trail's, which another program just put aside."""
    path, open_ = tmp_path / "x", os.open
    path.touch()

    def first_renamed(name: str, flags: int, *mode: int) -> int:
        if not flags & os.O_CREAT and path.exists():
            path.rename(tmp_path / "x.1")
        return open_(name, flags, *mode)

    monkeypatch.setattr(common.os, "open", first_renamed)
    os.close(common.opened(str(path), os.O_WRONLY))
    assert sorted(os.listdir(tmp_path)) == ["x", "x.1"]


def test_one_at_a_time_and_the_next_when_it_ends(tmp_path: Path) -> None:
    order, path = [], str(tmp_path / "lock")

    def second() -> None:
        with common.alone(path, "it"):
            order.append("second")

    other = threading.Thread(target=second)

    def first() -> None:
        with common.alone(path, "it"):
            other.start()
            other.join(0.3)
            order.append("first")
            raise ValueError("broke")

    with pytest.raises(ValueError, match="broke"):
        first()
    other.join()
    assert order == ["first", "second"]
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with common.alone(path, "it"):
            pass
    assert len(os.listdir("/proc/self/fd")) == before
    assert problem(common.alone(str(tmp_path), "it").__enter__) == f"{tmp_path} cannot be locked: Is a directory"


def test_who_does_not_end_is_named_and_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account of the service, which strangers talk to, could hold root's programs up."""
    path = str(tmp_path / "lock")
    monkeypatch.setattr(common, "LOCK_SECONDS", 0)
    with common.alone(path, "it"):
        assert problem(common.alone(path, "hal05").__enter__).startswith("hal05: process ")
    assert os.stat(path).st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- words


@pytest.mark.parametrize("number", range(3))
def test_words_are_told_whatever_they_are(number: int, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    words, told = [("größe", "größe"), ("größe".encode(), "größe"), ("a\nb", "a\nb")][number]
    common.say(words)
    common.tell(words)
    seen = capsysbinary.readouterr()
    assert (seen.out.decode(), seen.err.decode()) == (told + "\n", told + "\n")
    assert str(Problem(words)) == told


def test_a_problem_with_others_words_drives_no_terminal(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm's own words are in them; escapes that were made before stay as they are."""
    monkeypatch.setattr(common.os, "umask", lambda _mask: 0)
    slurm = "hal05: not drained in Slurm: \x1b[2J\u202e\u200b\u3164\nhal06: größe \\x1b"

    def work() -> str:
        raise Problem(slurm)

    assert common.exit_status("hal-reimage", work) == 2
    said = capsysbinary.readouterr().err.decode()
    assert said == "hal05: not drained in Slurm: \\x1b[2J\\u202e\\u200b\\u3164\nhal06: größe \\x1b\n"

    def full() -> str:
        raise OSError(28, "No space", "/x\x1b[2J")

    assert common.exit_status("hal-reimage", full) == 2
    assert capsysbinary.readouterr().err == b"/x\\x1b[2J: No space\n"


def test_a_stamp_is_of_utc() -> None:
    assert common.stamp(1_800_000_000.9) == "2027-01-15T08:00:00Z"


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a.b", "a\n", "a" * 64])
def test_what_is_no_name_of_a_node_is_shown_as_it_is(name: str) -> None:
    assert problem(common.checked_name, name) == f"{name!r} is not a name of a node"
    assert [common.checked_name(one) for one in ("a", "a-9", "9" * 63)] == ["a", "a-9", "9" * 63]


class Conflict(common.Problem):  # type: ignore[misc]  # imported by its name
    status = 3


@pytest.mark.parametrize(
    ("work", "status", "out", "err"),
    [
        (lambda: "done", 0, "done\n", ""),
        (lambda: "", 0, "", ""),
        (raises(Problem("no")), 2, "", "no\n"),
        (raises(Conflict("meanwhile")), 3, "", "meanwhile\n"),
        (raises(OSError(errno.EACCES, "Permission denied", "/x")), 2, "", "/x: Permission denied\n"),
        (raises(OSError(errno.EIO, "Input/output error")), 2, "", "hal-x: Input/output error\n"),
        (raises(OSError("in words")), 2, "", "hal-x: in words\n"),
        (raises(KeyboardInterrupt()), 130, "", ""),
    ],
)
def test_a_program_ends_with_its_status(
    work: Any, status: int, out: str, err: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    masks: list[int] = []
    monkeypatch.setattr(common.os, "umask", masks.append)
    assert common.exit_status("hal-x", work) == status
    assert (*capfd.readouterr(), masks) == (out, err, [0o077])


# ---------------------------------------------------------------- the place


def test_settings_that_are_wrong_are_named(tmp_path: Path) -> None:
    path = settings_of(tmp_path, [])
    whole = json.loads(path.read_text())
    made = common.Place(str(path))
    for attribute, key in (
        ("key", "image_key"), ("keep", "keep_images"), ("connections",) * 2, ("request_seconds",) * 2
    ):  # fmt: skip
        assert getattr(made, attribute) == whole.pop(key)
        path.write_text(json.dumps(whole))
        said = f"{path}: '{key}' is missing or wrong; role provision_server writes it"
        assert problem(common.Place, str(path)) == said
        whole[key] = 2
    for key, value in (("port", "x"), ("tls_port", None)):
        path.write_text(json.dumps({**whole, key: value}))
        assert problem(common.Place, str(path)).endswith(" is missing or wrong; role provision_server writes it")
    path.write_text(json.dumps({**whole, "port": "8480", "keep_images": "3", "tls_port": "8481"}))
    made = common.Place(str(path))
    assert (made.port, made.keep, made.tls_port) == (8480, 3, 8481)
    path.unlink()
    assert problem(common.Place, str(path)) == f"{path} is missing; role provision_server writes it"


@pytest.mark.parametrize(("key", "wrong"), [("address", 1), ("names", "x"), ("standing", None), ("names", {})])
def test_a_file_of_a_node_has_what_is_served(place: Any, key: str, wrong: Any) -> None:
    path = Path(place.nodes, "hal05")
    whole = json.loads(path.read_text())
    for data in ({**whole, key: wrong}, {one: whole[one] for one in whole if one != key}):
        path.write_text(json.dumps(data))
        assert problem(place.node, "hal05") == f"{path}: is damaged; no {key}"


def test_nodes_are_those_that_have_a_file(place: Any) -> None:
    for name in (".new-x", "HAL07", "hal07.rpmsave"):
        Path(place.nodes, name).touch()
    assert place.names() == ["hal05", "hal06"]
    assert place.path("armed", "hal05") == os.path.join(place.state, "armed", "hal05")
    said = "hal07: this server has no such node; it knows those of cluster.yml with a MAC"
    assert problem(place.node, "hal07") == said
    place.nodes += ".gone"
    for ask in (place.names, lambda: place.by_address("10.1.0.105")):
        assert problem(ask) == f"{place.nodes}: cannot be read: No such file or directory"


def test_files_of_nodes_are_read_when_their_folder_changed_and_not_with_each_request(
    place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    names = place.names

    def noted() -> Any:
        read.append(1)
        return names()

    monkeypatch.setattr(place, "names", noted)
    for _ in range(3):
        assert [place.by_address(f"10.1.0.10{at}") for at in (5, 6, 7)] == ["hal05", "hal06", None]
    assert len(read) == 1
    os.utime(place.nodes, (1, 1))
    assert place.by_address("10.1.0.105") == "hal05"
    assert len(read) == 2


def test_each_node_has_a_lock_of_its_own(place: Any) -> None:
    with place.locked("hal05"), place.locked("hal06"):
        found = sorted(os.listdir(os.path.join(place.state, "tokens")))
    assert found == [".lock-hal05", ".lock-hal06"]
    assert problem(place.locked, "../x") == "'../x' is not a name of a node"
