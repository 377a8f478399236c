"""What all parts of hal-dataset share: words, files that are whole or not there, places."""

from __future__ import annotations

import json
import os
import re
import stat
import threading
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def common(parts: Any) -> Any:
    return parts("common")


def test_who_asked_is_the_administrator_behind_sudo(common: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "alice")
    assert common.who() == "alice"
    monkeypatch.delenv("SUDO_USER")
    assert common.who() == common.pwd.getpwuid(os.getuid()).pw_name


def test_a_file_is_written_when_it_differs_for_everybody_to_read(common: Any, tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    before = os.umask(0o077)
    try:
        assert common.replace(str(path), "ü") is True
    finally:
        os.umask(before)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("ü", 0o644)
    inode = path.stat().st_ino
    assert common.replace(str(path), "ü") is False
    assert path.stat().st_ino == inode
    assert common.replace(str(path), "o") is True
    common.save(str(path), {"b": 1, "a": "ü"})
    assert path.read_text() == json.dumps({"a": "ü", "b": 1}, indent=1) + "\n"
    assert [one.name for one in tmp_path.iterdir()] == ["state.json"]


def test_what_is_not_there_is_none_and_what_cannot_be_read_is_a_problem(common: Any, tmp_path: Path) -> None:
    assert common.load(str(tmp_path / "none")) is None
    (tmp_path / "bad").write_text("{")
    for path in (tmp_path / "bad", tmp_path):
        with pytest.raises(common.Problem, match=f"^{re.escape(str(path))} cannot be read: "):
            common.load(str(path))


def test_a_folder_is_made_with_those_above_and_may_be_there(common: Any, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        for _ in range(2):
            common.make_folder(str(tmp_path / "a/b"))
        common.make_folder(str(tmp_path / "c"), 0o700)
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a/b", "c")] == [0o755, 0o700]
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("a")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            common.make_folder(str(tmp_path / name))


def test_a_link_is_replaced_though_what_it_leads_to_is_the_same(common: Any, tmp_path: Path) -> None:
    (tmp_path / "his").write_text("ü", encoding="utf-8")
    (tmp_path / "page").symlink_to("his")
    assert common.replace(str(tmp_path / "page"), "ü") is True
    assert not (tmp_path / "page").is_symlink()


def test_a_new_file_is_new_also_where_a_link_comes_at_once(
    common: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, his = tmp_path / "new", tmp_path / "his"
    his.write_text("his")
    path.symlink_to(his)
    with common.create(str(path), 0o640) as target:
        target.write(b"ours")
    assert (path.read_text(), path.is_symlink(), his.read_text()) == ("ours", False, "his")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    unlink = os.unlink

    def planted(name: str) -> None:
        unlink(name)
        path.symlink_to(his)

    monkeypatch.setattr(common.os, "unlink", planted)
    with pytest.raises(FileExistsError):
        common.create(str(path), 0o640)
    assert his.read_text() == "his"


@pytest.mark.parametrize(("mount", "there"), [("/", True), ("/proc", True), ("/proc/", True), ("/pro", False)])
def test_the_kernel_s_list_says_what_is_mounted(common: Any, mount: str, there: bool) -> None:
    assert common.is_mounted(mount) is there


def test_free_is_what_users_may_still_write(common: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = os.statvfs_result((4096, 512, 900, 800, 70, 0, 0, 0, 0, 255))
    monkeypatch.setattr(common.os, "statvfs", lambda path: {str(tmp_path): seen}[path])
    assert common.free_bytes(str(tmp_path)) == 70 * 512


def test_what_is_known_of_a_place_grows(common: Any, tmp_path: Path) -> None:
    place = common.Place(str(tmp_path), {"name": "mnist", "version": "1"})
    assert (place.label, place.known()) == ("mnist/1", {})
    Path(place.hidden).mkdir(parents=True)
    place.remember(a=1, b=2)
    place.remember(b=3)
    assert place.known() == {"a": 1, "b": 3}
    below = f"{tmp_path}/.hal/mnist/1"
    assert {name: value for name, value in vars(place).items() if name != "label"} == {
        "group": f"{tmp_path}/mnist", "folder": f"{tmp_path}/mnist/1", "link": f"{tmp_path}/mnist/default",
        "message": f"{tmp_path}/mnist/1.retired.txt", "hidden": below, "lock": f"{below}.lock", "data": f"{below}/data",
        "parts": f"{below}/parts", "incoming": f"{below}/incoming", "retired": f"{below}/retired",
        "manifest": f"{below}/manifest", "state": f"{below}/state.json", "checked": f"{below}/check.json",
        "own": (below, *(f"{below}/{name}" for name in ("data", "parts", "incoming", "retired"))),
    }  # fmt: skip


def test_what_was_said_can_be_read_at_once(common: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "said"
    with path.open("w", encoding="ascii") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        common.write("größe")
        assert path.read_text("utf-8") == "größe"


def test_as_many_threads_as_asked_for_do_it_with_a_function_of_their_own_and_end(common: Any) -> None:
    threads: list[threading.Thread] = []

    def make() -> Any:
        threads.append(threading.current_thread())
        return lambda entry: entry * 2

    before = set(threading.enumerate())
    assert sorted(common.in_parallel(make, iter(range(50)), 3)) == [(entry, entry * 2) for entry in range(50)]
    assert list(common.in_parallel(make, [], 2)) == []
    for thread in set(threading.enumerate()) - before:
        thread.join(120)
    assert (len(threads), len(set(threads))) == (5, 5)
    assert not any(thread.is_alive() for thread in threads)
    assert all(thread.daemon for thread in threads), "a program that is ended waits for none"


def test_four_entries_a_thread_are_taken_at_first_and_then_one_for_each_result(common: Any) -> None:
    taken: list[int] = []

    def entries() -> Any:
        for number in range(100):
            taken.append(number)
            yield number

    results = common.in_parallel(lambda: lambda entry: entry, entries(), 2)
    held = []
    for _ in range(4):
        next(results)
        held.append(len(taken))
    results.close()
    assert held == [8, 9, 10, 11]


def test_after_an_exception_nothing_more_is_taken_and_its_threads_end(common: Any) -> None:
    taken: list[int] = []
    threads: list[threading.Thread] = []

    def make() -> Any:
        threads.append(threading.current_thread())

        def fails(entry: int) -> int:
            raise ValueError(f"entry {entry}")

        return fails

    with pytest.raises(ValueError, match=r"^entry 0$"):
        list(common.in_parallel(make, (taken.append(number) or number for number in range(100)), 1))  # type: ignore[func-returns-value]
    assert taken == [0, 1, 2, 3]
    threads[0].join(120)
    assert not threads[0].is_alive()
