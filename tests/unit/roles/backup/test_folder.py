"""A node's folder in the store: what was said to be stored stays, whoever sends, copies, or sets the clock."""

from __future__ import annotations

import hashlib
import importlib
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

import pytest

from tests.unit.roles.backup.archives import sent
from tests.unit.roles.backup.stored import DAY, NOON, has, name, numbers, settings

FILES = Path(__file__).resolve().parents[4] / "roles" / "backup" / "files"
pytestmark = pytest.mark.usefixtures("any_time")
LONG_SECONDS = 600  # what has not ended by then never will


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    return settings(tmp_path)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test has made is two days old."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 2 * DAY)


def asked(content: bytes, number: int) -> str:
    return f"put {name(number)} {len(content)} {hashlib.sha256(content).hexdigest()}"


def put(programs: Any, config: dict[str, Any], number: int, content: bytes = b"content") -> None:
    programs.store.put(config, "hal01", asked(content, number), sent(content))


def refused(programs: Any, config: dict[str, Any], number: int, content: bytes = b"content") -> str:
    """Why it is not taken; then nothing is there that was not."""
    folder = Path(config["root"]) / "hal01"
    before = sorted(path for path in folder.rglob("*") if path.name != ".part")
    with pytest.raises(programs.common.Problem) as problem:
        put(programs, config, number, content)
    assert sorted(folder.rglob("*")) == before
    return str(problem.value)


# ---------------------------------------------------------------- what the store forgot: four cases that were seen


def test_a_clock_in_the_past_takes_nothing(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came then would be older than all there is, and the first to go. chrony corrects a minute at once."""
    folder = has(programs, config, *(NOON - DAY * back for back in range(6)))
    monkeypatch.setattr(time, "time", lambda: NOON - 400 * DAY)
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(NOON - 400 * DAY))
    assert refused(programs, config, 30) == (
        f"the store's clock says {clock}, and {name(0)} came at 2026-11-21 12:00:00: set the clock, or move"
        " that archive away if the clock was wrong then"
    )
    monkeypatch.setattr(time, "time", lambda: NOON - 59)
    put(programs, config, 31)
    monkeypatch.setattr(time, "time", lambda: NOON - 61)
    assert refused(programs, config, 32).startswith("the store's clock says ")
    assert 31 in numbers(folder)


def test_a_second_archive_of_a_day_takes_nothing_away(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, later: None
) -> None:
    """Of a day the first and the last stay: who took the node over sends one more, and it is not a better one."""
    folder = has(programs, config, *range(NOON, NOON + 600, 60))
    programs.folder.retain(config, str(folder))
    assert numbers(folder) == [0, 9]


def test_an_archive_that_was_copied_back_stays(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it is older than all that are kept: for a day, by the disk's own time. Its time of change may be old."""
    folder = has(programs, config, *(NOON - DAY * back for back in range(20)))
    os.utime(folder / name(19), (1000, 1000))
    programs.folder.retain(config, str(folder))
    assert numbers(folder) == list(range(20))
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + DAY + 60)
    programs.folder.retain(config, str(folder))
    assert numbers(folder) == [0, 1, 2, 6]


