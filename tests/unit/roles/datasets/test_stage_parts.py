"""Borders of staging: how far it has come in words, how much room there has to be, what is erased and what is noted."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.roles.datasets.conftest import Server, Site, manifest_of

pytestmark = pytest.mark.root  # who alone moves a folder that nobody may write

FILES = {"train/a.bin": b"a" * 3000, "labels.txt": b"1 2 3\n"}
NOW = 1_790_000_000


@pytest.fixture
def here(tmp_path: Path) -> Site:
    """A root, under the Python of the controller alone."""
    return Site(tmp_path, sys.executable)


@pytest.fixture
def stage(parts: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with a clock that stands still."""
    module = parts("stage")
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: NOW))
    return module


@pytest.fixture
def table(here: Site, stage: Any, server: Server) -> Callable[..., Any]:
    """A function: how the version that is declared differs -> (the table, the version as it knows it)."""

    def make(**changes: Any) -> tuple[Any, Any]:
        server.files = server.files or FILES
        here.declare(server.files, **({"source": server.url} | changes))
        made = stage.Table(str(here.root.parent / "datasets.json"))
        return made, made.sets[0]

    return make


def known(here: Site, version: str = "1.0") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((here.hidden / "digits" / version / "state.json").read_text())
    return found


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("watched", "seconds"), [(True, 0.5), (False, 60)])
def test_how_far_it_has_come_is_told_when_it_is_time_to(
    stage: Any, monkeypatch: pytest.MonkeyPatch, watched: bool, seconds: float
) -> None:
    said: list[str] = []
    monkeypatch.setattr(stage, "write", said.append)
    monkeypatch.setattr(sys, "stdout", Terminal() if watched else io.StringIO())
    clock = [float(NOW)]
    monkeypatch.setattr(stage.time, "time", lambda: clock[0])
    before, after, end = ("\r", "\033[K", "\033[K\n") if watched else ("", "\n", "\n")
    progress = stage.Progress("digits/1.0: fetched")
    progress.end()
    progress.expect(7)
    progress.add(1, 400)
    clock[0] += seconds - 0.25
    progress.add(1, 500)
    clock[0] += 0.25
    progress.add(2, 1000)  # so long after the beginning, exactly
    clock[0] += seconds - 0.25
    progress.add(1, 1)
    clock[0] += 0.5
    progress.add(1, 99)
    progress.add(1, 0)
    progress.end()
    words = "digits/1.0: fetched: "
    assert said == [
        f"{before}{words}0 of 0 files (0 %), 0 bytes{end}",
        f"{before}{words}4 of 7 files (57 %), 1.9 kB{after}",
        f"{before}{words}6 of 7 files (85 %), 2.0 kB{after}",
        f"{before}{words}7 of 7 files (100 %), 2.0 kB{end}",
    ]


@pytest.mark.parametrize(
    ("size", "there", "reserve", "free", "refused"),
    [
        ("2", 0, "1", 3_000_000_000, ""),
        ("2", 0, "1", 2_999_999_999, "3.0 GB are free, it still needs 2.0 GB, and 1.0 GB have to stay free"),
        ("2", 500_000_000, "1", 2_500_000_000, ""),
        ("2", 500_000_000, "1", 2_499_999_999, "2.5 GB are free, it still needs 1.5 GB, and 1.0 GB have to stay free"),
        ("2", 9_000_000_000, "1", 1_000_000_000, ""),
        ("2", 9_000_000_000, "1", 999_999_999, "1000.0 MB are free, it still needs 0 bytes, and 1.0 GB have to stay"),
        ("0", 0, "0", 0, ""),
    ],
)
def test_there_has_to_be_room_for_what_is_missing_and_the_reserve(
    stage: Any, here: Site, table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
    size: str, there: int, reserve: str, free: int, refused: str,
) -> None:  # fmt: skip
    here.settings["reserve_gb"] = reserve
    made, one = table(size_gb=size)
    monkeypatch.setattr(stage, "free_bytes", lambda path: {str(here.root): free}[path])
    if refused:
        with pytest.raises(Exception, match="^no room for digits/1.0: " + refused):
            stage._need_room(made, one, made.place(one), there)
    else:
        stage._need_room(made, one, made.place(one), there)
    assert stage.state_of(made, one)["room"] is (free >= (float(size) + float(reserve)) * 10**9)


