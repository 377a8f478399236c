"""What the store does step by step, what it removes, and what it says."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.backup.archives import sent
from tests.unit.roles.backup.stored import DAY, NOON, has, name, settings

pytestmark = pytest.mark.usefixtures("any_time")


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return settings(tmp_path)


def put(
    programs: Any, config: dict[str, Any], content: bytes, number: int = 1, node: str = "hal01", word: str = ""
) -> None:
    asked = f"put {name(number, node)} {len(content)} {hashlib.sha256(content).hexdigest()} {word}".strip()
    programs.store.put(config, node, asked, sent(content))


def test_what_is_written_beside_an_archive(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.store.time, "time", lambda: 1000.9)
    put(programs, config, b"content", word="a" * 64)
    folder = Path(config["root"]) / "hal01"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / name(1)).read_bytes() == b"content"
    beside = {"archive": name(1), "at": 1000, "size": 7, "sha256": hashlib.sha256(b"content").hexdigest()}
    written = {**beside, "word": "a" * 64, "signature": "", "damaged": ""}
    assert json.loads((folder / f"{name(1)}.json").read_text()) == written
    put(programs, config, b"content", number=2, word="signature=MEUCIQ+/==")
    written = json.loads((folder / f"{name(2)}.json").read_text())
    assert (written["word"], written["signature"]) == ("", "MEUCIQ+/==")


def test_an_archive_has_its_name_when_it_is_whole(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is old goes before it comes; nobody holds the folder meanwhile, and its name is on the disk at the end."""
    order: list[str] = []

    def noted(owner: Any, what: str) -> None:
        real = getattr(owner, what)

        def step(*words: Any) -> Any:
            order.append(what)
            return real(*words)

        monkeypatch.setattr(owner, what, step)

    for what in ("sweep", "retain", "admit"):
        noted(programs.folder, what)
    for what in ("_receive", "save"):
        noted(programs.store, what)
    for what in ("fsync", "close"):
        noted(programs.folder.os, what)
    noted(programs.folder.fcntl, "flock")
    put(programs, config, b"content")
    order = [what for number, what in enumerate(order) if order[number : number + 2] != ["close", "close"]]
    first = ["flock", "flock", "sweep", "retain", "admit", "fsync", "close"]  # of what arrives, and of the folder
    assert order[: len(first)] == first
    assert order[len(first) :] == ["_receive", "fsync", "flock", "save", "fsync", "fsync", "close"]