def test_what_was_copied_there_alone_is_set_aside(
    programs: Any, config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """With nothing beside it nobody knows what it is. The same name twice is two."""
    folder = has(programs, config, NOON)
    for content in ("first", "second", "third"):
        (folder / name(5)).write_text(content)
        if content == "third":
            with pytest.raises(programs.common.Problem, match="damaged: "):  # those that `has` makes
                programs.store.check(config)
        else:
            programs.folder.sweep(str(folder))
    kept = {path.name: path.read_text() for path in (folder / "aside").iterdir()}
    assert kept == {name(5): "first", f"{name(5)}.1": "second", f"{name(5)}.2": "third"}
    assert (folder / "aside").stat().st_mode & 0o777 == 0o700
    state = programs.store.status(config)
    assert (state["aside"], state["nodes"]["hal01"]["aside"]) == (3, sorted(kept))
    assert state["nodes"]["hal01"]["archives"] == [name(0)]


def test_a_check_does_not_bring_back_what_is_removed_meanwhile(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While it reads, an archive goes. It is not missing, nor is anything written beside it again."""
    folder = has(programs, config, NOON, NOON - DAY)
    for number in (0, 1):
        path = f"{folder / name(number)}.json"
        programs.common.save(
            path, dict(programs.common.load(path), sha256=hashlib.sha256(b"").hexdigest(), damaged="x")
        )
    real = programs.store._damage

    def removed(path: str, wanted: str) -> Any:
        found = real(path, wanted)
        if path.endswith(name(1)):
            os.unlink(path)
            os.unlink(f"{path}.json")
        return found

    monkeypatch.setattr(programs.store, "_damage", removed)
    programs.store.check(config)
    assert capsys.readouterr().out == "every archive is whole\n"
    assert sorted(os.listdir(folder)) == [name(0), f"{name(0)}.json"]


def test_a_check_waits_until_a_change_is_complete(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An archive that went, and what is beside it not yet: that is no damage."""
    folder = has(programs, config, NOON)
    reads, gone, found = (threading.Event() for _ in range(3))
    real = programs.store._damage

    def looked(path: str, wanted: str) -> Any:
        reads.set()
        gone.wait(LONG_SECONDS)
        seen = real(path, wanted)
        found.set()
        return seen

    monkeypatch.setattr(programs.store, "_damage", looked)
    checks = threading.Thread(target=programs.store.check, args=(config,))
    checks.start()
    assert reads.wait(LONG_SECONDS)
    with programs.folder.changing(str(folder)):
        (folder / name(0)).unlink()
        gone.set()
        assert found.wait(LONG_SECONDS)
        (folder / f"{name(0)}.json").unlink()
    checks.join(LONG_SECONDS)
    assert not checks.is_alive()
    assert capsys.readouterr().out == "every archive is whole\n"
    assert os.listdir(folder) == []


# ---------------------------------------------------------------- who sends


def test_a_node_has_a_quota(programs: Any, config: dict[str, Any]) -> None:
    """Of all that is in its folder, also aside; and a node that reached it still has what it had."""
    folder = has(programs, config, NOON)
    (folder / "aside").mkdir()
    (folder / "aside" / "x").write_bytes(bytes(8 * 1024**2 - 1000))
    (folder / ".part").write_bytes(bytes(5 * 1024**2))
    content = bytes(1024**2)
    said = f"with {name(30)} the archives of hal01 would be 10 MB; backup_store_quota_mb allows 9"
    assert refused(programs, config, 30, content + bytes(2000)) == said
    put(programs, config, 30, content)
    assert refused(programs, config, 31, content).endswith("would be 10 MB; backup_store_quota_mb allows 9")
    assert numbers(folder) == [0, 30]


def test_room_of_what_is_too_old_is_given_back_first(programs: Any, config: dict[str, Any], later: None) -> None:
    """Otherwise a node that reached its quota in a day would never send again."""
    folder = has(programs, config, *(NOON - DAY * back for back in range(20)))
    (folder / name(19)).write_bytes(bytes(9 * 1024**2))
    put(programs, config, 30)
    assert numbers(folder) == [0, 1, 2, 6, 30]


def test_a_node_sends_so_many_a_day(programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: NOON + 100)
    has(programs, config, *range(NOON - 47, NOON), NOON - DAY)
    put(programs, config, 50)
    assert refused(programs, config, 51) == "hal01 has sent 48 archives within a day: more are not taken"
    monkeypatch.setattr(time, "time", lambda: NOON + 3 * DAY)
    put(programs, config, 51)


@pytest.mark.parametrize("late", [-6 * 3600 - 1, -6 * 3600, 6 * 3600, 6 * 3600 + 1])
def test_what_a_node_sends_is_of_today_by_its_name(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    """Who takes a node over sends none that looks as if it were of the week before. Nor does a wrong clock."""
    monkeypatch.setattr(programs.folder, "LATE_SECONDS", 6 * 3600)
    named = programs.common.made_at("hal01", name(1))
    monkeypatch.setattr(time, "time", lambda: named + late)
    if abs(late) == 6 * 3600:
        put(programs, config, 1)
        return
    shown = [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp)) for stamp in (named, named + late)]
    has(programs, config)
    assert refused(programs, config, 1) == (
        f"{name(1)} was made at {shown[0]}, and the store's clock says {shown[1]}: set the one that is wrong"
    )


def test_a_name_is_taken_once(programs: Any, config: dict[str, Any]) -> None:
    """Also when the archive itself is missing: what is written beside it is all that says so."""
    folder = has(programs, config, NOON)
    assert refused(programs, config, 0) == f"{name(0)} is there already"
    (folder / name(0)).unlink()
    assert refused(programs, config, 0) == f"{name(0)} is there already"


def pipe(content: bytes) -> tuple[IO[bytes], int]:
    """A stream on which this came, and its open end."""
    reading, writing = os.pipe()
    os.write(writing, content)
    return os.fdopen(reading, "rb"), writing


@pytest.mark.parametrize("came", [b"", b"cont", b"content"])
def test_a_sender_that_goes_silent_is_not_waited_for(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch, came: bytes
) -> None:
    """Its node could not send again as long as it keeps the place."""
    monkeypatch.setattr(programs.store, "SILENCE_SECONDS", 0)
    stream, writing = pipe(came)
    with stream, pytest.raises(programs.common.Problem, match=r"^nothing came for 0 s: nothing is stored$"):
        programs.store.put(config, "hal01", asked(b"content", 1), stream)
    os.close(writing)
    assert os.listdir(Path(config["root"]) / "hal01") == []
    put(programs, config, 1)


def test_a_sender_that_is_slow_is_heard_out(programs: Any, config: dict[str, Any]) -> None:
    stream, writing = pipe(b"con")

    def goes_on() -> None:
        for number in range(4):
            time.sleep(0.05)
            os.write(writing, b"tent"[number : number + 1])
        os.close(writing)

    sender = threading.Thread(target=goes_on)
    sender.start()
    with stream:
        programs.store.put(config, "hal01", asked(b"content", 1), stream)
    sender.join()
    assert (Path(config["root"]) / "hal01" / name(1)).read_bytes() == b"content"


def test_a_sender_that_is_cut_off_leaves_nothing(programs: Any, config: dict[str, Any]) -> None:
    stream, writing = pipe(b"cont")
    os.close(writing)
    with stream, pytest.raises(programs.common.Problem, match=r"^4 bytes came, 7 were announced: nothing is stored$"):
        programs.store.put(config, "hal01", asked(b"content", 1), stream)
    assert os.listdir(Path(config["root"]) / "hal01") == []


def test_one_archive_of_a_node_at_a_time(programs: Any, config: dict[str, Any], tmp_path: Path) -> None:
    """The second is told so; when the first is killed the place is free."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    argv = [sys.executable, "-B", str(FILES / "backup_store.py"), str(tmp_path / "config.json"), "put", "hal01"]
    content = bytes(200000)
    now = programs.common.archive_name("hal01", time.time())
    environment = {**os.environ, "SSH_ORIGINAL_COMMAND": asked(content, 1).replace(name(1), now)}
    part = Path(config["root"]) / "hal01" / ".part"
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment) as first:
        assert first.stdin is not None
        first.stdin.write(content[:100000])
        first.stdin.flush()
        until = time.monotonic() + LONG_SECONDS
        while not (part.exists() and part.stat().st_size) and time.monotonic() < until:
            time.sleep(0.05)
        with pytest.raises(programs.common.Problem, match=r"^another archive of hal01 arrives just now$"):
            put(programs, config, 2)
        assert part.stat().st_size, "it is still the first one's"
        first.send_signal(signal.SIGKILL)
        first.wait(LONG_SECONDS)
    put(programs, config, 1)
    assert not part.exists()


def hold(path: str, held: Any, let: Any) -> None:
    sys.path.insert(0, str(FILES))
    folder: Any = importlib.import_module("backup_folder")
    with folder.changing(path):
        held.set()
        let.wait(LONG_SECONDS)


def test_one_that_hangs_is_named_and_not_waited_for_without_end(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = has(programs, config, NOON)
    monkeypatch.setattr(programs.folder, "WAIT_SECONDS", 1)
    said = rf"^another backup_store.py has held {re.escape(str(folder))} for 1 s: look at what it does, then end it$"
    with (
        programs.folder.changing(str(folder)),
        pytest.raises(programs.common.Problem, match=said),
        programs.folder.changing(str(folder)),
    ):
        pass
    with programs.folder.changing(str(folder)):
        pass


def test_who_changes_the_list_waits_for_the_other(programs: Any, config: dict[str, Any]) -> None:
    folder = has(programs, config, NOON)
    spawn = multiprocessing.get_context("spawn")
    held, let = spawn.Event(), spawn.Event()
    other = spawn.Process(target=hold, args=(str(folder), held, let))
    other.start()
    assert held.wait(LONG_SECONDS)
    puts = threading.Thread(target=put, args=(programs, config, 30))
    puts.start()
    puts.join(0.3)
    assert puts.is_alive(), "it waits"
    let.set()
    puts.join(LONG_SECONDS)
    other.join(LONG_SECONDS)
    assert 30 in numbers(folder)


# ---------------------------------------------------------------- what is there


def test_a_sweep_leaves_what_is_whole(programs: Any, config: dict[str, Any]) -> None:
    folder = has(programs, config, 1000, 2000)
    (folder / f"{name(0)}.json").unlink()
    (folder / "other").touch()
    (folder / ".part").touch()
    programs.folder.sweep(str(folder))
    assert sorted(os.listdir(folder)) == [".part", "aside", name(1), f"{name(1)}.json", "other"]
    assert os.listdir(folder / "aside") == [name(0)]


def test_archives_are_listed_newest_first(programs: Any, config: dict[str, Any]) -> None:
    """And of one second by their names."""
    folder = has(programs, config, 1000, 3000, 2000, 2000)
    listed = programs.folder.archives(str(folder))
    assert [one["archive"] for one in listed] == [name(1), name(3), name(2), name(0)]


def test_an_archive_has_the_name_that_it_has(programs: Any, config: dict[str, Any], later: None) -> None:
    """Whatever is written beside it: what is too old is removed by that name."""
    folder = has(programs, config, *(NOON - DAY * back for back in range(9)))
    (folder.parent / "precious").touch()
    path = f"{folder / name(8)}.json"
    programs.common.save(path, dict(programs.common.load(path), archive="../precious"))
    programs.folder.retain(config, str(folder))
    assert (folder.parent / "precious").exists()
    assert numbers(folder) == [0, 1, 2, 6]


@pytest.mark.parametrize("content", ["[]", '{"at": 5}', "null"])
def test_what_the_store_did_not_write_is_named(programs: Any, config: dict[str, Any], content: str) -> None:
    folder = has(programs, config, NOON)
    (folder / f"{name(5)}.json").write_text(content)
    said = f"{folder / name(5)}.json is not what the store writes: move it away"
    with pytest.raises(programs.common.Problem) as problem:
        programs.store.status(config)
    assert str(problem.value) == said
    assert refused(programs, config, 30) == said


def test_what_goes_while_the_list_is_read_is_not_on_it(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = has(programs, config, NOON, NOON - DAY)
    real = programs.folder.load

    def gone(path: str) -> Any:
        if path.endswith(f"{name(1)}.json"):
            os.unlink(path)
        return real(path)

    monkeypatch.setattr(programs.folder, "load", gone)
    assert [one["archive"] for one in programs.folder.archives(str(folder))] == [name(0)]


def test_what_is_beyond_those_to_keep_is_removed(programs: Any, config: dict[str, Any], later: None) -> None:
    folder = has(programs, config, *(NOON - DAY * back for back in range(10)))
    (folder / name(7)).unlink()  # somebody removed it, and what is beside it not
    programs.folder.retain(config, str(folder))
    # Three days; and the newest of the week before (Sunday the 15th).
    assert numbers(folder) == [0, 1, 2, 6]
    assert len(os.listdir(folder)) == 8


def test_the_newest_stays_whatever_is_declared(programs: Any, config: dict[str, Any], later: None) -> None:
    folder = has(programs, config, NOON, NOON - DAY, NOON - 2 * DAY)
    programs.folder.retain({**config, "keep_daily": 0, "keep_weekly": 0}, str(folder))
    assert numbers(folder) == [0]


def test_damaged_ones_stay_and_count_as_none(programs: Any, config: dict[str, Any], later: None) -> None:
    folder = has(programs, config, *(NOON - DAY * back for back in range(6)), damaged=(0, 4))
    programs.folder.retain({**config, "keep_weekly": 0}, str(folder))
    assert numbers(folder) == [0, 1, 2, 3, 4]


def test_a_week_is_that_of_the_calendar_and_its_year(programs: Any) -> None:
    """2027-01-01 is a Friday of the week 53 of 2026, and 2026-01-01 a Thursday of the first."""
    new_year, week = int(time.mktime((2027, 1, 1, 12, 0, 0, 0, 0, -1))), 7 * DAY
    assert programs.folder.kept([new_year - DAY, new_year], 0, 9) == {new_year}
    stamps = [new_year - 52 * week, new_year - week, new_year, new_year + week]
    assert programs.folder.kept(stamps, 0, 9) == set(stamps)
    assert programs.folder.kept(stamps, 0, 3) == set(stamps[1:])
