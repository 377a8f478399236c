"""The child that asks, and what is left of it: its answer, its death, its hang. No pipe and no file stays."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest


def handles() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def probe(program: Any, tmp_path: Path) -> Any:
    """A probe with time enough for a busy machine."""
    return program.Probe({"path": str(tmp_path), "run_dir": str(tmp_path), "timeout_seconds": 100.0, "keep": 5})


def test_an_answer_is_that_of_a_child_in_the_minute_that_it_is(
    program: Any, probe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(path: bytes, turn: int) -> dict[str, Any]:
        return {"path": path.decode(), "turn": turn, "ours": os.getpid()}

    monkeypatch.setattr(program, "measure", measure)
    monkeypatch.setattr(program.time, "time", lambda: 360_000.5)
    before = handles()
    answer = probe._ask()
    os.waitpid(answer["ours"], 0)
    assert answer.pop("ours") != os.getpid()
    assert answer == {"path": str(tmp_path), "turn": 6000}
    assert (handles(), os.listdir(tmp_path)) == (before, [])


def test_a_child_that_was_killed_is_told_at_once(
    program: Any, probe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its end closes the pipe: nobody waits for the timeout."""
    pid = tmp_path / "pid"

    def measure(path: bytes, turn: int) -> Any:
        pid.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(program, "measure", measure)
    before = handles()
    assert probe._ask() == {"error": "killed"}
    assert os.WTERMSIG(os.waitpid(int(pid.read_text()), 0)[1]) == signal.SIGKILL
    assert (handles(), os.listdir(tmp_path)) == (before, ["pid"])


def test_a_child_that_hangs_is_left_with_its_number_and_the_time_when_it_began(
    program: Any, probe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    moments = iter([1000.25, 1007.75])
    monkeypatch.setattr(program, "measure", lambda path, turn: fifo.read_text())
    monkeypatch.setattr(program, "uptime", lambda: next(moments))
    probe.config["timeout_seconds"] = 0.0
    before = handles()
    answer = probe._ask()
    child = json.loads((tmp_path / "child.json").read_text())
    try:
        assert answer == {"timed_out": True, "error": "timeout", "hung_seconds": 7}
        assert child == {"pid": child["pid"], "started": program.started(child["pid"]), "since": 1000.25}
        assert program.is_alive(child)
        assert handles() == before
    finally:
        os.kill(child["pid"], signal.SIGKILL)
        os.waitpid(child["pid"], 0)
