"""Which file of scratch goes, exactly: by its times, its owner, whether it is open, and what is mounted there."""

from __future__ import annotations

import importlib
import json
import os
import pwd
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import LAB

sys.path[:0] = [str(Path(__file__).resolve().parents[4] / "roles/local_storage/files"), str(LAB)]

clean: Any = importlib.import_module("scratch_clean")


def test_what_processes_have_open_mapped_or_are_in_is_found(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("fd", "fd2", "map", "cwd", "exe", "root", "other", "late")}
    for path in files.values():
        path.write_text("")
    proc = tmp_path / "proc"
    links = {
        "10/fd/0": "fd", "10/fd/1": "fd2", "10/map_files/1-2": "map", "10/cwd": "cwd", "10/exe": "exe",
        "11/root": "root", "self/fd/0": "other", "12/fd/3": "late", "12/fd/4": "gone",
    }  # fmt: skip
    for number in range(20, 40):  # ended while it was looked at: only its number is left
        (proc / str(number)).mkdir(parents=True)
    for name, target in links.items():
        (proc / name).parent.mkdir(parents=True, exist_ok=True)
        (proc / name).symlink_to(tmp_path / target)
    wanted = {(path.stat().st_dev, path.stat().st_ino) for name, path in files.items() if name != "other"}
    assert clean.open_files(str(proc)) == wanted


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


LATER = int(time.time()) + 10 * 86400


def cleaned(scratch: Path, **changes: Any) -> Any:
    """A run ten days from now, that takes what is older than nine."""
    given = {"top": str(scratch), "days": 9, "jobs": frozenset, "now": LATER, **changes}
    cleaner = clean.Cleaner(**given)
    cleaner.run()
    return cleaner


LIMIT = LATER - 9 * 86400


def write(path: Path, atime: int, mtime: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (atime, mtime))
    return path


def left(scratch: Path) -> list[str]:
    return sorted(str(path.relative_to(scratch)) for path in scratch.rglob("*"))


def test_a_file_goes_when_it_was_neither_read_nor_written_for_so_many_days(scratch: Path) -> None:
    size = write(scratch / "at-the-limit", LIMIT, LIMIT).stat().st_blocks * 512
    write(scratch / "read", LIMIT + 1, LIMIT - 1)
    write(scratch / "written", LIMIT - 1, LIMIT + 1)
    size += write(scratch / "z-old", LIMIT - 1, LIMIT - 1).stat().st_blocks * 512
    done = cleaned(scratch)
    assert left(scratch) == ["read", "written"]
    assert (done.files, done.folders, done.size, done.problems) == (2, 0, size, [])


def test_a_folder_goes_when_it_is_empty_and_nothing_was_done_to_it(scratch: Path) -> None:
    """Not the first one, as root has made it here."""
    write(scratch / "a/keep", LIMIT + 1, LIMIT + 1)
    write(scratch / "a/full/keep", LIMIT + 1, LIMIT + 1)
    for name, mtime in (("at-the-limit", LIMIT), ("changed", LIMIT + 1), ("old", LIMIT - 1)):
        (scratch / "a" / name).mkdir()
        os.utime(scratch / "a" / name, (LIMIT + 100, mtime))
    write(scratch / "a/nested/deep/file", LIMIT, LIMIT)
    said: list[str] = []
    done = cleaned(scratch, remove=False, say=said.append)
    assert (done.files, done.folders) == (1, 4), "as it would be when all of that is gone"
    a = f"{scratch}/a/"
    assert said == [f"{a}at-the-limit/", f"{a}nested/deep/file", f"{a}nested/deep/", f"{a}nested/", f"{a}old/"]
    done = cleaned(scratch)
    assert left(scratch) == ["a", "a/changed", "a/full", "a/full/keep", "a/keep"]
    assert (done.files, done.folders, done.problems) == (1, 4, [])


def test_what_is_open_or_mounted_or_of_a_user_with_a_job_stays(scratch: Path) -> None:
    opened = write(scratch / "open", LIMIT, LIMIT).stat()
    write(scratch / "a/b/mounted/file", LIMIT, LIMIT)
    write(scratch / "closed", LIMIT, LIMIT)
    given = {"opened": {(opened.st_dev, opened.st_ino)}, "mounts": {str(scratch / "a/b/mounted")}}
    assert cleaned(scratch, jobs=lambda: {os.getuid()}).files == 0
    done = cleaned(scratch, **given)
    assert (done.files, done.folders, done.problems) == (1, 0, [])
    assert left(scratch) == ["a", "a/b", "a/b/mounted", "a/b/mounted/file", "open"]


