"""Turns to be switched on: never more at once than is declared, whoever asks, and nobody for longer than needed."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster import lock
from hal_cluster.bmc import operations
from hal_cluster.bmc.models import Power
from hal_cluster.bmc.turns import Turns, next_turn
from tests.unit.hal_cluster.bmc.test_deadlines import Moody, limits
from tests.unit.hal_cluster.bmc.test_retry import Clock


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 6), st.integers(1, 20))
def test_in_no_pause_there_are_more_than_are_declared(gaps: list[int], at_once: int, pause: int) -> None:
    now, taken = 0, list[float]()
    for gap in gaps:
        now += gap
        turn = next_turn(taken[-at_once:], now, at_once, pause)
        assert turn >= now
        at_that_time = [one for one in taken if turn - pause < one <= turn]
        assert len(at_that_time) < at_once
        # Nobody waits who need not: it is now, or the last one's, or one of a pause ago frees it.
        assert turn == now or turn in [*taken[-1:], *(one + pause for one in taken)]
        taken.append(turn)


def turns(folder: Path, clock: Clock, at_once: int = 1, pause: float = 5) -> Turns:
    return Turns(folder / "power_on", at_once, pause, clock.monotonic, clock.sleep)


def test_each_waits_for_its_turn_and_the_last_ones_are_kept(tmp_path: Path) -> None:
    clock = Clock()
    for _ in range(3):
        turns(tmp_path, clock).wait()
    assert clock.slept == [5, 5]
    clock.now += 60
    turns(tmp_path, clock).wait()
    assert clock.slept == [5, 5], "the pause was over"
    assert json.loads((tmp_path / "power_on").read_text())["turns"] == [70]
    assert stat.S_IMODE((tmp_path / "power_on").stat().st_mode) == 0o600


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"boot": "another", "turns": [99999999]}', '{"turns": "x"}'])
def test_what_is_no_turn_of_this_uptime_holds_nobody_up(tmp_path: Path, text: str) -> None:
    clock = Clock()
    (tmp_path / "power_on").write_text(text)
    turns(tmp_path, clock).wait()
    assert clock.slept == []


def test_no_pause_needs_no_file(tmp_path: Path) -> None:
    turns(tmp_path, Clock(), pause=0).wait()
    assert os.listdir(tmp_path) == []


def test_what_cannot_be_locked_is_said_before_anything_is_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = turns(tmp_path, Clock())
    monkeypatch.setattr(lock, "WAIT_SECONDS", 0)
    with (
        lock.locked(tmp_path / "power_on.lock", OSError, "x"),
        pytest.raises(OSError, match=r"process \d+ on ") as held,
    ):
        taken.check()
    assert held.value.strerror is not None
    assert held.value.strerror.startswith("turns to be switched on: process ")
    taken.check()
    assert os.listdir(tmp_path) == ["power_on.lock"], "no turn was taken"
    tmp_path.chmod(0o777)
    with pytest.raises(OSError, match="others may write to "):
        taken.check()


@pytest.mark.parametrize(("at_once", "pause"), [(0, 5), (4, -1)])
def test_numbers_that_are_none(tmp_path: Path, at_once: int, pause: float) -> None:
    with pytest.raises(ValueError, match="give 1 or more, and 0 s or more"):
        turns(tmp_path, Clock(), at_once, pause).wait()


def take(folder: Path) -> None:
    Turns(folder / "power_on", 100, 3600).wait()


def test_processes_and_threads_take_turns_one_by_one(tmp_path: Path) -> None:
    """None is lost: each writes what it read and its own."""
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=take, args=(tmp_path,)) for _ in range(4)]
    threads = [threading.Thread(target=take, args=(tmp_path,)) for _ in range(4)]
    for process in processes:
        process.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for process in processes:
        process.join(60)
    assert len(json.loads((tmp_path / "power_on").read_text())["turns"]) == 8


def test_the_turn_comes_before_the_command_and_only_where_there_is_one() -> None:
    clock = Clock()

    def turn() -> None:
        clock.now += 1000

    on = Moody(clock, [Power.ON], [None], 1)
    assert not operations.power_on(on, limits(clock), turn)  # type: ignore[arg-type]
    assert clock.now < 1000, "what is on waits for nothing"
    off = Moody(clock, [Power.OFF, Power.OFF, Power.ON], [None], 1)
    assert operations.power_on(off, limits(clock), turn)  # type: ignore[arg-type]
    assert [at for at, _ in off.sent] == [1000 + 2], "and the time for the power begins then"
    cycled = Moody(clock, [Power.ON, Power.ON, Power.OFF, Power.OFF, Power.OFF, Power.ON], [None], 0)
    operations.cycle(cycled, limits(clock), graceful=True, force=False, turn=turn)  # type: ignore[arg-type]
    (asked, _), (switched, _) = cycled.sent
    assert switched - asked >= 1000
