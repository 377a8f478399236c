"""What a killed rollout has left here: it is ended, and nobody else is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.rollout import notes, processes
from hal_cluster.rollout.notes import Note, clear_away
from hal_cluster.rollout.processes import Here, Life, judge, lives, started
from tests.unit.hal_cluster.rollout.conftest import forks, until

HERE = Here.look()
# A rollout with two forks, which do not end with it.
RUN = """
import os, sys, time
from pathlib import Path
from hal_cluster.rollout.notes import Note
from hal_cluster.rollout.processes import Here, started
us = {**vars(Here.look()), "run": sys.argv[2], "pid": os.getpid(), "start": started(os.getpid()), "command": "site\\33"}
note = Note.begin(Path(sys.argv[1]), us)
for _ in range(2):
    if os.fork() == 0:
        time.sleep(3600)
print("begun", flush=True)
time.sleep(3600)
"""


class Runs:
    """Rollouts of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.begun: list[subprocess.Popen[str]] = []

    def begin(self, name: str) -> tuple[subprocess.Popen[str], Path]:
        """One that has begun, and its note."""
        words = [sys.executable, "-c", RUN, str(self.folder), name]
        run = subprocess.Popen(words, cwd=Path(__file__).parents[4], stdout=subprocess.PIPE, text=True)
        self.begun.append(run)
        assert run.stdout
        assert run.stdout.readline() == "begun\n"
        return run, self.folder / f"{name}.json"

    def kill(self, run: subprocess.Popen[str]) -> None:
        """End its first process alone."""
        run.kill()
        run.wait()


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    runs = Runs(tmp_path / "rollouts")
    yield runs
    for note in runs.folder.glob("*.json"):
        for pid in forks(note):
            os.kill(pid, signal.SIGKILL)
    for run in runs.begun:
        runs.kill(run)


@pytest.mark.parametrize("pidfd", [True, False])
def test_what_a_killed_rollout_left_is_ended_and_a_living_one_is_not(
    runs: Runs, pidfd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not pidfd:

        def none(_pid: int) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", none)
    dead, left = runs.begin("dead")
    _living, kept = runs.begin("living")
    assert clear_away(runs.folder, HERE) == []
    assert (len(forks(left)), len(forks(kept))) == (3, 3)
    runs.kill(dead)
    assert len(forks(left)) == 2
    assert clear_away(runs.folder, HERE) == ["ended 2 processes that a killed rollout had left: site\\x1b"]
    until(lambda: not left.exists(), "its note is still there")
    assert len(forks(kept)) == 3
    assert clear_away(runs.folder, HERE) == []


def test_who_only_reads_the_note_or_has_its_number_is_not_ended(runs: Runs, tmp_path: Path) -> None:
    dead, left = runs.begin("dead")
    runs.kill(dead)
    with subprocess.Popen(["sleep", "3600"]) as innocent:
        try:
            assert not notes._end(innocent.pid, left)
            assert not notes._end_by_number(innocent.pid, left)
            assert innocent.poll() is None
        finally:
            innocent.kill()
    assert not notes._end(innocent.pid, left), "it is gone"
    clear_away(runs.folder, HERE)


@pytest.mark.parametrize(
    "note", [b"", b"[]", b"{", json.dumps({**vars(HERE), "boot": "x", "machine": "x", "pid": 1, "start": 1}).encode()]
)
def test_a_note_that_says_nothing_of_this_machine_ends_nobody(runs: Runs, note: bytes) -> None:
    dead, left = runs.begin("dead")
    runs.kill(dead)
    left.write_bytes(note)
    assert clear_away(runs.folder, HERE) == []
    assert len(forks(left)) == 2


def test_a_note_that_nobody_holds_goes(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("")
    assert clear_away(tmp_path, HERE) == []
    assert list(tmp_path.iterdir()) == []
    assert clear_away(tmp_path / "none", HERE) == []


def test_what_does_not_end_is_named(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, left = runs.begin("dead")
    runs.kill(dead)
    monkeypatch.setattr(notes, "_end", lambda *_: False)
    monkeypatch.setattr(notes, "PAUSE_SECONDS", 0)
    numbers = ", ".join(map(str, sorted(forks(left))))
    said = clear_away(runs.folder, HERE)
    assert said == [f"a rollout that is gone has left processes here that do not end: {numbers}"]
    assert left.exists()


def holder(**more: Any) -> dict[str, Any]:
    return {**vars(HERE), "pid": os.getpid(), "start": started(os.getpid()), **more}


@pytest.mark.parametrize(
    ("said", "life"),
    [
        (holder(), Life.LIVES),
        (holder(start=1), Life.OVER),  # another process has its number now
        (holder(pid=2**22 + 1), Life.OVER),
        (holder(pid=2**70), Life.OVER),
        (holder(boot="another"), Life.OVER),  # this controller was booted
        (holder(boot="another", namespace="another"), Life.OVER),
        (holder(namespace="another"), Life.UNKNOWN),  # a container beside
        (holder(boot="another", machine="another"), Life.UNKNOWN),
        (holder(boot="another", machine=""), Life.UNKNOWN),
        (holder(pid="1"), Life.UNKNOWN),
        (holder(pid=True), Life.UNKNOWN),
        (holder(pid=-1), Life.UNKNOWN),
        (holder(start=None), Life.UNKNOWN),
        ({}, Life.UNKNOWN),
    ],
)
def test_only_what_can_be_seen_is_judged(said: dict[str, Any], life: Life) -> None:
    assert judge(said, HERE) is life


def test_without_a_name_of_its_own_a_machine_is_not_known_again() -> None:
    nameless = Here(HERE.host, "", HERE.boot, HERE.namespace)
    assert judge(holder(machine="", boot="another"), nameless) is Life.UNKNOWN
    assert judge(holder(machine=""), nameless) is Life.LIVES


@pytest.mark.parametrize("text", [b"", b"\n", b"uninitialized\n", b"\xff" * 32, b"0123456789abcdef"])
def test_an_id_that_many_machines_have_names_none(text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two controllers of one image and one name, each booted: neither may think that it was the other."""
    monkeypatch.setattr(processes, "MACHINE_ID", tmp_path / "machine-id")
    (tmp_path / "machine-id").write_bytes(b"0123456789abcdef0123456789abcdef\n")
    named = Here.look()
    assert judge({**vars(named), "boot": "another", "pid": 1, "start": 1}, named) is Life.OVER
    (tmp_path / "machine-id").write_bytes(text)
    nameless = Here.look()
    assert judge({**vars(nameless), "boot": "another", "pid": 1, "start": 1}, nameless) is Life.UNKNOWN


def test_a_process_that_ended_and_was_not_buried_is_over() -> None:
    ended = subprocess.Popen(["true"])
    until(lambda: (processes.PROC / f"{ended.pid}/stat").read_text().split()[2] == "Z", "it does not end")
    assert started(ended.pid) is None
    ended.wait()


def test_a_process_that_hides_counts_as_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def hides(*_: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(processes, "PROC", tmp_path)
    monkeypatch.setattr(os, "kill", hides)
    assert lives(4711, 1)


def test_the_note_is_seen_only_when_it_is_held(tmp_path: Path) -> None:
    note = Note.begin(tmp_path / "a", {"run": "x"})
    assert notes._held(note.path)
    note.end()
    assert not note.path.exists()
