"""The lock of our programs: users can neither hold it nor lay anything in its way, and who has it is named in time."""

from __future__ import annotations

import errno
import fcntl
import importlib
import os
import pwd
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.interpreters import EVERY, LAB, LOCAL, beside, interpreter
from tests.unit.opened import opened

AGAIN = "Wait until it ends, or end it; then run this again"
ME = pwd.getpwuid(os.getuid()).pw_name
HEAD = """
import os, subprocess, sys, time
from hal_node.lock import locked
class Problem(Exception):
    pass
path = sys.argv[1]
def mode():
    return "%o" % (os.stat(path).st_mode & 0o7777)
def said(seconds):
    try:
        with locked(path, Problem, seconds, "it"):
            return "held"
    except Problem as problem:
        return str(problem)
"""


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module as a program has it beside itself."""
    monkeypatch.syspath_prepend(str(LAB))
    return importlib.import_module("hal_node.lock")


class Refused(Exception):
    """A program's own kind of error."""


def refusal(lock: Any, path: Path, seconds: float = 0) -> str:
    with pytest.raises(Refused) as found, lock.locked(str(path), Refused, seconds, "it"):
        pytest.fail("it was locked")
    return str(found.value)


def run(version: str, code: str, *words: Any, **more: str) -> list[str]:
    """Run code under a Python of nodes; return its lines."""
    argv = [*beside(interpreter(version)), "-c", HEAD + code, *map(str, words)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C", **more})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not know our lock, and holds it all the same; a terminal would obey its name."""
    script = "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, 2); print(flush=True); time.sleep(3600)"
    (tmp_path / "lock").touch()
    words: list[str | bytes] = [b"\x1b[2J\xff", "-c", script, str(tmp_path / "lock")]
    with subprocess.Popen(words, executable=LOCAL, stdout=subprocess.PIPE) as started:
        assert started.stdout
        try:
            started.stdout.readline()
            yield started
        finally:
            started.kill()


@pytest.mark.parametrize("version", EVERY)
def test_its_file_is_its_owner_s_alone_whatever_the_umask_and_whatever_it_was(version: str, tmp_path: Path) -> None:
    code = "os.umask(int(sys.argv[2]))\nwith locked(path, Problem, 0, 'it'):\n    print(mode())\nprint(mode())"
    for umask in (0, 0o022, 0o277):
        path = tmp_path / f"new{umask}"
        assert run(version, code, path, umask) == ["600", "600"]
        path.chmod(0o666)
        assert run(version, code, path, umask) == ["600", "600"]


def test_it_is_closed_from_the_moment_that_it_is_there(
    lock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock.os, "fchmod", lambda *_: pytest.fail("somebody may have opened it meanwhile"))
    before = os.umask(0)
    try:
        with lock.locked(str(tmp_path / "lock"), Refused, 0, "it"):
            assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("version", EVERY)
def test_what_lies_in_its_way_is_refused_and_left_as_it_is(version: str, tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "lock"
    target.write_text("somebody's")
    target.chmod(0o644)
    for to in (target, tmp_path / "gone"):
        path.symlink_to(to)
        assert run(version, "print(said(0))", path) == [f"{path} cannot be locked: it is a link: remove it"]
        path.unlink()
    assert (target.read_text(), stat.S_IMODE(target.stat().st_mode), (tmp_path / "gone").exists()) == (
        "somebody's", 0o644, False,
    )  # fmt: skip
    os.mkfifo(path)
    assert run(version, "print(said(0))", path) == [f"{path} cannot be locked: it is not a file: remove it"]
    path = tmp_path / "none/lock"
    assert run(version, "print(said(0))", path) == [f"{path} cannot be locked: No such file or directory"]
    for mode in (0o777, 0o1777, 0o775):
        folder = tmp_path / f"{mode:o}"
        folder.mkdir()
        folder.chmod(mode)
        assert run(version, "print(said(0))", folder / "lock") == [
            f"{folder}/lock cannot be locked: others may write to {folder}, and put another file in its place: chmod"
            " go-w"
        ]


@pytest.mark.root
def test_what_is_somebody_else_s_is_refused(lock: Any, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    os.chown(path, 4711, 0)
    assert refusal(lock, path) == f"{path} cannot be locked: it belongs to uid 4711: remove it"
    folder = tmp_path / "his"
    folder.mkdir()
    os.chown(folder, 4711, 0)
    words = f"{folder}/lock cannot be locked: others may write to {folder}, and put another file in its place"
    assert refusal(lock, folder / "lock") == f"{words}: chown root"
    folder.chmod(0o775)
    assert refusal(lock, folder / "lock") == f"{words}: chown root, chmod go-w"


@pytest.mark.parametrize("version", EVERY)
def test_who_has_it_is_named_with_what_it_does_and_for_whom(version: str, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("what one that was killed has left " * 30)
    code = """
with locked(path, Problem, 0, "it"):
    print(open(path).read().strip())
    print(said(0))
    print(os.getpid())
print(os.path.getsize(path))
"""
    words, refused, number, size = run(version, code, path, "größe", SUDO_USER="alice\33")
    begins = f"process {number} on {socket.gethostname()} (-c {path} gr????e), by alice?, since 20"
    assert words.startswith(begins)
    assert refused == f"it: {words} holds the lock {path}. {AGAIN}"
    assert size == "0"


def test_a_process_that_wrote_nothing_is_named_by_the_kernel(
    lock: Any, holder: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    path = tmp_path / "lock"
    path.write_text("process 1 on elsewhere (x), by y, since then\n")
    said = refusal(lock, path)
    assert said.startswith(f"it: process {holder.pid} (?[2J? -c import fcntl, sys, time; ")
    assert said.endswith(f"), of {ME}, holds the lock {path}. {AGAIN}")
    assert "\n" not in said


@pytest.mark.parametrize(("words", "who"), [("process 7 on hal02 (x), by y, since z\n", "process 7 on hal02 (x), by y, "
                                             "since z"), ("", "somebody"), ("a\33\xe4\n", "a???")])  # fmt: skip
def test_a_process_of_another_node_is_named_by_what_it_wrote(
    lock: Any, holder: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, who: str
) -> None:
    path = tmp_path / "lock"
    path.write_text(words, encoding="utf-8")
    monkeypatch.setattr(lock, "_listed", lambda seen: 0)
    assert refusal(lock, path) == f"it: {who} holds the lock {path}. {AGAIN}"


def test_a_holder_that_ends_meanwhile_is_no_fault(
    lock: Any, holder: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_listed", lambda seen: 2**22 + 1)
    assert refusal(lock, tmp_path / "lock").startswith("it: a process that has just ended holds the lock ")


def test_only_who_holds_it_is_looked_for(lock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = os.stat(tmp_path)
    place = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}:{seen.st_ino}"
    lines = [
        f"1: -> FLOCK  ADVISORY  WRITE 5 {place} 0 EOF",
        f"2: POSIX  ADVISORY  WRITE 6 {place} 0 EOF",
        f"3: FLOCK  ADVISORY  WRITE 7 {place}1 0 EOF",
        f"4: FLOCK  ADVISORY  WRITE {{}} {place} 0 EOF",
    ]
    for number, found in ((8, 8), (-1, 0), (0, 0)):
        (tmp_path / "locks").write_text("\n".join(lines).format(number) + "\n")
        with monkeypatch.context() as played:
            played.setattr(lock, "open", lambda _: (tmp_path / "locks").open(), raising=False)
            assert lock._listed(seen) == found
    (tmp_path / "locks").write_text("\n".join(lines[:3]) + "\n")
    monkeypatch.setattr(lock, "open", lambda _: (tmp_path / "locks").open(), raising=False)
    assert lock._listed(seen) == 0


@pytest.mark.parametrize("version", EVERY)
def test_it_is_waited_for_as_long_as_said(version: str, holder: subprocess.Popen[bytes], tmp_path: Path) -> None:
    path = tmp_path / "lock"
    said = run(version, "print(said(0.2))", path)[0]
    assert said.endswith(f" holds the lock {path} for more than 0 s. {AGAIN}")
    argv = [*beside(interpreter(version)), "-c", HEAD + "print(said(3600))", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as second:
        assert second.stdout
        try:
            while second.poll() is None and not opened(second.pid, path):
                time.sleep(0.01)
            assert second.poll() is None, "it did not wait"
            holder.kill()
            assert second.stdout.read() == b"held\n"
        finally:
            second.kill()


def test_the_wait_has_an_end(
    lock: Any, holder: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(lock.time, "sleep", slept.append)
    before = len(os.listdir("/proc/self/fd"))
    assert " for more than 3 s. " in refusal(lock, tmp_path / "lock", 3)
    assert slept == [0.1] * 30
    slept.clear()
    assert " for more than " not in refusal(lock, tmp_path / "lock")
    assert slept == []
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("version", EVERY)
def test_neither_a_program_nor_a_fork_that_hangs_keeps_it(version: str, tmp_path: Path) -> None:
    code = """
with locked(path, Problem, 0, "it"):
    print(subprocess.check_output(["ls", "-l", "/proc/self/fd"]).decode().count(path))
    child = os.fork()
    if child == 0:
        time.sleep(3600)
print(said(0))
os.kill(child, 9)
try:
    with locked(path, Problem, 0, "it"):
        raise ValueError("x")
except ValueError:
    print(said(0))
"""
    assert run(version, code, tmp_path / "lock") == ["0", "held", "held"]


def test_a_lock_whose_file_was_removed_is_nobody_s(lock: Any, tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock.locked(str(path), Refused, 0, "it"):
        path.unlink()
        with lock.locked(str(path), Refused, 0, "it"):
            assert refusal(lock, path).startswith("it: process ")
    handle = os.open(path, os.O_RDWR)
    path.unlink()
    assert not lock._is_taken(handle, str(path))
    path.touch()
    assert not lock._is_taken(handle, str(path)), "another stands there"
    os.close(handle)


def test_a_full_disk_hides_only_who_has_it(lock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    path = tmp_path / "lock"
    monkeypatch.setattr(lock.os, "write", full)
    monkeypatch.setattr(lock.os, "ftruncate", full)
    with lock.locked(str(path), Refused, 0, "it"), path.open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_else_goes_wrong_is_one_line(lock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(lock.fcntl, "flock", broken)
    assert refusal(lock, tmp_path / "lock", 60) == f"{tmp_path}/lock cannot be locked: No locks available"
    assert len(os.listdir("/proc/self/fd")) == before


def test_who_was_killed_holds_nothing(lock: Any, tmp_path: Path) -> None:
    code = "with locked(path, Problem, 0, 'it'):\n    print('held')\n    sys.stdout.flush()\n    time.sleep(3600)"
    argv = [*beside(LOCAL), "-c", HEAD + code, str(tmp_path / "lock")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as first:
        assert first.stdout
        try:
            assert first.stdout.readline() == b"held\n"
            assert refusal(lock, tmp_path / "lock").startswith(f"it: process {first.pid} on ")
        finally:
            first.kill()
    with lock.locked(str(tmp_path / "lock"), Refused, 0, "it"):
        pass
