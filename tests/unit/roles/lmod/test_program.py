"""hal-modules: when Lmod's cache is current, what makes it anew, and which files are nobody's."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, beside, interpreter

PROGRAM = Path(__file__).resolve().parents[4] / "roles/lmod/files/hal_modules.py"
OURS = "-- Written by Ansible, role cuda; changes made here are lost.\n"


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    """A tree with one module, a day old, and a folder for the cache."""
    (tmp_path / "tree/cuda").mkdir(parents=True)
    (tmp_path / "tree/cuda/10.2.lua").write_text(OURS)
    (tmp_path / "tree/.changed").write_text("")
    (tmp_path / "cache").mkdir()
    return {"tree": str(tmp_path / "tree"), "cache_dir": str(tmp_path / "cache")}


@pytest.fixture
def spider(hal_modules_program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lmod's spider, which is noted; it writes a list."""
    calls: list[str] = []

    def write(tree: str, target: str) -> None:
        calls.append(tree)
        Path(target).write_text("spiderT = {}\n")

    monkeypatch.setattr(hal_modules_program, "spider", write)
    return calls


def made(settings: dict[str, str]) -> Path:
    return Path(settings["cache_dir"]) / "spiderT.lua"


def test_a_cache_is_made_once_and_again_after_every_kind_of_change(
    hal_modules_program: ModuleType, settings: dict[str, str], spider: list[str]
) -> None:
    program, tree = hal_modules_program, Path(settings["tree"])
    assert program.state(settings) == "there is none"
    assert program.renew(settings) == "the cache is new"
    assert (program.state(settings), program.renew(settings)) == ("", "the cache is current")
    assert spider == [str(tree)]
    assert made(settings).stat().st_mode & 0o777 == 0o644
    assert os.listdir(settings["cache_dir"]) == [".lock", "spiderT.lua"] or len(os.listdir(settings["cache_dir"])) == 2

    def changed(words: str) -> None:
        assert program.state(settings) == f"it is older than {tree}/{words}".rstrip("/")
        # The list of a day ago, as it would be had nobody changed anything since.
        program.renew(settings)
        assert program.state(settings) == ""

    time.sleep(1.1)
    (tree / "cuda/10.1.lua").write_text(OURS)
    changed("cuda/10.1.lua")
    time.sleep(1.1)
    (tree / "cuda/10.1.lua").chmod(0o600)
    changed("cuda/10.1.lua")
    time.sleep(1.1)
    (tree / "cuda/10.1.lua").unlink()
    changed("cuda")


