"""The locks of shadow-utils: a live one is waited for, a dead one taken over, and none is left behind."""

from __future__ import annotations

import errno
import fcntl
import importlib
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def lock(lines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with the machine's own lock elsewhere."""
    module: Any = importlib.import_module("hal_node.shadow_lock")
    monkeypatch.setattr(module, "PASSWORDS", str(tmp_path / ".pwd.lock"))
    return module


@pytest.fixture
def ranges(tmp_path: Path) -> Path:
    path = tmp_path / "subuid"
    path.write_text("somebody:100000:65536\n")
    return path


def dead_process() -> int:
    call = subprocess.Popen(["true"])
    call.wait()
    return call.pid


def test_while_it_is_held_useradd_would_see_who_has_it_and_afterwards_nothing(lock: Any, ranges: Path) -> None:
    with lock.shadow_locks([str(ranges)]):
        # strtol() of shadow-utils reads up to the zero byte.
        assert Path(f"{ranges}.lock").read_bytes() == b"%d\0" % os.getpid()
        assert os.stat(f"{ranges}.lock").st_mode & 0o777 == 0o600
        other = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'a'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
        held = subprocess.run(
            [sys.executable, "-c", other, lock.PASSWORDS], stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        assert b"BlockingIOError" in held.stderr, "lckpwdf() has to wait"
    assert sorted(os.listdir(ranges.parent)) == [".pwd.lock", "subuid"]


def test_that_of_a_process_that_was_killed_is_taken_over(lock: Any, ranges: Path) -> None:
    Path(f"{ranges}.lock").write_bytes(b"%d\0" % dead_process())
    with lock.shadow_locks([str(ranges)], 0):
        assert Path(f"{ranges}.lock").read_bytes() == b"%d\0" % os.getpid()
    assert sorted(os.listdir(ranges.parent)) == [".pwd.lock", "subuid"]


@pytest.mark.parametrize(
    ("content", "who"),
    [(b"1\0", "process 1 holds it"), (b"", "somebody who wrote no process number"), (b"x\0", "no process number")],
)
def test_that_of_a_live_process_is_waited_for_up_to_a_limit(lock: Any, ranges: Path, content: bytes, who: str) -> None:
    Path(f"{ranges}.lock").write_bytes(content)
    started = time.monotonic()
    with (
        pytest.raises(lock.LockError, match=rf"subuid.lock: .*{who}.*nothing was written"),
        lock.shadow_locks([str(ranges)], 0.5),
    ):
        pytest.fail("it was taken")
    assert 0.5 <= time.monotonic() - started < 5
    assert Path(f"{ranges}.lock").read_bytes() == content
    assert sorted(os.listdir(ranges.parent)) == [".pwd.lock", "subuid", "subuid.lock"]


@pytest.mark.parametrize(("number", "alive"), [(errno.ESRCH, False), (errno.EPERM, True), (0, True)])
def test_a_process_that_may_not_be_asked_is_alive(
    lock: Any, ranges: Path, monkeypatch: pytest.MonkeyPatch, number: int, alive: bool
) -> None:
    asked = []

    def kill(pid: int, signal: int) -> None:
        asked.append((pid, signal))
        if number:
            raise OSError(number, "x")

    Path(f"{ranges}.lock").write_bytes(b"4711\0rest")
    with monkeypatch.context() as played:
        played.setattr(lock.os, "kill", kill)
        holder = lock._linked(str(ranges))
    assert holder == ("process 4711" if alive else None)
    assert asked == [(4711, 0)]


@pytest.mark.parametrize("content", [b"0\0", b"-5\0"])
def test_a_number_that_no_process_has_is_a_dead_one(lock: Any, ranges: Path, content: bytes) -> None:
    Path(f"{ranges}.lock").write_bytes(content)
    assert lock._linked(str(ranges)) is None
    assert Path(f"{ranges}.lock").read_bytes() == b"%d\0" % os.getpid()


def test_a_lock_that_goes_while_it_is_read_was_of_a_program_that_has_just_ended(lock: Any, ranges: Path) -> None:
    Path(f"{ranges}.lock").symlink_to("gone")  # there for link(), and nothing to read
    assert lock._linked(str(ranges)) == "a program that has just ended"
    assert sorted(os.listdir(ranges.parent)) == ["subuid", "subuid.lock"]


def test_of_two_that_take_over_a_dead_lock_one_has_it(lock: Any, ranges: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(f"{ranges}.lock").write_bytes(b"%d\0" % dead_process())
    monkeypatch.setattr(lock, "_link", lambda own, path: False)
    assert lock._linked(str(ranges)) == "another process"


def test_what_else_goes_wrong_is_no_lock_of_somebody_else(
    lock: Any, ranges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_words: Any) -> None:
        raise OSError(errno.EIO, "broken")

    before = len(os.listdir("/proc/self/fd"))
    for name, module in (("link", lock.os), ("lockf", lock.fcntl)):
        with monkeypatch.context() as broken:
            broken.setattr(module, name, refuse)
            with pytest.raises(OSError, match="broken"), lock.shadow_locks([str(ranges)], 0):
                pytest.fail("it was taken")
    assert len(os.listdir("/proc/self/fd")) == before
    assert sorted(os.listdir(ranges.parent)) == [".pwd.lock", "subuid"]
    assert os.stat(lock.PASSWORDS).st_mode & 0o777 == 0o600


def test_a_lock_of_the_machine_that_is_a_link_is_not_followed(lock: Any, ranges: Path) -> None:
    Path(lock.PASSWORDS).symlink_to("gone")
    with pytest.raises(OSError, match="symbolic links"), lock.shadow_locks([str(ranges)], 0):
        pytest.fail("it was taken")
    assert sorted(os.listdir(ranges.parent)) == [".pwd.lock", "subuid"]


def test_locks_are_taken_in_the_order_of_the_files_and_given_back_in_the_other(
    lock: Any, ranges: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    link, unlink = os.link, os.unlink

    def linked(own: str, path: str) -> None:
        done.append(f"+{Path(path).name}")
        link(own, path)

    def unlinked(path: str) -> None:
        done.append(f"-{Path(path).name}")
        unlink(path)

    with monkeypatch.context() as watched:
        watched.setattr(lock.os, "link", linked)
        watched.setattr(lock.os, "unlink", unlinked)
        with lock.shadow_locks([str(ranges), f"{ranges.parent}/subgid"]):
            pass
    wanted = ["+subuid.lock", "+subgid.lock", "-subgid.lock", "-subuid.lock"]
    assert [one for one in done if one.endswith(".lock")] == wanted


def test_a_second_file_that_is_locked_gives_the_first_back(lock: Any, ranges: Path) -> None:
    Path(f"{ranges.parent}/subgid.lock").write_bytes(b"1\0")
    with pytest.raises(lock.LockError), lock.shadow_locks([str(ranges), f"{ranges.parent}/subgid"], 0):
        pytest.fail("it was taken")
    assert not Path(f"{ranges}.lock").exists()


def _hold(path: str, ready: str, seen: str) -> None:
    with open(path, "a") as stream:
        fcntl.lockf(stream, fcntl.LOCK_EX)
        Path(ready).touch()
        end = time.monotonic() + 600
        while not Path(seen).exists() and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.3)


def test_a_program_that_changes_accounts_is_waited_for(lock: Any, ranges: Path) -> None:
    ready, seen = ranges.parent / "ready", ranges.parent / "seen"
    with ProcessPoolExecutor(1) as pool:
        held = pool.submit(_hold, lock.PASSWORDS, str(ready), str(seen))
        while not ready.exists():
            time.sleep(0.01)
        with (
            pytest.raises(lock.LockError, match="another program changes accounts, for 0 s now"),
            lock.shadow_locks([str(ranges)], 0),
        ):
            pytest.fail("it was taken")
        seen.touch()
        with lock.shadow_locks([str(ranges)], 60):
            assert held.done() or held.result(60) is None
        held.result()


def _add(passwords: str, path: str, line: str) -> None:
    module: Any = importlib.import_module("hal_node.shadow_lock")
    module.PASSWORDS = passwords
    for number in range(5):
        with module.shadow_locks([path]):
            text = Path(path).read_text()
            time.sleep(0.002)
            Path(path).write_text(f"{text}{line}{number}\n")


def test_writers_lose_no_line(lock: Any, ranges: Path) -> None:
    with ProcessPoolExecutor(4) as pool:
        for done in [pool.submit(_add, lock.PASSWORDS, str(ranges), f"w{number}-") for number in range(4)]:
            done.result()
    assert len(ranges.read_text().splitlines()) == 1 + 4 * 5