def test_what_has_come_is_counted_wherever_it_is(stage: Any, here: Site, table: Callable[..., Any]) -> None:
    made, one = table()
    for name, size in (("data/train/a", 1000), ("data/b", 200), ("parts/c", 30), ("incoming/x/y", 4), ("other/z", 5)):
        path = here.hidden / "digits/1.0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    assert stage._there(made.place(one)) == 1234


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (None, "never verified"), (-0.01, "verified -0.01 days ago"), (0, ""), (0.5, ""), (14.0, ""),
        (14.01, "verified 14.01 days ago"),
    ],
)  # fmt: skip
def test_a_verification_counts_for_so_many_days(
    stage: Any, table: Callable[..., Any], days: float | None, words: str
) -> None:
    assert stage._late(table()[0], days) == words


def test_names_of_a_manifest_drive_no_terminal(
    stage: Any, here: Site, server: Server, table: Callable[..., Any], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """They are of who made the data set, or of who sits between."""
    made, one = table(checksums=manifest_of({"a\x1b]0;x\x07\u202e": b"x"}))
    with pytest.raises(Exception, match="is not complete: 1 files were refused"):
        stage.stage(made, one)
    assert capfdbinary.readouterr().err == rb"  a\x1b]0;x\x07\u202e: HTTP 404 Not Found" + b"\n"


def test_what_is_known_while_it_comes_and_when_it_is_shown(
    stage: Any, here: Site, server: Server, table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:  # fmt: skip
    monkeypatch.setenv("SUDO_USER", "alice")
    server.files = {"labels.txt": FILES["labels.txt"]}
    made, one = table(checksums=manifest_of(FILES))
    hidden = here.hidden / "digits/1.0"
    with pytest.raises(Exception, match=r"^digits/1\.0 is not complete: 1 files were refused, named above; what has"):
        stage.stage(made, one)
    begun = {
        "source": server.url, "manifest_sha256": hashlib.sha256(manifest_of(FILES).encode()).hexdigest(),
        "begun_at": NOW, "begun_by": "alice", "host": stage.socket.gethostname(), "staged_at": None,
    }  # fmt: skip
    assert known(here) == begun
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in hidden.iterdir()}
    assert modes == {"data": 0o700, "parts": 0o700, "manifest": 0o644, "state.json": 0o644}
    out, err = capfdbinary.readouterr()
    assert out == b"digits/1.0: fetched: 1 of 2 files (50 %), 6 bytes\n"
    assert err == b"  train/a.bin: HTTP 404 Not Found\n"

    (hidden / "check.json").write_text("{}")
    server.files = FILES
    monkeypatch.setenv("SUDO_USER", "bob")
    stage.stage(made, one, publish_too=False)
    staged = begun | {"begun_by": "bob", "staged_by": "bob", "staged_at": NOW, "verified_at": NOW, "wrong": ""}
    assert known(here) == staged | {"files": 2, "bytes": 3006}
    assert capfdbinary.readouterr().out.decode().splitlines() == [
        "digits/1.0: 1 files are here already and are not fetched again",
        "digits/1.0: fetched: 2 of 2 files (100 %), 3.0 kB",
        "digits/1.0: checked: 2 of 2 files (100 %), 3.0 kB",
        "digits/1.0 is staged and right; hal-dataset publish digits/1.0 shows it to users",
    ]
    assert stage.state_of(made, one)["staged_by"] == "bob"
    stage.publish(made, one)
    assert known(here) == staged | {"files": 2, "bytes": 3006, "published_at": NOW}
    said = capfdbinary.readouterr().out.decode().splitlines()
    assert said[1:] == [f"digits/1.0 is published: {here.root}/digits/1.0", "digits/1.0 is the default of digits"]
    stage.publish(made, one)
    assert capfdbinary.readouterr().out.decode() == f"digits/1.0 is published already: {here.root}/digits/1.0\n"


def test_so_many_refused_files_are_named_and_all_are_counted(
    stage: Any, server: Server, table: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    server.files = {"there": b""}
    made, one = table(checksums=manifest_of({f"{number:02}": b"" for number in range(25)}))
    with pytest.raises(Exception, match=r"^digits/1\.0 is not complete: 25 files were refused"):
        stage.stage(made, one)
    assert len(capfd.readouterr().err.splitlines()) == 20


def test_a_manifest_that_has_come_is_not_asked_for_again_and_a_refused_one_is_not_left(
    stage: Any, here: Site, server: Server, table: Callable[..., Any]
) -> None:
    server.files = {"SHA256SUMS": manifest_of(FILES).encode()}
    digest = hashlib.sha256(server.files["SHA256SUMS"]).hexdigest()
    made, one = table(checksums="", manifest_sha256="0" * 64)
    with pytest.raises(Exception, match=r"nothing was fetched$"):
        stage.stage(made, one)
    assert sorted(path.name for path in (here.hidden / "digits/1.0").iterdir()) == ["data", "parts"]
    made, one = table(checksums="", manifest_sha256=digest)
    for _ in range(2):
        with pytest.raises(Exception, match="is not complete: 2 files were refused"):
            stage.stage(made, one)
    assert [name for name, _ in server.asked].count("SHA256SUMS") == 2
    made, one = table(checksums=manifest_of(FILES))
    stage._manifest(one, made.place(one))
    assert not (here.hidden / "digits/1.0/manifest.new").exists()


def test_another_manifest_that_has_nothing_of_what_came_leaves_an_empty_folder(
    stage: Any, here: Site, table: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    made, one = table()
    place = made.place(one)
    (here.hidden / "digits/1.0/data/deep/er").mkdir(parents=True)
    (here.hidden / "digits/1.0/data/deep/er/x").write_text("x")
    (here.hidden / "digits/1.0/data/y").write_text("y")
    Path(place.manifest).write_text(manifest_of({"deep/er/x": b"x", "y": b"y"}))
    stage._manifest(one, place)
    assert list((here.hidden / "digits/1.0/data").iterdir()) == []
    assert Path(place.manifest).read_text() == manifest_of(FILES)
    assert (
        "0 files have another checksum and come again, 2 files are not in it and were removed" in capfd.readouterr().out
    )


def test_what_is_staged_already_is_not_replaced_by_what_was_retired(
    stage: Any, here: Site, table: Callable[..., Any]
) -> None:
    made, one = table()
    for name in ("data", "retired"):
        (here.hidden / "digits/1.0" / name).mkdir(parents=True)
    (here.hidden / "digits/1.0/retired/old").touch()
    stage._take_back(made.place(one))
    assert sorted(path.name for path in (here.hidden / "digits/1.0").rglob("*")) == ["data", "old", "retired"]


def test_published_data_that_are_loose_are_told(stage: Any, here: Site, table: Callable[..., Any]) -> None:
    made, one = table()
    assert stage.state_of(made, one)["loose"] == ""
    stage.stage(made, one)
    folder = here.root / "digits/1.0"
    assert stage.state_of(made, one)["loose"] == ""
    folder.chmod(0o1755)
    os.chown(folder, 4711, 4712)
    assert stage.state_of(made, one)["loose"] == "mode 1755, owner 4711, group 4712"
    words = "access is for group no-such-group, which this node does not know"
    assert stage._loose(made, one | {"access": "group", "owner": "no-such-group"}, folder.stat()) == words


def test_a_state_says_what_is_wrong_with_the_default_and_how_old_it_is(
    stage: Any, here: Site, table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, one = table()
    unknown = dict.fromkeys(("files", "bytes", "verified_days", "staged_at"))
    words = dict.fromkeys(("loose", "default_wrong", "late", "wrong", "staged_by"), "")
    absent = {"state": "not staged", "path": f"{here.root}/digits/1.0", "is_default": False, "room": True}
    assert stage.state_of(made, one) == absent | unknown | words
    stage.stage(made, one)
    monkeypatch.setattr(stage.time, "time", lambda: NOW + 86400 * 20.256)
    assert stage.state_of(made, one) == absent | words | {
        "state": "published", "is_default": True, "files": 2, "bytes": 3006, "verified_days": 20.26,
        "late": "verified 20.26 days ago", "staged_at": NOW, "staged_by": stage.who(),
    }  # fmt: skip
    (here.root / "digits/default").unlink()
    assert stage.state_of(made, one)["default_wrong"] == "leads to nothing"
    (here.root / "digits/default").symlink_to("2.0")
    assert stage.state_of(made, one)["default_wrong"] == "leads to 2.0"
    assert stage.state_of(made, one | {"default": False})["default_wrong"] == ""
    made.place(one).remember(verified_at=None, wrong="1 changed (a)")
    state = stage.state_of(made, one)
    assert (state["verified_days"], state["late"], state["wrong"]) == (None, "never verified", "1 changed (a)")


def test_what_is_retired_says_so_and_is_closed(
    stage: Any, here: Site, table: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    made, one = table(default=False, access="all")
    stage.stage(made, one)
    made, one = table(default=False, retired="use 2.0")
    capfd.readouterr()
    for _ in range(2):
        stage.retire(made, one)
        assert capfd.readouterr().out == "digits/1.0 is retired; hal-dataset remove digits/1.0 would erase it\n"
    message, hidden = here.root / "digits/1.0.retired.txt", here.hidden / "digits/1.0"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (message, hidden / "retired")] == [0o444, 0o700]
    assert [path.name for path in (here.root / "digits").iterdir()] == ["1.0.retired.txt"]
    assert known(here)["retired_at"] == NOW
    assert stage.undeclared(made) == []


def test_what_is_erased_is_shown_before_and_gone_after(
    stage: Any, here: Site, table: Callable[..., Any], monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    made, one = table()
    with pytest.raises(Exception, match=r"^digits/1\.0: nothing of it is here$"):
        stage.remove(made, one, "")
    place = made.place(one)
    tops = [Path(path) for path in (place.retired, place.data, place.parts, place.incoming)]
    for number, top in enumerate(tops):
        (top / "below").mkdir(parents=True)
        (top / "below" / "file").write_bytes(b"x" * 10**number)
        (top / "below").chmod(0o500)
    for path in (place.state, place.manifest, place.checked):
        Path(path).write_text("{}")
    with pytest.raises(
        Exception, match=r"^nothing was erased\. To erase it: hal-dataset remove digits/1\.0 --conf"
    ) as no:
        stage.remove(made, one, "")
    code = str(no.value).rpartition(" ")[2]
    assert capfd.readouterr().out == "digits/1.0: 4 files, 1.1 kB, would be erased\n"
    assert len(code) == 8
    os.utime(tops[2], (1, 1))
    with pytest.raises(Exception, match=r"^nothing was erased"):
        stage.remove(made, one, code)
    os.utime(tops[2], (2, 2))
    with pytest.raises(Exception, match=r"^nothing was erased") as no:
        stage.remove(made, one, code)
    code = str(no.value).rpartition(" ")[2]
    capfd.readouterr()
    erased: dict[str, list[int]] = {}
    rmtree = shutil.rmtree

    def erases(top: str) -> None:
        erased[top] = [stat.S_IMODE(os.stat(below).st_mode) for below, _, _ in os.walk(top)]
        rmtree(top)

    monkeypatch.setattr(stage.shutil, "rmtree", erases)
    stage.remove(made, one, code)
    assert erased == {str(top): [0o700, 0o700] for top in tops}, "who is not root has to get in"
    assert list((here.hidden / "digits/1.0").iterdir()) == []
    assert capfd.readouterr().out == "digits/1.0: 4 files, 1.1 kB, are erased\n"


def test_verifying_goes_on_and_counts_what_is_not_right(
    stage: Any, here: Site, server: Server, table: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    server.files = FILES
    for version in ("1.0", "2.0", "3.0"):
        made, one = table(version=version, default=False)
        stage.stage(made, one)
    made, _ = table(version="4.0", default=False)
    for version in ("1.0", "2.0"):
        (here.root / "digits" / version).chmod(0o755)
    capfd.readouterr()
    assert stage.verify(made, made.sets) == 2
    out, err = capfd.readouterr()
    assert [line for line in out.splitlines() if ": verified: " not in line] == [
        "digits/4.0 is not published", "digits/3.0: every file is what the manifest says",
    ]  # fmt: skip
    assert err.splitlines() == [f"digits/{version}: 1 unlike (.)" for version in ("2.0", "1.0")]
    assert known(here, "1.0")["problems"]["unlike"] == ["."]
    (here.root / "digits/1.0").chmod(0o555)
    assert stage.verify(made, made.sets) == 1
    assert (known(here, "1.0")["problems"], known(here, "1.0")["wrong"]) == ({}, "")
