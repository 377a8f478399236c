"""What the store does step by step, what it removes, and what it says."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

DAY = 86400
NOON = int(time.mktime((2026, 11, 21, 12, 0, 0, 0, 0, -1)))  # a Saturday


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "store").mkdir()
    return {"root": str(tmp_path / "store"), "reserve_mb": 0, "keep_daily": 3, "keep_weekly": 2}


def name(number: int, node: str = "hal01") -> str:
    return f"{node}-20261121T0230{number:02d}Z.tar.gz.gpg"


def put(
    programs: Any, config: dict[str, Any], content: bytes, number: int = 1, node: str = "hal01", word: str = ""
) -> None:
    asked = f"put {name(number, node)} {len(content)} {hashlib.sha256(content).hexdigest()} {word}".strip()
    programs.store.put(config, node, asked, io.BytesIO(content))


def has(programs: Any, config: dict[str, Any], *stamps: int, damaged: tuple[int, ...] = ()) -> Path:
    """Archives of these times are there."""
    folder = Path(config["root"]) / "hal01"
    folder.mkdir()
    for number, stamp in enumerate(stamps):
        beside = {"archive": name(number), "at": stamp, "sha256": "", "size": 0, "word": ""}
        (folder / name(number)).touch()
        programs.common.save(f"{folder / name(number)}.json", dict(beside, damaged="x" if number in damaged else ""))
    return folder


def numbers(folder: Path) -> list[int]:
    return [number for number in range(20) if (folder / name(number)).exists()]


def test_what_is_written_beside_an_archive(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.store.time, "time", lambda: 1000.9)
    put(programs, config, b"content", word="a" * 64)
    folder = Path(config["root"]) / "hal01"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / name(1)).read_bytes() == b"content"
    beside = {"archive": name(1), "at": 1000, "size": 7, "sha256": hashlib.sha256(b"content").hexdigest()}
    assert json.loads((folder / f"{name(1)}.json").read_text()) == {**beside, "word": "a" * 64, "damaged": ""}
    put(programs, config, b"content", number=2)
    assert json.loads((folder / f"{name(2)}.json").read_text())["word"] == ""


def test_two_who_come_at_once_come_one_after_the_other(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And an archive has its name when it is whole; older ones go when it is there."""
    order: list[str] = []

    def noted(owner: Any, what: str) -> None:
        real = getattr(owner, what)

        def step(*words: Any) -> Any:
            order.append(what)
            return real(*words)

        monkeypatch.setattr(owner, what, step)

    for what in ("sweep", "need_room", "_receive", "save", "retain"):
        noted(programs.store, what)
    noted(programs.store.fcntl, "flock")
    noted(programs.store.os, "fsync")
    put(programs, config, b"content")
    assert order == ["flock", "sweep", "need_room", "_receive", "fsync", "save", "fsync", "retain"]


