"""The steps of a restore, one by one: what is looked at, prepared, exchanged, and what is said when one fails."""

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


def words_of(stamp: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp))


@pytest.fixture
def files(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A folder of three files and a link, and a copy of it as an archive gives it."""
    home = tmp_path / "home"
    (home / "below").mkdir(parents=True)
    (home / "out").mkdir()
    for number, name in enumerate(("one", "two", "below/three", "out/left")):
        (home / name).write_text(name)
        (home / name).chmod(0o640)
        os.utime(home / name, (1000 + number, 1000 + number))
    (home / "link").symlink_to("one")
    source = {"name": "home", "kind": "files", "paths": [str(home)], "left_out": ["out"]}
    programs.sources.save(source, str(tmp_path / "copy"))
    # Archives from before `left_out` was declared have it.
    (tmp_path / "copy" / str(home)[1:] / "out").mkdir()
    (tmp_path / "copy" / str(home)[1:] / "out" / "left").write_text("then")
    saved = {f"home{home / name}": programs.common.sha256(str(home / name)) for name in ("one", "two", "below/three")}
    (home / "link").unlink()
    monkeypatch.setattr(programs.restore, "NEVER", str(tmp_path / "never"))
    return SimpleNamespace(
        home=home, source=source, copy=str(tmp_path / "copy"), manifest={"made": 1002, "files": saved}
    )


def look(programs: Any, files: SimpleNamespace) -> Any:
    return programs.restore.look_at_files(files.source, files.manifest)


def test_files_that_differ_are_counted_and_the_newest_named(programs: Any, files: SimpleNamespace) -> None:
    """What is left out of archives counts nowhere, and a link may lead elsewhere now."""
    assert look(programs, files) == ("3 files, the same as in the archive", False)
    for name, stamp, newer in (("one", 1001, False), ("two", 1001.5, False), ("below/three", 1002, True)):
        (files.home / name).write_text("another")
        os.utime(files.home / name, (stamp, stamp))
        count = ["one", "two", "below/three"].index(name) + 1
        assert look(programs, files) == (f"{count} files differ, the newest of {words_of(stamp)}", newer)
    (files.home / "out" / "left").write_text("changed today")
    (files.home / "link").symlink_to("nowhere")
    os.utime(files.home / "link", (1500, 1500), follow_symlinks=False)
    assert look(programs, files) == (f"4 files differ, the newest of {words_of(1500)}", True)


def test_several_paths_of_a_source_are_looked_at(programs: Any, files: SimpleNamespace) -> None:
    files.source["paths"] = [str(files.home / name) for name in ("one", "below", "gone")]
    assert look(programs, files) == ("2 files, the same as in the archive", False)
    files.source["paths"] = [str(files.home / "gone")]
    assert look(programs, files) == ("nothing is there", False)
    (files.home / "gone").symlink_to("nowhere")
    assert look(programs, files)[0].startswith("1 files differ")


def test_one_file_can_be_left_out(programs: Any, files: SimpleNamespace) -> None:
    files.source["left_out"] = ["out", "one"]
    (files.home / "one").write_text("another")
    (files.home / "link").symlink_to("one")
    assert look(programs, files)[0].startswith("1 files differ")
    assert str(files.home / "one") not in programs.restore.prepare_files(files.source, files.copy)


def prepared(files: SimpleNamespace) -> list[str]:
    return sorted(str(path.relative_to(files.home)) for path in files.home.rglob("*.restoring"))


def test_only_files_that_differ_are_prepared(programs: Any, files: SimpleNamespace) -> None:
    """A file that is gone and a link too, with the folder that is gone; nothing that is left out."""
    (files.home / "one").write_text("another")
    (files.home / "below" / "three").unlink()
    (files.home / "below").rmdir()
    places = programs.restore.prepare_files(files.source, files.copy)
    assert sorted(places) == sorted(str(files.home / name) for name in ("one", "link", "below/three"))
    assert prepared(files) == ["below/three.restoring", "link.restoring", "one.restoring"]
    assert (files.home / "one.restoring").read_text() == "one"
    assert (files.home / "one.restoring").stat().st_mode & 0o777 == 0o640
    assert (files.home / "one").read_text() == "another"
    programs.restore.forget_files(files.source, [*places, str(files.home / "two")])
    assert prepared(files) == []


def test_a_link_is_prepared_where_a_file_with_the_same_content_is(programs: Any, files: SimpleNamespace) -> None:
    (files.home / "link").write_text("one")
    assert programs.restore.prepare_files(files.source, files.copy) == [str(files.home / "link")]


def test_what_could_not_be_prepared_is_taken_away(
    programs: Any, files: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (files.home / name).write_text("another")
    copy_file, error = programs.sources.copy_file, OSError(errno.ENOSPC, "No space left on device")

    def full(source: str, target: str) -> None:
        copy_file(source, target)
        if len(prepared(files)) == 2:
            raise error

    monkeypatch.setattr(programs.restore, "copy_file", full)
    with pytest.raises(OSError, match="No space left") as raised:
        programs.restore.prepare_files(files.source, files.copy)
    assert raised.value is error
    assert prepared(files) == []


def test_what_is_replaced_is_kept_with_its_mode(programs: Any, files: SimpleNamespace, tmp_path: Path) -> None:
    for name in ("one", "two", "below/three"):
        (files.home / name).write_text("another")
    (files.home / "one").chmod(0o604)
    (files.home / "two").unlink()
    places = programs.restore.prepare_files(files.source, files.copy)
    aside = tmp_path / "aside"
    assert programs.restore.replace_files(files.source, places, str(aside)) == "4 files replaced"
    kept = aside / f"home{files.home}"
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*")) == ["below", "below/three", "one"]
    assert (kept / "one").read_text() == "another"
    assert (kept / "one").stat().st_mode & 0o777 == 0o604
    assert [(files.home / name).read_text() for name in ("one", "two", "below/three")] == ["one", "two", "below/three"]
    assert os.readlink(files.home / "link") == "one"
    assert prepared(files) == []


def test_how_many_were_replaced_is_said_when_one_cannot_be(
    programs: Any, files: SimpleNamespace, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (files.home / name).write_text("another")
    (files.home / "one.restoring").write_text("one")
    places = [str(files.home / name) for name in ("one", "two")]
    with pytest.raises(programs.common.Problem) as failed:
        programs.restore.replace_files(files.source, places, str(tmp_path / "aside"))
    assert str(failed.value) == f"1 of 2 files were replaced: {files.home}/two.restoring: No such file or directory"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x"), "the disk is full: /x"),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full: No space left on device"),
        (OSError(errno.EIO, "Input/output error", "/x"), "/x: Input/output error"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (ValueError("two\n  lines"), "two lines"),
    ],
)
def test_an_error_is_one_line(programs: Any, error: Exception, said: str) -> None:
    assert programs.restore.words(error) == said


def test_a_unit_runs_when_systemctl_says_so(programs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "systemctl"
    program.write_text(f'#!/bin/sh\necho noise\necho noise >&2\necho "$@" >>{tmp_path}/told\n[ "$3" = munge ]\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert [programs.restore.active(unit) for unit in ("munge", "slurmctld")] == [True, False]
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
    manifest = {"site": "hal", "node": "x", "made": made, "sources": sources}
    manifest = programs.archive.pack(str(stage), manifest, str(tmp_path / "archive.tar.gz"))
    for name in ("first", "second"):
        (tmp_path / name).write_text("another")
    (tmp_path / "work").mkdir()
    told: list[tuple[str, ...]] = []
    monkeypatch.setattr(programs.restore, "run", lambda argv: told.append(tuple(argv)))
    monkeypatch.setattr(programs.restore, "active", lambda unit: unit != "idle")
    return SimpleNamespace(
        path=str(tmp_path / "archive.tar.gz"), work=str(tmp_path / "work"), told=told, manifest=manifest, made=made
    )


def test_what_was_stopped_is_started_once(programs: Any, archive: SimpleNamespace, tmp_path: Path) -> None:
    """And nothing that did not run."""
    done = programs.restore.put(archive.path, archive.work, False, ["first", "second"])
    assert done == ["first: 1 files replaced", "second: 1 files replaced"]
    words = [("stop", "slapd"), ("stop", "munge"), ("start", "slapd"), ("start", "munge")]
    assert archive.told == [("systemctl", *one) for one in words]
    (aside,) = (tmp_path / "aside").iterdir()
    assert abs(time.mktime(time.strptime(aside.name, "%Y%m%dT%H%M%S")) - time.time()) < 3600


def test_only_what_was_chosen_is_unpacked(
    programs: Any, archive: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpacked: list[list[str]] = []
    prepare = programs.restore.prepare_files

    def noted(source: Any, folder: str) -> Any:
        unpacked.append(os.listdir(os.path.dirname(folder)))
        return prepare(source, folder)

    monkeypatch.setitem(programs.restore.PREPARE, "files", noted)
    assert programs.restore.put(archive.path, archive.work, False, ["second"]) == ["second: 1 files replaced"]
    assert unpacked == [["second"]]
    assert (tmp_path / "first").read_text() == "another"


def test_what_is_newer_is_named_with_both_times(programs: Any, archive: SimpleNamespace, tmp_path: Path) -> None:
    later = archive.made + 60
    os.utime(tmp_path / "second", (later, later))
    with pytest.raises(programs.common.Problem) as newer:
        programs.restore.put(archive.path, archive.work, False, ["first", "second"])
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
        programs.restore.put(archive.path, archive.work, False, ["first"])
    assert (os.listdir(archive.work), archive.told) == ([], [])


def test_room_is_three_times_the_archive(
    programs: Any, archive: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(programs.restore, "need_room", lambda *words: asked.append(words))
    programs.restore.put(archive.path, archive.work, False, ["first"])
    assert asked == [(archive.work, 3 * os.path.getsize(archive.path), 64, "the unpacked archive")]


def test_what_is_left_is_said_with_its_place(
    programs: Any, archive: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(folder: str) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", folder + "/x")

    monkeypatch.setattr(programs.restore.shutil, "rmtree", busy)
    with pytest.raises(programs.common.Problem) as failed:
        programs.restore.put(archive.path, archive.work, False, ["first"])
    (folder,) = (os.path.join(archive.work, name) for name in os.listdir(archive.work))
    assert os.path.basename(folder).startswith("unpacked-")
    assert str(failed.value) == (
        f"{folder} is left, with what was decrypted: {folder}/x: Device or resource busy."
        " Replaced already: first: 1 files replaced"
    )


def test_the_plan_is_one_line_a_source(programs: Any, archive: SimpleNamespace, tmp_path: Path) -> None:
    later = archive.made + 60
    os.utime(tmp_path / "first", (later, later))
    archive.manifest["sources"][1]["stops"] = []
    (tmp_path / "second").write_text("second")
    there = f"1 files differ, the newest of {words_of(later)}"
    line = f"first: {there}. NEWER than the archive; stops slapd, munge, idle meanwhile"
    same = "1 files, the same as in the archive"
    first = {"name": "first", "kind": "files", "there": there, "newer": True, "line": line, "id": "first True"}
    second = {**first, "name": "second", "there": same, "newer": False, "line": "second: " + same, "id": "second False"}
    plan = {"made": words_of(archive.made), "sources": [first, second]}
    assert programs.restore.look(archive.manifest, []) == plan
    assert programs.restore.look(archive.manifest, ["second"])["sources"] == [second]


def test_what_the_command_line_says_is_done(
    programs: Any, archive: SimpleNamespace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tmp_path / "result.json"
    result.write_text(json.dumps({"manifest": archive.manifest}))
    assert programs.restore.command(["look", str(result), "first"]) == 0
    plan = programs.restore.look(archive.manifest, ["first"])
    assert capsys.readouterr().out == json.dumps(plan, indent=1, sort_keys=True)
    os.utime(tmp_path / "first", (archive.made, archive.made))
    with pytest.raises(programs.common.Problem, match=r"^first is newer than the archive"):
        programs.restore.command(["put", archive.path, archive.work, "newer-refused", "first", "second"])
    assert programs.restore.command(["put", archive.path, archive.work, "newer-ok", "first", "second"]) == 0
    assert capsys.readouterr().out == "first: 1 files replaced\nsecond: 1 files replaced\n"
    with pytest.raises(programs.common.Problem, match=r"^look or put, not remove$"):
        programs.restore.command(["remove"])