def test_folders_are_followed_to_a_depth_and_no_deeper(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean, "DEEPEST", 2)
    for name in ("a/b/file", "a/b/c/file", "a/keep"):
        write(scratch / name, LIMIT if name != "a/keep" else LIMIT + 1, LIMIT)
    done = cleaned(scratch)
    assert left(scratch) == ["a", "a/b", "a/b/c", "a/b/c/file", "a/keep"]
    assert done.problems == [f"{scratch}/a/b/c: folders nested too deeply"]


def test_folders_that_were_open_are_closed_and_it_is_where_it_was(scratch: Path) -> None:
    write(scratch / "a/b/file", LIMIT, LIMIT)
    before = os.getcwd(), len(os.listdir("/proc/self/fd"))
    cleaned(scratch)
    assert (os.getcwd(), len(os.listdir("/proc/self/fd"))) == before
    with pytest.raises(clean.Stop, match="No such file or directory"):
        cleaned(scratch / "none")


def test_mount_points_are_read_as_the_kernel_writes_them() -> None:
    text = "21 1 8:0 / /a\\040b rw - xfs\n22 1 8:0 / /c\\011d\\134e rw - xfs\n23 1 8:0 / /f\nshort 1 8:0 /\n"
    assert clean.mount_points(text) == {"/a b", "/c\td\\e", "/f"}


@pytest.mark.parametrize(
    ("uid", "spared"),
    [(5, True), (6, False), (99, False), (100, True), (109, True), (110, False), (200, True), (201, False)],
)
def test_ids_of_a_user_s_containers_are_his_from_the_first_to_the_last(uid: int, spared: bool) -> None:
    assert (uid in clean.Owners(frozenset([5]), [(100, 10), (200, 1)])) is spared


def test_subordinate_ids_are_those_of_the_users_by_name_or_number(tmp_path: Path) -> None:
    me, nobody = os.getuid(), max(one.pw_uid for one in pwd.getpwall()) + 4711
    file = tmp_path / "subuid"
    assert clean.subordinate({me}, str(file)) == []
    name = pwd.getpwuid(me).pw_name
    lines = [f"{name}:100:10", f"{me}:200:20", "other:300:30", "bad:x:1", f"{name}:x:1", f"{name}:1:x", f"{name}:1"]
    file.write_text("\n".join(lines) + "\n")
    assert clean.subordinate({me}, str(file)) == [(100, 10), (200, 20)]
    assert clean.subordinate({me, nobody}, str(file)) == [(100, 10), (200, 20), (300, 30)]


def test_slurm_is_asked_again_until_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now, slept = [1000.0], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert len(slept) < 10, "it goes on for ever"
        now[0] += seconds

    monkeypatch.setattr(clean.time, "time", lambda: now[0])
    monkeypatch.setattr(clean.time, "sleep", sleep)
    monkeypatch.setattr(clean, "PAUSE_SECONDS", 10)

    def jobs() -> Any:
        raise clean.Stop("no answer")

    with pytest.raises(clean.Stop):
        clean.patient(jobs, 30)
    assert slept == [10, 10, 10]


@pytest.mark.parametrize(("words", "pauses"), [([], 60), (["--patience", "60"], 2), (["--dry-run"], 0)])
def test_slurm_is_asked_for_half_an_hour_and_then_nothing_goes(
    scratch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: list[str], pauses: int,
) -> None:  # fmt: skip
    """Also where not even timeout(1) is found."""
    write(scratch / "old", 1, 1)
    declared = {"mount": str(scratch), "days": 0, "node": "hal05", "slurm": True, "device": "", "beside": str(scratch)}
    (tmp_path / "config.json").write_text(json.dumps(declared))
    (tmp_path / "permitted").write_text(clean.code_of(declared))
    monkeypatch.setattr(clean, "PERMITTED", str(tmp_path / "permitted"))
    now, slept = [float(LATER)], list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        assert len(slept) < 100, "it goes on for ever"
        now[0] += seconds

    monkeypatch.setattr(clean.time, "time", lambda: now[0])
    monkeypatch.setattr(clean.time, "sleep", sleep)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert clean.main(["--config", str(tmp_path / "config.json"), *words]) == 3
    assert slept == [30] * pauses
    told = capsys.readouterr()
    said = "squeue: [Errno 2] No such file or directory: 'timeout'"
    assert told.err.splitlines() == [*[f"{said}; asked again in 30 s"] * pauses, f"nothing more is removed: {said}"]
    assert (told.out, left(scratch)) == ("", ["old"])


def test_settings_that_are_not_there_or_not_whole_are_told_and_nothing_goes(
    scratch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(scratch / "old", 1, 1)
    path = tmp_path / "config.json"
    for content, said in ((None, "No such file"), ("{", "Expecting property name"), ("{}", "'mount'")):
        if content is not None:
            path.write_text(content)
        assert clean.main(["--config", str(path)]) == 3
        told = capsys.readouterr().err
        assert told.startswith("nothing more is removed: ")
        assert said in told
    assert left(scratch) == ["old"]