def test_a_change_in_the_second_of_the_reading_is_not_missed(
    hal_modules_program: ModuleType, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody writes while the tree is read: that list is not kept."""
    calls: list[str] = []

    def meddled(tree: str, target: str) -> None:
        calls.append(target)
        Path(target).write_text("spiderT = {}\n")
        if len(calls) == 1:
            (Path(tree) / "cuda/11.0.lua").write_text(OURS)

    monkeypatch.setattr(hal_modules_program, "spider", meddled)
    hal_modules_program.renew(settings)
    assert len(calls) == 2
    assert hal_modules_program.state(settings) == ""


def test_a_tree_that_never_rests_is_told(
    hal_modules_program: ModuleType, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hal_modules_program, "TRIES", 1)

    def meddled(tree: str, target: str) -> None:
        Path(target).write_text("spiderT = {}\n")
        (Path(tree) / "cuda/11.0.lua").write_text(OURS)

    monkeypatch.setattr(hal_modules_program, "spider", meddled)
    with pytest.raises(hal_modules_program.Problem, match="the tree changes faster than it can be read"):
        hal_modules_program.renew(settings)


def test_a_list_of_a_time_to_come_is_not_believed(
    hal_modules_program: ModuleType, settings: dict[str, str], spider: list[str]
) -> None:
    """It was made when the clock was ahead; what changed since would be older than it."""
    hal_modules_program.renew(settings)
    later = time.time() + 3600
    os.utime(made(settings), (later, later))
    assert "the clock was ahead" in hal_modules_program.state(settings)
    assert hal_modules_program.renew(settings) == "the cache is new"
    assert hal_modules_program.state(settings) == ""


def test_what_was_changed_when_the_clock_was_ahead_does_not_stop_the_list(
    hal_modules_program: ModuleType, settings: dict[str, str], spider: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, path = hal_modules_program, str(Path(settings["tree"]) / "cuda/10.2.lua")
    look, give, ahead = os.lstat, os.lchown, {path}

    def lstat(one: str) -> Any:
        seen = look(one)
        return SimpleNamespace(st_ctime=seen.st_ctime + 3600 * (one in ahead))

    def lchown(one: str, owner: int, group: int) -> None:
        before = look(one)
        give(one, owner, group)
        after = look(one)
        assert after.st_ctime_ns > before.st_ctime_ns, "the kernel noted no change"
        assert (after.st_uid, after.st_gid, after.st_mode) == (before.st_uid, before.st_gid, before.st_mode)
        ahead.discard(one)

    monkeypatch.setattr(program, "os", SimpleNamespace(**{**vars(os), "lstat": lstat, "lchown": lchown}))
    assert program.renew(settings) == "the cache is new"
    assert (spider, ahead) == ([settings["tree"]], set())
    assert program.state(settings) == ""


def test_other_forms_of_the_list_go(
    hal_modules_program: ModuleType, settings: dict[str, str], spider: list[str]
) -> None:
    """Lmod takes a compiled or an older list first, whatever is in it."""
    for name in ("spiderT.luac_5.1", "spiderT.old.lua"):
        (Path(settings["cache_dir"]) / name).write_text("x")
    hal_modules_program.renew(settings)
    assert sorted(os.listdir(settings["cache_dir"])) == [".lock", "spiderT.lua"]


def test_a_spider_that_fails_leaves_the_old_list(
    hal_modules_program: ModuleType, settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lmod").mkdir()
    script = tmp_path / "lmod/spider"
    script.write_text("#!/bin/sh\necho 'lua: broken' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr(hal_modules_program, "LMOD", str(tmp_path / "lmod"))
    made(settings).write_text("old\n")
    os.utime(made(settings), (1, 1))
    with pytest.raises(hal_modules_program.Problem, match="Lmod's spider failed: lua: broken"):
        hal_modules_program.renew(settings)
    assert made(settings).read_text() == "old\n"


def test_files_that_no_role_wrote_are_named(hal_modules_program: ModuleType, settings: dict[str, str]) -> None:
    tree = Path(settings["tree"])
    assert hal_modules_program.foreign(str(tree)) == []
    (tree / "mine").mkdir()
    (tree / "mine/1.0").write_text("#%Module\n")
    (tree / "cuda/8.lua").symlink_to("10.2.lua")
    (tree / "loop").symlink_to(".")
    assert hal_modules_program.foreign(str(tree)) == [
        str(tree / "loop"),
        str(tree / "cuda/8.lua"),
        str(tree / "mine/1.0"),
    ]


@pytest.mark.parametrize("version", EVERY)
def test_what_it_says_on_a_node(version: str, settings: dict[str, str], tmp_path: Path) -> None:
    python = interpreter(version)
    path = tmp_path / "modules.json"

    def run(*words: str) -> Any:
        argv = [*beside(python), str(PROGRAM), *words, "--settings", str(path)]
        return subprocess.run(argv, capture_output=True, text=True, check=False, env={"LC_ALL": "C.UTF-8"})

    assert (run("status").returncode, "cannot be read" in run("status").stderr) == (1, True)
    path.write_text(json.dumps(settings))
    strange = Path(settings["tree"]) / "größe.lua"
    strange.write_text("mine\n")
    assert json.loads(run("status").stdout) == {"cache": "there is none", "foreign": [str(strange)]}
    path.write_text(json.dumps({**settings, "tree": str(tmp_path / "none")}))
    assert json.loads(run("status").stdout) == {"cache": f"{tmp_path}/none is not there", "foreign": []}
    assert run("renew").stderr == f"hal-modules: {tmp_path}/none is not there\n"


def test_a_word_that_it_does_not_know_is_refused_and_its_help_says_what_it_is_for(
    hal_modules_program: ModuleType, settings: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "modules.json"
    path.write_text(json.dumps(settings))
    for words, said in ((["renw"], "invalid choice: 'renw'"), ([], "command")):
        with pytest.raises(SystemExit) as ended:
            hal_modules_program.main([*words, "--settings", str(path)])
        told = capsys.readouterr()
        assert (ended.value.code, told.out, said in told.err) == (2, "", True)
        assert told.err.startswith("usage: hal-modules [-h] {status,renew}\n")
    assert os.listdir(settings["cache_dir"]) == []
    with pytest.raises(SystemExit) as ended:
        hal_modules_program.main(["--help"])
    told = capsys.readouterr()
    assert (ended.value.code, "Lmod's cache of the tree of modulefiles" in told.out, "--settings" in told.out) == (
        0,
        True,
        False,
    )
    assert hal_modules_program.main(["status", "--settings", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == {"cache": "there is none", "foreign": []}
