"""The store takes what is whole, keeps what is declared, and says what is damaged."""

from __future__ import annotations

import errno
import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.roles.backup.archives import sent

pytestmark = pytest.mark.usefixtures("any_time")
DAY = 86400


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "store").mkdir()
    return {"root": str(tmp_path / "store"), "reserve_mb": 0, "keep_daily": 3, "keep_weekly": 2, "quota_mb": 1}


def asked(content: bytes, number: int = 1, node: str = "hal01", word: str = "") -> str:
    digest = hashlib.sha256(content).hexdigest()
    name = f"{node}-20261121T0230{number:02d}Z.tar.gz.gpg"
    return f"put {name} {len(content)} {digest} {word}".strip()


def names(config: dict[str, Any], node: str = "hal01") -> list[str]:
    return sorted(path.name for path in (Path(config["root"]) / node).iterdir() if not path.name.startswith("."))


def test_what_came_whole_is_stored_and_answered(
    programs: Any, config: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    programs.store.put(config, "hal01", asked(b"content"), sent(b"content"))
    digest = hashlib.sha256(b"content").hexdigest()
    assert capsys.readouterr().out == f"stored hal01-20261121T023001Z.tar.gz.gpg {digest}\n"
    assert names(config) == ["hal01-20261121T023001Z.tar.gz.gpg", "hal01-20261121T023001Z.tar.gz.gpg.json"]
    state = programs.store.status(config)
    assert state["nodes"]["hal01"]["age_hours"] == 0.0
    assert state["damaged"] == 0


@pytest.mark.parametrize("came", [b"conten", b"contenT", b"content and more", b""])
def test_what_came_otherwise_is_not_there(programs: Any, config: dict[str, Any], came: bytes) -> None:
    with pytest.raises(programs.common.Problem, match="nothing is stored"):
        programs.store.put(config, "hal01", asked(b"content"), sent(came))
    assert names(config) == []


@pytest.mark.parametrize(
    "words",
    [
        "",
        "ls",
        "put ../../etc/x 1 " + "0" * 64,
        asked(b"x", node="hal02"),
        asked(b"x") + "; rm -rf /",
        asked(b"x") + "\n",
    ],
)
def test_a_node_can_do_nothing_else(programs: Any, config: dict[str, Any], words: str) -> None:
    with pytest.raises(programs.common.Problem, match=r"is answered here|not a name of an archive of hal01"):
        programs.store.put(config, "hal01", words, sent(b"x"))


def test_an_archive_is_never_written_over(programs: Any, config: dict[str, Any]) -> None:
    programs.store.put(config, "hal01", asked(b"one"), sent(b"one"))
    with pytest.raises(programs.common.Problem, match="is there already"):
        programs.store.put(config, "hal01", asked(b"two"), sent(b"two"))


def test_a_full_disk_is_said_and_nothing_is_left(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(programs.common.Problem, match=r"no room for hal01-.* MB have to stay free"):
        programs.store.put({**config, "reserve_mb": 10**9}, "hal01", asked(b"one"), sent(b"one"))

    def full(stream: Any) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(programs.store, "_block", full)
    with pytest.raises(programs.common.Problem, match="the disk is full: nothing is stored"):
        programs.store.put(config, "hal01", asked(b"one"), sent(b"one"))
    assert names(config) == []


def test_what_a_sender_left_that_was_killed_is_written_over(programs: Any, config: dict[str, Any]) -> None:
    """It takes no room from the node's: it would otherwise be the last that it sends."""
    folder = Path(config["root"]) / "hal01"
    folder.mkdir()
    (folder / ".part").write_bytes(bytes(1024**2))
    programs.store.put(config, "hal01", asked(b"one"), sent(b"one"))
    assert names(config) == ["hal01-20261121T023001Z.tar.gz.gpg", "hal01-20261121T023001Z.tar.gz.gpg.json"]
    assert (folder / names(config)[0]).read_bytes() == b"one"
    assert not (folder / ".part").exists()


def test_days_and_weeks_that_have_archives_are_kept(programs: Any) -> None:
    """2026-11-21 is a Saturday. Three archives a day; the first and the last of a day are kept, of a week the last."""
    noon = time.mktime((2026, 11, 21, 12, 0, 0, 0, 0, -1))
    stamps = [noon - DAY * back - before for back in range(30) for before in (0, 3600, 7200)]
    kept = programs.folder.kept(stamps, 3, 2)
    # Three days; and the last of this week and of the one before it (Sunday the 15th).
    days = [noon - DAY * back for back in range(3)]
    assert kept == {*days, *(day - 7200 for day in days), noon - 6 * DAY}
    assert programs.folder.kept(stamps, 0, 1) == {noon}
    assert programs.folder.kept([], 3, 2) == set()


def test_archives_that_stopped_coming_are_not_thrown_away(programs: Any) -> None:
    old = [1000000.0 + DAY * number for number in range(3)]
    assert programs.folder.kept(old, 3, 0) == set(old)


def test_old_archives_are_removed_before_a_new_one_comes(
    programs: Any, config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the one that comes is not looked at. The disk's time is not the clock's here: nothing is of today."""
    monkeypatch.setattr(programs.folder, "_is_young", lambda path: False)
    now = time.time()
    for number in range(9):
        monkeypatch.setattr(programs.store.time, "time", lambda number=number: now + number * DAY)
        programs.store.put(config, "hal01", asked(b"x", number), sent(b"x"))
    left = [name for name in names(config) if name.endswith(".gpg")]
    assert left[-4:] == [f"hal01-20261121T0230{number:02d}Z.tar.gz.gpg" for number in (5, 6, 7, 8)]
    assert 4 <= len(left) <= 6
    assert len(names(config)) == 2 * len(left)


def test_damage_is_found_and_counts_as_no_archive(programs: Any, config: dict[str, Any]) -> None:
    for number in (1, 2):
        programs.store.put(config, "hal01", asked(b"content", number, word="a" * 64), sent(b"content"))
    programs.store.check(config)
    for name in names(config):
        if name.endswith(".gpg"):
            (Path(config["root"]) / "hal01" / name).write_bytes(b"c0ntent")
    with pytest.raises(programs.common.Problem, match=r"damaged: hal01-.*: its content changed"):
        programs.store.check(config)
    state = programs.store.status(config)
    assert state["damaged"] == len(state["nodes"]["hal01"]["archives"])
    assert state["nodes"]["hal01"]["age_hours"] is None
    assert not programs.store.has(config, "hal01", "a" * 64)