def test_the_content_is_on_the_disk_before_it_is_believed(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(programs.store.os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    put(programs, config, b"content")
    assert sizes[0] == 7


@pytest.mark.parametrize(("came", "length"), [(b"conten", 6), (b"contenT", 7), (b"content!", 8)])
def test_what_came_is_counted(programs: Any, config: dict[str, Any], came: bytes, length: int) -> None:
    asked = f"put {name(1)} 7 {hashlib.sha256(b'content').hexdigest()}"
    with pytest.raises(programs.common.Problem) as refused:
        programs.store.put(config, "hal01", asked, io.BytesIO(came))
    assert str(refused.value) == f"{length} bytes came, 7 were announced: nothing is stored"


def test_who_sends_more_than_announced_is_not_heard_out(programs: Any, config: dict[str, Any]) -> None:
    stream = io.BytesIO(b"x" * (5 * 1024**2))
    with pytest.raises(programs.common.Problem, match=r"^1048576 bytes came, 7 were announced: nothing is stored$"):
        programs.store.put(config, "hal01", f"put {name(1)} 7 {'0' * 64}", stream)
    assert stream.tell() == 1024**2


def test_a_large_archive_is_stored_whole(programs: Any, config: dict[str, Any]) -> None:
    content = os.urandom(1024) * 3000
    put(programs, config, content)
    assert (Path(config["root"]) / "hal01" / name(1)).read_bytes() == content


def test_a_disk_that_reads_otherwise_is_said(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs.store, "sha256", lambda path: "0" * 64)
    with pytest.raises(programs.common.Problem, match="what was written reads differently: the disk of the store is"):
        put(programs, config, b"content")
    assert os.listdir(Path(config["root"]) / "hal01") == [".lock"]


@pytest.mark.parametrize(
    "error",
    [OSError(errno.EIO, "Input/output error"), OSError(errno.EROFS, "Read-only file system"), ValueError("closed")],
)
def test_another_error_is_what_it_is_and_leaves_nothing(
    programs: Any, config: dict[str, Any], error: Exception
) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise error

    with pytest.raises(type(error)) as raised:
        programs.store.put(config, "hal01", f"put {name(1)} 7 {'0' * 64}", Broken())
    assert raised.value is error
    assert os.listdir(Path(config["root"]) / "hal01") == [".lock"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("get x", "only 'put NAME SIZE SHA256' is answered here"),
        (f"put {name(1, 'hal02')} 1 {'0' * 64}", f"{name(1, 'hal02')} is no name of an archive of hal01"),
        (f"put {name(1)}.json 1 {'0' * 64}", f"{name(1)}.json is no name of an archive of hal01"),
    ],
)
def test_what_is_refused_leaves_no_folder(programs: Any, config: dict[str, Any], asked: str, said: str) -> None:
    with pytest.raises(programs.common.Problem) as refused:
        programs.store.put(config, "hal01", asked, io.BytesIO(b"x"))
    assert str(refused.value) == said
    assert os.listdir(config["root"]) == []


def test_a_sweep_leaves_what_is_whole(programs: Any, config: dict[str, Any]) -> None:
    folder = has(programs, config, 1000, 2000)
    (folder / f"{name(0)}.json").unlink()
    (folder / f"{name(9)}.part").touch()
    (folder / "other").touch()
    programs.store.sweep(str(folder))
    assert sorted(os.listdir(folder)) == [name(1), f"{name(1)}.json", "other"]


def test_archives_are_listed_newest_first(programs: Any, config: dict[str, Any]) -> None:
    """And of one second by their names."""
    folder = has(programs, config, 1000, 3000, 2000, 2000)
    listed = programs.store.archives(str(folder))
    assert [one["archive"] for one in listed] == [name(1), name(3), name(2), name(0)]


def test_what_is_beyond_those_to_keep_is_removed(programs: Any, config: dict[str, Any]) -> None:
    folder = has(programs, config, *(NOON - DAY * back for back in range(10)))
    programs.store.retain(config, str(folder))
    # Three days; and the newest of the week before (Sunday the 15th).
    assert numbers(folder) == [0, 1, 2, 6]
    assert len(os.listdir(folder)) == 8


def test_the_newest_stays_whatever_is_declared(programs: Any, config: dict[str, Any]) -> None:
    folder = has(programs, config, NOON, NOON - DAY, NOON - 2 * DAY)
    programs.store.retain({**config, "keep_daily": 0, "keep_weekly": 0}, str(folder))
    assert numbers(folder) == [0]


def test_damaged_ones_stay_and_count_as_none(programs: Any, config: dict[str, Any]) -> None:
    folder = has(programs, config, *(NOON - DAY * back for back in range(6)), damaged=(0, 4))
    programs.store.retain({**config, "keep_weekly": 0}, str(folder))
    assert numbers(folder) == [0, 1, 2, 3, 4]


def test_a_week_is_that_of_the_calendar_and_its_year(programs: Any) -> None:
    """2027-01-01 is a Friday of the week 53 of 2026, and 2026-01-01 a Thursday of the first."""
    new_year, week = int(time.mktime((2027, 1, 1, 12, 0, 0, 0, 0, -1))), 7 * DAY
    assert programs.store.kept([new_year - DAY, new_year], 0, 9) == {new_year}
    stamps = [new_year - 52 * week, new_year - week, new_year, new_year + week]
    assert programs.store.kept(stamps, 0, 9) == set(stamps)
    assert programs.store.kept(stamps, 0, 3) == set(stamps[1:])


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
    assert json.loads((root / "checked.json").read_text()) == {"at": NOON, "damaged": []}
    (root / "hal01" / name(1)).unlink()
    (root / "hal01" / name(2)).write_bytes(b"c0ntent")
    wrong = [f"{name(2)}: its content changed", f"{name(1)}: it is not there"]
    for _ in range(2):
        with pytest.raises(programs.common.Problem) as damaged:
            programs.store.check(config)
        assert str(damaged.value) == "2 damaged: " + "; ".join(wrong)
        assert json.loads((root / "checked.json").read_text()) == {"at": NOON, "damaged": wrong}
        seen = [one["damaged"] for one in programs.store.archives(str(root / "hal01"))]
        assert seen == ["", "its content changed", "it is not there"]
    for number in (1, 2):
        (root / "hal01" / name(number)).write_bytes(b"content")
    programs.store.check(config)
    assert [one["damaged"] for one in programs.store.archives(str(root / "hal01"))] == ["", "", ""]


def test_a_check_writes_only_what_is_new(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(programs, config, b"content")
    saved: list[str] = []
    monkeypatch.setattr(programs.store, "save", lambda path, content: saved.append(os.path.basename(path)))
    programs.store.check(config)
    assert saved == ["checked.json"]


def test_status_counts_what_is_there(programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(config["root"])
    (root / "checked.json").write_text("{}")
    (root / "hal03").mkdir()
    folder = has(programs, config, NOON, NOON - DAY, NOON - 2 * DAY, damaged=(0,))
    for number, size in ((0, 1024**2), (1, 1024**2 - 1), (2, 5)):
        path = f"{folder / name(number)}.json"
        programs.common.save(path, dict(programs.common.load(path), size=size))
    monkeypatch.setattr(programs.store.time, "time", lambda: NOON - DAY + 5544)
    monkeypatch.setattr(programs.store, "free_mb", lambda path: 77 if path == str(root) else 0)
    assert programs.store.status(config) == {
        "damaged": 1,
        "free_mb": 77,
        "nodes": {
            "hal01": {
                "age_hours": 1.5,
                "archives": [name(0), name(1), name(2)],
                "damaged": 1,
                "megabytes": 2,
                "newest": name(1),
            },
            "hal03": {"age_hours": None, "archives": [], "damaged": 0, "megabytes": 0, "newest": None},
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
    monkeypatch.setattr(programs.store.sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"content")))
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
