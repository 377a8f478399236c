"""What the parts of hal-container share: names, small files, words for sizes, mounts, a lock, what a build started."""

from __future__ import annotations

import importlib
import io
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "roles/singularity/files"), str(ROOT / "plugins/module_utils")]

common: Any = importlib.import_module("container_common")
processes: Any = importlib.import_module("container_processes")


def test_a_document_is_written_whole_with_its_mode_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    common.write_json(str(path), {"b": ["ü"], "a": 1})
    assert path.read_text() == '{\n "a": 1,\n "b": [\n  "\\u00fc"\n ]\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    common.write_json(str(path), {}, 0o600)
    assert (common.read_json(str(path), None), stat.S_IMODE(path.stat().st_mode)) == ({}, 0o600)
    assert common.read_json(str(tmp_path / "none"), {"x": 1}) == {"x": 1}
    assert os.listdir(tmp_path) == ["one.json"]


def test_a_document_that_cannot_be_written_leaves_the_old_one_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text("old")
    with pytest.raises(TypeError):
        common.write_json(str(path), {"a": object()})
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["one.json"])


def test_a_document_that_is_damaged_or_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "half").write_text("{")
    with pytest.raises(common.Problem, match=rf"^{re.escape(str(tmp_path))}/half: is damaged: "):
        common.read_json(str(tmp_path / "half"), {})
    with pytest.raises(common.Problem, match=rf"^{re.escape(str(tmp_path))}: cannot be read: Is a directory$"):
        common.read_json(str(tmp_path), {})


@pytest.mark.parametrize("name", ["a", "0.x_y-z", "a" * 63])
def test_these_are_names_of_images(name: str) -> None:
    common.check_name(name)


@pytest.mark.parametrize("name", ["", "a" * 64, "A", "-a", ".a", "a/b", "a.sif", "a--b"])
def test_these_are_not(name: str) -> None:
    with pytest.raises(common.Problem, match=rf"^{re.escape(repr(name))} is not a name of an image: small letters"):
        common.check_name(name)


def test_sizes_in_words() -> None:
    assert [common.in_words(size) for size in (1_500_000, 999_900_000, 1_000_000_000)] == [
        "1.5 MB",
        "999.9 MB",
        "1.0 GB",
    ]


def test_a_path_is_on_the_longest_mount_that_it_is_below(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [("/", "xfs"), ("/no-such", "nfs"), ("/no-such/in", "gpfs")]
    monkeypatch.setattr(common, "mounts", lambda: table)
    paths = ("/no-such/in", "/no-such/in/x", "/no-such/inner", "/elsewhere")
    assert [common.file_system_of(path)[1] for path in paths] == ["gpfs", "gpfs", "nfs", "xfs"]
    table.clear()
    assert common.file_system_of("/no-such") == ("/", "unknown")


def test_what_is_of_an_id_or_of_a_range_is_found_by_any_of_its_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    status = {"Uid": "1 2 3 4", "State": "S (sleeping)", "Threads": "1"}
    text = "".join(f"{key}:\t{value}\n" for key, value in status.items())
    monkeypatch.setattr(processes, "open", lambda *_: io.BytesIO(text.encode()), raising=False)
    of_ids = [processes._belongs("7", uid, 100, 9) for uid in range(6)]
    assert of_ids == [False, True, True, True, True, False]
    ranges = [(4, 1), (5, 9), (0, 1), (0, 2), (4, 0)]
    assert [processes._belongs("7", 50, *one) for one in ranges] == [True, False, False, True, False]


@pytest.mark.parametrize(("state", "threads", "alive"), [("Z", "1", False), ("Z", "2", True), ("S", "1", True)])
def test_what_has_ended_with_all_its_threads_is_not_running(
    monkeypatch: pytest.MonkeyPatch, state: str, threads: str, *, alive: bool
) -> None:
    text = f"State:\t{state} (x)\nUid:\t9 9 9 9\nThreads:\t{threads}\n".encode()
    monkeypatch.setattr(processes, "open", lambda *_: io.BytesIO(text), raising=False)
    assert processes._belongs("7", 9, 100, 1) is alive


def test_jobs_of_the_user_are_forgotten_and_those_of_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "cron"
    (spool / "folder").mkdir(parents=True)
    (spool / "job").touch()
    monkeypatch.setattr(processes, "SPOOLS", (str(tmp_path / "none"), str(spool)))
    assert processes._forget_jobs(os.getuid() + 1) == []
    assert processes._forget_jobs(os.getuid()) == [str(spool / "job")]
    assert os.listdir(spool) == ["folder"]


def test_a_build_is_ended_until_nothing_of_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new job, then a process: each of them is a reason to look again."""
    rounds, ended = iter([(["job"], []), ([], [7, 5]), ([], [])]), []
    now: list[Any] = [None]

    def jobs(uid: int) -> list[str]:
        now[0] = next(rounds)
        return list(now[0][0])

    monkeypatch.setattr(processes, "_forget_jobs", jobs)
    monkeypatch.setattr(processes, "_end_at_once", lambda uid: ended.append(("all", uid)))
    monkeypatch.setattr(processes, "running", lambda *given: list(now[0][1]))
    monkeypatch.setattr(os, "kill", lambda pid, number: ended.append((pid, number)))
    processes.end_all(4000, 100, 9)
    assert ended == [("all", 4000), ("all", 4000), (7, signal.SIGKILL), (5, signal.SIGKILL), ("all", 4000)]


def test_what_cannot_be_ended_is_named_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE_SECONDS", -1)
    monkeypatch.setattr(processes, "_forget_jobs", lambda uid: [])
    monkeypatch.setattr(processes, "_end_at_once", lambda uid: None)
    monkeypatch.setattr(processes, "running", lambda *given: [12, 5])
    with pytest.raises(common.Problem, match=r"^processes of the build cannot be ended: 5, 12; nothing was published"):
        processes.end_all(4000, 100, 9)


def test_a_process_of_this_user_is_among_those_that_run() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            assert process.pid in processes.running(os.getuid(), 0, 0)
        finally:
            process.kill()
