"""Lmod's list of the tree, step by step: how its spider is called, what is believed, what an error says."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hal_cluster.rules.lmod.lua import call, comment, quoted

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/", "LC_ALL": "C", "LMOD_PACKAGE_PATH": "/etc/lmod"}


@pytest.fixture
def lmod(hal_modules_program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function: a shell's words -> Lmod's spider does that."""
    (tmp_path / "lmod").mkdir()
    monkeypatch.setattr(hal_modules_program, "LMOD", str(tmp_path / "lmod"))

    def plant(words: str) -> None:
        (tmp_path / "lmod/spider").write_text(f"#!/bin/sh\n{words}\n")
        (tmp_path / "lmod/spider").chmod(0o755)

    return plant


def test_a_spider_gets_the_tree_and_an_environment_of_ours(
    hal_modules_program: ModuleType, lmod: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMOD_ADMIN_FILE", "/mine")
    lmod('cat; echo "$*"; tr "\\0" "\\n" </proc/$$/environ')
    hal_modules_program.spider("/tree", str(tmp_path / "list"))
    first, *rest = (tmp_path / "list").read_text().splitlines()
    assert first == "-o spiderT /tree"
    assert dict(line.split("=", 1) for line in rest) == ENVIRONMENT


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("echo list; exit 3", "exit status 3"), ("echo list; echo ' one ' >&2; echo two >&2; exit 1", "one "),
        ("true", "exit status 0"), ("echo why >&2", "why"),
    ],
)  # fmt: skip
def test_a_spider_without_a_list_has_failed(
    hal_modules_program: ModuleType, lmod: Any, tmp_path: Path, words: str, said: str
) -> None:
    lmod(words)
    with pytest.raises(hal_modules_program.Problem) as refused:
        hal_modules_program.spider("/tree", str(tmp_path / "list"))
    assert str(refused.value) == f"Lmod's spider failed: {said}"


def test_a_spider_that_does_not_end_is_killed(
    hal_modules_program: ModuleType, lmod: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lmod(f"echo $$ >'{tmp_path}/number'; exec sleep 600")
    now = [0.0]
    killed: list[int] = []
    kill = subprocess.Popen.kill

    def noted(process: subprocess.Popen[bytes]) -> None:
        killed.append(process.pid)
        kill(process)

    def sleep(seconds: float) -> None:
        if (tmp_path / "number").exists() and (tmp_path / "number").read_text().strip():
            now[0] += 60.0
        assert seconds == 0.05

    monkeypatch.setattr(subprocess.Popen, "kill", noted)
    monkeypatch.setattr(hal_modules_program.time, "time", lambda: now[0])
    monkeypatch.setattr(hal_modules_program.time, "sleep", sleep)
    with pytest.raises(hal_modules_program.Problem, match=r"^Lmod's spider has not ended after 120 s$"):
        hal_modules_program.spider("/tree", str(tmp_path / "list"))
    assert now == [120.0]
    assert killed == [int((tmp_path / "number").read_text())]


@pytest.mark.parametrize(("made", "words"), [(100, ""), (200, ""), (99, "it is older than {}/a"), (201, "{ahead}")])
def test_a_list_is_believed_that_is_not_older_than_the_tree_nor_of_a_time_to_come(
    hal_modules_program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: int, words: str
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "spiderT.lua").touch()
    os.utime(tmp_path / "spiderT.lua", (made, made + 0.5))
    monkeypatch.setattr(hal_modules_program.time, "time", lambda: 200.0)
    monkeypatch.setattr(hal_modules_program, "newest", lambda _: (100, f"{tree}/a"))
    ahead = "it is dated in the future: the clock was ahead when it was made"
    expected = words.format(tree, ahead=ahead)
    assert hal_modules_program.state({"tree": str(tree), "cache_dir": str(tmp_path)}) == expected


def test_files_of_a_tree_are_told_with_folders_and_links_sorted(
    hal_modules_program: ModuleType, tmp_path: Path
) -> None:
    for name in ("b/2", "b/1", "a/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "c").symlink_to("a")
    expected = ["", "/c", "/a", "/a/1", "/b", "/b/1", "/b/2"]
    assert [path.removeprefix(str(tmp_path)) for path in hal_modules_program.files(str(tmp_path))] == expected
    assert hal_modules_program.newest(str(tmp_path / "none")) == (0, "")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / ".changed").touch()
    (tmp_path / "a/.changed").touch()
    (tmp_path / "a/1").write_text("-- Written by Ansible, role a_1; more")
    (tmp_path / "b/1").write_text(" -- Written by Ansible, role a_1; more")
    foreign = hal_modules_program.foreign(str(tmp_path))
    names = ["/c", "/pipe", "/a/.changed", "/b/1", "/b/2"]
    assert [path.removeprefix(str(tmp_path)) for path in foreign] == names


def test_an_error_is_one_line_with_its_file(
    hal_modules_program: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "settings"
    settings.write_text("{")
    words = ["renew", "--settings", str(settings)]
    assert hal_modules_program.main(words) == 1
    assert capsys.readouterr().err.startswith(f"hal-modules: {settings} cannot be read: ")
    settings.write_text(json.dumps({"tree": str(tmp_path), "cache_dir": str(tmp_path / "none")}))
    assert hal_modules_program.main(words) == 1
    said = f"hal-modules: {tmp_path}/none/.lock cannot be locked: No such file or directory\n"
    assert capsys.readouterr().err == said


def test_a_list_has_the_mode_and_the_time_of_the_second_before_its_reading(
    hal_modules_program: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, work = [1000.25], tmp_path / "cache"
    work.mkdir()
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    def spider(_: str, target: str) -> None:
        now[0] += 7
        Path(target).write_text("list")
        Path(target).chmod(0o600)

    monkeypatch.setattr(hal_modules_program.time, "time", lambda: now[0])
    monkeypatch.setattr(hal_modules_program.time, "sleep", sleep)
    monkeypatch.setattr(hal_modules_program, "spider", spider)
    hal_modules_program._make("/tree", str(work))
    assert waited == [pytest.approx(0.76)]
    found = (work / "spiderT.lua").stat()
    assert (found.st_mtime, stat.S_IMODE(found.st_mode), os.listdir(work)) == (1000, 0o644, ["spiderT.lua"])


def test_lua_gets_the_same_bytes_again() -> None:
    assert quoted('a"\\\n\t\x00\x1f\x7fü') == '"a\\"\\\\\\n\\t\\000\\031\\127ü"'
    assert call("f", "a", "b") == 'f("a", "b")'
    assert comment("a\n  b") == "-- a b"