def test_the_content_is_on_the_disk_before_it_is_believed(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[tuple[str, int]] = []
    own = "/proc/self/fd/{}".format
    monkeypatch.setattr(
        programs.store.os,
        "fsync",
        lambda handle: names.append((os.path.basename(os.readlink(own(handle))), os.fstat(handle).st_size)),
    )
    put(programs, config, b"content")
    assert names[1] == (".part", 7)
    assert [name for name, _ in names][::3] == ["hal01", "hal01"], "so is its name"


@pytest.mark.parametrize(("came", "length"), [(b"conten", 6), (b"contenT", 7), (b"content!", 8)])
def test_what_came_is_counted(programs: Any, config: dict[str, Any], came: bytes, length: int) -> None:
    asked = f"put {name(1)} 7 {hashlib.sha256(b'content').hexdigest()}"
    with pytest.raises(programs.common.Problem) as refused:
        programs.store.put(config, "hal01", asked, sent(came))
    assert str(refused.value) == f"{length} bytes came, 7 were announced: nothing is stored"


def test_who_sends_more_than_announced_is_not_heard_out(programs: Any, config: dict[str, Any]) -> None:
    stream = sent(b"x" * (5 * 1024**2))
    with pytest.raises(programs.common.Problem, match=r"^1048576 bytes came, 7 were announced: nothing is stored$"):
        programs.store.put(config, "hal01", f"put {name(1)} 7 {'0' * 64}", stream)
    assert os.lseek(stream.fileno(), 0, os.SEEK_CUR) == 1024**2


def test_a_large_archive_is_stored_whole(programs: Any, config: dict[str, Any]) -> None:
    content = os.urandom(1024) * 3000
    put(programs, config, content)
    assert (Path(config["root"]) / "hal01" / name(1)).read_bytes() == content


def test_a_disk_that_reads_otherwise_is_said(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.store, "sha256_of", lambda path: "0" * 64)
    with pytest.raises(programs.common.Problem, match="what was written reads differently: the disk of the store is"):
        put(programs, config, b"content")
    assert os.listdir(Path(config["root"]) / "hal01") == []


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "Input/output error"), OSError(errno.EROFS, "Read-only file system"), ValueError("closed")],
)
def test_another_error_is_what_it_is_and_leaves_nothing(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(stream: Any) -> bytes:
        raise error

    monkeypatch.setattr(programs.store, "_block", broken)
    with pytest.raises(type(error)) as raised:
        programs.store.put(config, "hal01", f"put {name(1)} 7 {'0' * 64}", sent(b""))
    assert raised.value is error
    assert os.listdir(Path(config["root"]) / "hal01") == []


def test_what_cannot_be_written_down_is_not_there(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would lie there as somebody else's."""

    def full(path: str, content: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(programs.store, "save", full)
    with pytest.raises(OSError, match="No space left"):
        put(programs, config, b"content")
    assert os.listdir(Path(config["root"]) / "hal01") == []


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("get x", "only 'put NAME SIZE SHA256' is answered here"),
        (f"put {name(1, 'hal02')} 1 {'0' * 64}", f"{name(1, 'hal02')} is not a name of an archive of hal01"),
        (f"put {name(1)}.json 1 {'0' * 64}", f"{name(1)}.json is not a name of an archive of hal01"),
    ],
)
def test_what_is_refused_leaves_no_folder(programs: Any, config: dict[str, Any], asked: str, said: str) -> None:
    with pytest.raises(programs.common.Problem) as refused:
        programs.store.put(config, "hal01", asked, sent(b"x"))
    assert str(refused.value) == said
    assert os.listdir(config["root"]) == []


def test_a_check_says_what_is_wrong_and_remembers_it(
    programs: Any, config: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.store.time, "time", lambda: NOON + 0.5)
    for number in (1, 2, 3):
        put(programs, config, b"content", number)
    root = Path(config["root"])
    capsys.readouterr()
    programs.store.check(config)
    assert capsys.readouterr().out == "every archive is whole\n"
    (root / "hal01" / name(1)).unlink()
    (root / "hal01" / name(2)).write_bytes(b"c0ntent")
    wrong = [f"{name(2)}: its content changed", f"{name(1)}: it is not there"]
    for _ in range(2):
        with pytest.raises(programs.common.Problem) as damaged:
            programs.store.check(config)
        assert str(damaged.value) == "2 damaged: " + "; ".join(wrong)
        seen = [one["damaged"] for one in programs.folder.archives(str(root / "hal01"))]
        assert seen == ["", "its content changed", "it is not there"]
    for number in (1, 2):
        (root / "hal01" / name(number)).write_bytes(b"content")
    programs.store.check(config)
    assert [one["damaged"] for one in programs.folder.archives(str(root / "hal01"))] == ["", "", ""]


def test_a_check_writes_only_what_is_new(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(programs, config, b"content")
    saved: list[str] = []
    monkeypatch.setattr(programs.store, "save", lambda path, content: saved.append(os.path.basename(path)))
    programs.store.check(config)
    assert saved == []


def test_status_counts_what_is_there(programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(config["root"])
    (root / "checked.json").write_text("{}")  # of a store of before
    (root / "hal03").mkdir()
    folder = has(programs, config, NOON, NOON - DAY, NOON - 2 * DAY, damaged=(0,))
    (folder / "aside").mkdir()
    (folder / "aside" / name(7)).touch()
    for number, size in ((0, 1024**2), (1, 1024**2 - 1), (2, 5)):
        path = f"{folder / name(number)}.json"
        programs.common.save(path, dict(programs.common.load(path), size=size))
    monkeypatch.setattr(programs.store.time, "time", lambda: NOON - DAY + 5544)
    monkeypatch.setattr(programs.store, "free_mb", lambda path: 77 if path == str(root) else 0)
    assert programs.store.status(config) == {
        "aside": 1,
        "damaged": 1,
        "free_mb": 77,
        "nodes": {
            "hal01": {
                "age_hours": 1.5,
                "archives": [name(0), name(1), name(2)],
                "aside": [name(7)],
                "damaged": 1,
                "megabytes": 2,
                "newest": name(1),
            },
            "hal03": {"age_hours": None, "archives": [], "aside": [], "damaged": 0, "megabytes": 0, "newest": None},
        },
    }


@pytest.fixture
def said(programs: Any, config: dict[str, Any], tmp_path: Path) -> SimpleNamespace:
    """A configuration as the role writes it, with numbers as text."""
    texts = {key: str(value) for key, value in config.items()}
    (tmp_path / "config.json").write_text(json.dumps(texts))
    return SimpleNamespace(config=str(tmp_path / "config.json"))


def test_what_the_command_line_says_is_done(
    programs: Any,
    said: SimpleNamespace,
    config: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    digest = hashlib.sha256(b"content").hexdigest()
    monkeypatch.setenv("SSH_ORIGINAL_COMMAND", f"put {name(1)} 7 {digest} {'a' * 64}")
    monkeypatch.setattr(programs.store.sys, "stdin", sent(b"content"))
    assert programs.store.command([said.config, "put", "hal01"]) == 0
    assert capsys.readouterr().out == f"stored {name(1)} {digest}\n"
    assert programs.store.command([said.config, "has", "hal01", "a" * 64]) == 0
    assert programs.store.command([said.config, "has", "hal01", "b" * 64]) == 3
    assert programs.store.command([said.config, "has", "hal09", "a" * 64]) == 3
    assert programs.store.command([said.config, "check"]) == 0
    assert capsys.readouterr().out == "every archive is whole\n"
    assert programs.store.command([said.config, "status"]) == 0
    shown = capsys.readouterr().out
    state = json.loads(shown)
    assert state["nodes"]["hal01"]["archives"] == [name(1)]
    assert shown == json.dumps(state, indent=1, sort_keys=True)


def test_what_is_not_asked_for_rightly_is_refused(
    programs: Any, said: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(programs.common.Problem, match=r"^put, has, check or status, not remove$"):
        programs.store.command([said.config, "remove"])
    monkeypatch.delenv("SSH_ORIGINAL_COMMAND", raising=False)
    with pytest.raises(programs.common.Problem, match=r"^only 'put NAME SIZE SHA256' is answered here$"):
        programs.store.command([said.config, "put", "hal01"])
