"""The steps that all kinds of a restore share: what is unpacked, stopped and said, and what is said when one fails."""

from __future__ import annotations

import errno
import json
import os
import tarfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_node.digest import sha256_of


def words_of(stamp: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "the disk is full: /x"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full: No space left on device"),
        (OSError(errno.EIO, "Input/output error", "/x"), "/x: Input/output error"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (ValueError("two\n  lines"), "two lines"),
        (ValueError(), "ValueError"),
    ],
)
def test_an_error_is_one_line(programs: Any, error: Exception, said: str) -> None:
    assert programs.restore_common.words(error) == said


def test_a_unit_runs_when_systemctl_says_so(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "systemctl"
    program.write_text(f'#!/bin/sh\necho noise\necho noise >&2\necho "$@" >>{tmp_path}/told\n[ "$3" = munge ]\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert [programs.restore_common.active(unit) for unit in ("munge", "slurmctld")] == [True, False]
    assert (tmp_path / "told").read_text() == "is-active --quiet munge\nis-active --quiet slurmctld\n"


@pytest.fixture
def archive(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """An archive of two sources of files, of which both stop the same units, and which of these were told what."""
    monkeypatch.setattr(programs.restore, "ASIDE", str(tmp_path / "aside"))
    stage, sources = tmp_path / "stage", []
    for name in ("first", "second"):
        (tmp_path / name).write_text(name)
        sources.append(
            {"name": name, "kind": "files", "paths": [str(tmp_path / name)], "stops": ["slapd", "munge", "idle"]}
        )
        programs.sources.save(sources[-1], str(stage / name))
    made = int(time.time()) + 100
    said = {"site": "hal", "node": "x", "made": made, "sources": [{"name": one["name"]} for one in sources]}
    packed = programs.archive.pack(str(stage), said, str(tmp_path / "archive.tar.gz"))
    result = {
        "made": made,
        "plain_sha256": sha256_of(str(tmp_path / "archive.tar.gz")),
        "sources": programs.contents.chosen(*packed, sources, []),
    }
    for name in ("first", "second"):
        (tmp_path / name).write_text("another")
    (tmp_path / "work").mkdir()
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(programs.restore, "run", lambda argv: told.append(tuple(argv)))
    monkeypatch.setattr(programs.restore, "active", lambda unit: unit != "idle")
    return SimpleNamespace(
        path=str(tmp_path / "archive.tar.gz"), work=str(tmp_path / "work"), told=told, result=result, made=made
    )


def put(programs: Any, archive: SimpleNamespace, *numbers: int) -> Any:
    result = {**archive.result, "sources": [archive.result["sources"][number] for number in numbers]}
    return programs.restore.put(result, archive.path, archive.work, False)


def test_what_was_stopped_is_started_once(programs: Any, archive: SimpleNamespace, tmp_path: Path) -> None:
    """And nothing that did not run."""
    assert put(programs, archive, 0, 1) == ["first: 1 files replaced", "second: 1 files replaced"]
    words = [("stop", "slapd"), ("stop", "munge"), ("start", "slapd"), ("start", "munge")]
    assert archive.told == [("systemctl", *one) for one in words]
    (aside,) = (tmp_path / "aside").iterdir()
    assert abs(time.mktime(time.strptime(aside.name, "%Y%m%dT%H%M%S")) - time.time()) < 3600


def test_only_what_was_chosen_is_unpacked(
    programs: Any, archive: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[list[str]] = []
    prepare = programs.restore_files.prepare

    def noted(source: Any, folder: str) -> Any:
        unpacked.append(os.listdir(os.path.dirname(folder)))
        return prepare(source, folder)

    monkeypatch.setattr(programs.restore_files, "prepare", noted)
    assert put(programs, archive, 1) == ["second: 1 files replaced"]
    assert unpacked == [["second"]]
    assert (tmp_path / "first").read_text() == "another"


def test_what_is_newer_is_named_with_both_times(programs: Any, archive: SimpleNamespace, tmp_path: Path) -> None:
    later = archive.made + 60
    os.utime(tmp_path / "second", (later, later))
    with pytest.raises(programs.common.Problem) as newer:
        put(programs, archive, 0, 1)
    assert str(newer.value) == (
        f"second is newer than the archive ({words_of(archive.made)}): 1 files differ, the newest of {words_of(later)}"
    )
    assert (os.listdir(archive.work), archive.told) == ([], [])


def test_what_cannot_be_unpacked_is_an_error_in_one_line(
    programs: Any, archive: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise tarfile.ReadError("unexpected\nend of data")

    monkeypatch.setattr(programs.restore.tarfile.TarFile, "extractall", broken)
    with pytest.raises(programs.common.Problem, match=r"^unexpected end of data$"):
        put(programs, archive, 0)
    assert (os.listdir(archive.work), archive.told) == ([], [])


def test_what_is_unpacked_keeps_its_mode_in_every_python(
    programs: Any, archive: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of today change modes and owners, each release otherwise, unless the archive has a filter of its own."""
    extractall = tarfile.TarFile.extractall
    kept: list[Any] = []

    def noted(self: Any, folder: str, members: Any) -> None:
        kept.extend(self.extraction_filter(member, folder) is member for member in members)
        extractall(self, folder, members)

    monkeypatch.setattr(tarfile.TarFile, "extractall", noted)
    assert put(programs, archive, 0) == ["first: 1 files replaced"]
    assert kept == [True]


def test_room_is_what_is_unpacked(programs: Any, archive: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(programs.restore, "need_room", lambda *words: asked.append(words))
    put(programs, archive, 0)
    put(programs, archive, 0, 1)
    size = len("first")
    assert asked == [(archive.work, bytes, 64, "the unpacked archive") for bytes in (size, size + len("second"))]


def test_what_is_left_is_said_with_its_place(
    programs: Any, archive: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(folder: str) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", folder + "/x")

    monkeypatch.setattr(programs.restore.shutil, "rmtree", busy)
    with pytest.raises(programs.common.Problem) as failed:
        put(programs, archive, 0)
    (folder,) = (os.path.join(archive.work, name) for name in os.listdir(archive.work))
    assert os.path.basename(folder).startswith("unpacked-")
    assert str(failed.value) == (
        f"{folder} is left, with what was decrypted: {folder}/x: Device or resource busy."
        " Replaced already: first: 1 files replaced"
    )


def test_the_plan_is_a_line_a_source_and_one_a_path(programs: Any, archive: SimpleNamespace, tmp_path: Path) -> None:
    later = archive.made + 60
    os.utime(tmp_path / "first", (later, later))
    archive.result["sources"][1]["stops"] = []
    (tmp_path / "second").write_text("second")
    there = f"1 files differ, the newest of {words_of(later)}"
    line = f"first: {there}. NEWER than the archive; stops slapd, munge, idle meanwhile"
    same = "1 files, the same as in the archive"
    plan = programs.restore.look(archive.result)
    first, second = plan["sources"]
    assert (plan["made"], [first.pop("id").split()[:2], second.pop("id").split()[:2]]) == (
        words_of(archive.made),
        [["first", "True"], ["second", "False"]],
    )
    assert first["lines"].pop().startswith(f"  {tmp_path}/first: replaced, 0")
    assert first == {"name": "first", "kind": "files", "there": there, "newer": True, "lines": [line]}
    assert second == {**first, "name": "second", "there": same, "newer": False, "lines": ["second: " + same]}


def test_what_the_command_line_says_is_done(
    programs: Any, archive: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tmp_path / "result.json"
    result.write_text(json.dumps(archive.result))
    assert programs.restore.command(["look", str(result)]) == 0
    assert capsys.readouterr().out == json.dumps(programs.restore.look(archive.result), indent=1, sort_keys=True)
    os.utime(tmp_path / "first", (archive.made, archive.made))
    with pytest.raises(programs.common.Problem, match=r"^first is newer than the archive"):
        programs.restore.command(["put", str(result), archive.path, archive.work, "newer-refused"])
    assert programs.restore.command(["put", str(result), archive.path, archive.work, "newer-ok"]) == 0
    assert capsys.readouterr().out == "first: 1 files replaced\nsecond: 1 files replaced\n"
    with pytest.raises(programs.common.Problem, match=r"^look or put, not remove$"):
        programs.restore.command(["remove"])
