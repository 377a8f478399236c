"""Parts of a verification: what fits, what is noted of it and how much, and how old its beginning may be."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.datasets.conftest import manifest_of

NOW = 1_790_000_000
KINDS = ("changed", "missing", "unlike", "extra")


@pytest.fixture
def check(parts: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = parts("check")
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW))
    return module


@pytest.fixture
def place(tmp_path: Path) -> Any:
    """Files of a version and its manifest."""
    files = {f"{number}.bin": b"x" * number for number in range(5)}
    (tmp_path / "data").mkdir()
    for name, content in files.items():
        (tmp_path / "data" / name).write_bytes(content)
        (tmp_path / "data" / name).chmod(0o444)
    (tmp_path / "data").chmod(0o555)
    (tmp_path / "manifest").write_text(manifest_of(files))
    return SimpleNamespace(manifest=str(tmp_path / "manifest"), checked=str(tmp_path / "check.json"))


class Progress:
    def __init__(self) -> None:
        self.said: list[Any] = []

    def expect(self, files: int) -> None:
        self.said.append(("of", files))

    def add(self, files: int, size: int) -> None:
        self.said.append((files, size))

    def end(self) -> None:
        self.said.append("end")


def seen(mode: int, uid: int, gid: int) -> os.stat_result:
    return os.stat_result((stat.S_IFREG | mode, 1, 1, 1, uid, gid, 1, 1, 1, 1))


def test_owner_group_and_mode_have_to_be_as_declared(check: Any) -> None:
    everybody, group = check.Modes(7), check.Modes(7, 0)
    assert (everybody.file, everybody.folder, group.file, group.folder) == (0o444, 0o555, 0o440, 0o550)
    for mode, uid, gid, fits in (
        (0o444, 7, 0, (True, True)), (0o444, 7, 9, (True, False)), (0o444, 8, 0, (False, False)),
        (0o445, 7, 0, (False, False)), (0o1444, 7, 0, (False, False)),
    ):  # fmt: skip
        assert (everybody.fit(seen(mode, uid, gid), 0o444), group.fit(seen(mode, uid, gid), 0o444)) == fits


def test_all_is_read_told_and_nothing_is_left_of_it(check: Any, place: Any, tmp_path: Path) -> None:
    progress = Progress()
    found = check.examine(str(tmp_path / "data"), place, check.Modes(os.getuid()), 1, progress)
    nothing = dict.fromkeys(KINDS, 0)
    assert found == {"files": 5, "bytes": 10, "counts": nothing} | {kind: [] for kind in KINDS}
    assert progress.said == [("of", 5), (0, 0), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), "end"]
    assert check.verdict(found) == ""


@pytest.mark.parametrize(("each", "noted"), [(5.0, []), (5.5, [2, 4, 5])])
def test_how_far_it_is_is_noted_so_often(
    check: Any, place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, each: float, noted: list[int]
) -> None:
    clock = [float(NOW)]
    saved: list[int] = []
    batches = check.batches

    def so_long(entries: Any, size: int) -> Any:
        for batch in batches(entries, size):
            clock[0] += each
            yield batch

    monkeypatch.setattr(check.time, "time", lambda: clock[0])
    monkeypatch.setattr(check, "FILES", 2)
    monkeypatch.setattr(check, "batches", so_long)
    monkeypatch.setattr(check, "save", lambda path, found: saved.append(found["done"]) if path == place.checked else 0)
    check.examine(str(tmp_path / "data"), place, check.Modes(os.getuid()), 1, Progress())
    assert saved == (noted or [4])  # 5 seconds are not yet more than 5; twice that are


@pytest.mark.parametrize(
    ("age", "changes", "used"),
    [
        (0, {}, True), (7 * 86400 - 1, {}, True), (7 * 86400, {}, False), (-1, {}, False),
        (0, {"folder": "/other"}, False), (0, {"manifest": 1}, False), (0, {"modes": [0, 1]}, False),
    ],
)  # fmt: skip
def test_a_beginning_is_gone_on_with_while_it_is_of_use(
    check: Any, place: Any, age: int, changes: dict[str, Any], used: bool
) -> None:
    stamp = {"folder": "/d", "manifest": os.stat(place.manifest).st_mtime, "modes": [7, None]}
    before = {"stamp": stamp | changes, "begun": NOW - age, "done": 3, "bytes": 9}
    Path(place.checked).write_text(json.dumps(before))
    fresh = {"stamp": stamp, "begun": NOW, "done": 0, "bytes": 0, "counts": dict.fromkeys(KINDS, 0)}
    fresh |= {kind: [] for kind in KINDS}
    assert check._resumed(place, "/d", check.Modes(7)) == (before if used else fresh)


def test_what_an_interrupted_call_has_read_is_counted_and_not_read_again(
    check: Any, place: Any, tmp_path: Path
) -> None:
    modes, folder = check.Modes(os.getuid()), str(tmp_path / "data")
    before = check._resumed(place, folder, modes)
    Path(place.checked).write_text(json.dumps(before | {"done": 3, "bytes": 1000}))
    progress = Progress()
    assert check.examine(folder, place, modes, 1, progress)["bytes"] == 1007
    assert progress.said == [("of", 5), (3, 1000), (1, 3), (1, 4), "end"]
    assert not Path(place.checked).exists()


def test_of_many_wrong_files_a_hundred_are_named_and_three_told(check: Any) -> None:
    found: dict[str, Any] = {"counts": dict.fromkeys(KINDS, 0)} | {kind: [] for kind in KINDS}
    for number in range(101):
        check._note(found, "extra", f"{number}")
    for kind, number in (("changed", 3), ("missing", 4)):
        for one in range(number):
            check._note(found, kind, f"{one}")
    assert found["extra"] == [f"{number}" for number in range(100)]
    assert check.verdict(found) == "3 changed (0, 1, 2); 4 missing (0, 1, 2 ...); 101 extra (0, 1, 2 ...)"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_each_way_of_being_wrong_has_its_word(check: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = check.Modes(os.getuid())
    path = tmp_path / "a"

    def look(content: bytes = b"right", staging: bool = False) -> Any:
        return check._look(str(path), digest(content), modes, staging)

    assert look() == ("missing", 0)
    path.mkdir()
    assert look() == ("changed", 0)
    path.rmdir()
    path.write_bytes(b"right")
    path.chmod(0o644)
    assert look(b"other") == ("changed", 5)
    assert look() == ("unlike", 5)
    assert look(b"other", staging=True) == ("changed", 5)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert look(staging=True) == look() == ("", 5)

    def fails(error: OSError) -> Callable[[str], Any]:
        def sha256_of(_: str) -> Any:
            raise error

        return sha256_of

    monkeypatch.setattr(check, "sha256_of", fails(OSError(errno.EIO, "disk")))
    assert look() == ("changed", 0)
    monkeypatch.setattr(check, "sha256_of", fails(OSError("no number")))
    path.unlink()
    path.write_bytes(b"right")
    assert look() == ("changed", 0)


def test_while_staging_what_changed_goes_and_folders_may_be_written(check: Any, place: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.chmod(0o755)
    (data / "3.bin").chmod(0o644)
    (data / "3.bin").write_bytes(b"y")
    (data / "4.bin").unlink()
    (data / "more").mkdir()
    (data / "more" / "link").symlink_to("/etc")
    (data / "more" / "file").touch()
    modes = check.Modes(os.getuid())
    found = check.examine(str(data), place, modes, 1, Progress())
    assert (
        check.verdict(found)
        == "1 changed (3.bin); 1 missing (4.bin); 2 unlike (., more); 2 extra (more/file, more/link)"
    )
    assert (data / "3.bin").exists()
    found = check.examine(str(data), place, modes, 1, Progress(), staging=True)
    assert found["counts"] == {"changed": 1, "missing": 1, "unlike": 0, "extra": 2}
    assert not (data / "3.bin").exists()


@pytest.mark.root  # who alone gives files to groups
def test_a_mode_is_given_with_the_group_and_the_owner_stays(check: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.touch()
    for group, found in ((None, 4712), (4713, 4713)):
        os.chown(path, 4711, 4712)
        modes = check.Modes(4711, group)
        modes.give(str(path), 0o440)
        assert modes.fit(path.stat(), 0o440)
        assert (path.stat().st_uid, path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (4711, found, 0o440)
