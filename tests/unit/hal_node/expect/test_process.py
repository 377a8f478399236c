"""How programs run, and what becomes of reads that do not come to an end."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.expect import process as process
from ansible.module_utils.hal_node.expect.process import SEARCH_PATH, read_guarded, run
from ansible.module_utils.hal_node.expect.values import Reading, Unreadable, present

from tests.unit.hal_node.expect.conftest import refusal


def ended(number: int) -> bool:
    """Wait until a process is gone, or only its parent has not asked for it yet."""
    until = time.monotonic() + 600
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_status_output_and_errors_are_apart() -> None:
    assert run(["sh", "-c", "echo out; echo err >&2; exit 5"]) == (5, "out\n", "err\n")
    assert run(["printf", "%s", "größe"]) == (0, "größe", "")
    assert run(["sh", "-c", "printf '\\377'"])[1] == "\ufffd"


def test_a_program_has_the_root_for_a_folder_no_input_and_a_session_of_its_own() -> None:
    words = 'pwd; cat; echo $$; cut -d" " -f6 /proc/self/stat'
    _status, out, _err = run(["sh", "-c", words])
    folder, own, session = out.splitlines()
    assert folder == "/"
    assert own == session


def test_a_program_has_the_path_of_the_caller_first_and_the_language_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGUAGE", "de")
    monkeypatch.setenv("HAL_TEST", "kept")
    monkeypatch.setenv("PATH", "/opt/first")
    words = ["/bin/sh", "-c", "echo $PATH $LC_ALL $LANGUAGE $HAL_TEST"]
    assert run(words)[1] == f"/opt/first:{SEARCH_PATH} C C kept\n"
    monkeypatch.delenv("PATH")
    assert run(words)[1] == f":{SEARCH_PATH} C C kept\n"


def test_a_program_is_the_first_file_of_that_name_that_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in "abcd"]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "tool").mkdir()
    (folders[1] / "tool").write_text("#!/bin/sh\necho not executable\n")
    for folder in folders[2:]:
        (folder / "tool").write_text(f"#!/bin/sh\necho {folder.name} $1\n")
        (folder / "tool").chmod(0o755)
    monkeypatch.setenv("PATH", ":".join(map(str, folders)))
    assert run(["tool", "x"])[1] == "c x\n"
    assert run([f"{folders[3]}/tool", "x"])[1] == "d x\n"


def test_output_may_be_as_long_as_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "MOST_OUTPUT", 6)
    assert run(["sh", "-c", "echo ab; echo cd >&2"]) == (0, "ab\n", "cd\n")
    with pytest.raises(Unreadable, match=r"^sh printed more than 6 bytes$"):
        run(["sh", "-c", "echo ab; echo cde >&2"])


def test_a_program_that_closes_its_output_is_waited_for() -> None:
    assert run(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 3"]) == (3, "", "")
    with pytest.raises(Unreadable, match=r"^sh did not finish within 0.5 s$"):
        run(["sh", "-c", "exec >&- 2>&-; sleep 60"], 0.5)


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("\n")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(Unreadable, match=rf"^cannot run {tmp_path}/text: Exec format error$"):
        run([f"{tmp_path}/text"])
    with pytest.raises(Unreadable, match=r"^cannot run /bin/echo: embedded null byte$"):
        run(["/bin/echo", "a\0b"])


def test_what_a_program_leaves_behind_is_ended_and_nothing_stays_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    status, out, _err = run(["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!"])
    assert status == 0
    assert ended(int(out))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_reader_that_comes_late_reads_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Busy nodes: between two looks of this process a second goes by, and its program has long ended."""
    read, seconds, running = os.read, itertools.count(step=2), []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *words: Any, **more: Any) -> None:
            super().__init__(*words, **more)
            running.append(self.pid)

    def late(descriptor: int, most: int) -> bytes:
        if running:
            with contextlib.suppress(ChildProcessError):  # it has ended, and was asked for
                os.waitid(os.P_PID, running.pop(), os.WEXITED | os.WNOWAIT)
        return read(descriptor, min(most, 1000))

    monkeypatch.setattr(subprocess, "Popen", Noted)
    monkeypatch.setattr(os, "read", late)
    monkeypatch.setattr(time, "time", lambda: next(seconds))
    assert run(["printf", "%5000s", "x"], 10000) == (0, "x".rjust(5000), "")


def test_a_program_that_a_signal_ended_has_no_status() -> None:
    with pytest.raises(Unreadable, match=r"^sh was killed by signal 15$"):
        run(["sh", "-c", "kill -15 $$"])


def test_answers_come_in_order_whole_and_from_another_process(tmp_path: Path) -> None:
    def read(request: int) -> Reading:
        if request == 1:
            raise Unreadable("reason", "detail")
        if request == 2:
            raise KeyError("odd")
        if request == 3:
            return Reading(exists=False, value={"a": "ü" * 100000}, items=[1], also=[2], scale="mode", note="n")
        return present([os.getpid(), *(os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2))])

    before = len(os.listdir("/proc/self/fd"))
    first, refused, broken, long, last = read_guarded(read, [0, 1, 2, 3, 4])
    assert first.value == last.value
    child, *streams = first.value
    assert child != os.getpid()
    assert streams == [os.devnull] * 3
    assert refusal(refused) == ("reason", "detail")
    assert refusal(broken) == ("cannot be read: 'odd'", "")
    assert long.as_dict() == {
        **{"exists": False, "value": {"a": "ü" * 100000}, "has_value": True, "items": [1], "also": [2]},
        **{"scale": "mode", "note": "n"},
    }
    assert not Path(f"/proc/{child}").exists()
    assert len(os.listdir("/proc/self/fd")) == before
    assert read_guarded(read, []) == []


def test_a_reader_that_died_is_said_and_the_rest_is_read_by_another() -> None:
    def dying(request: str) -> Reading:
        if request == "dies":
            os._exit(1)
        return present(os.getpid())

    first, dead, last = read_guarded(dying, ["a", "dies", "b"])
    assert refusal(dead) == ("the process that read it ended", "")
    assert first.value != last.value
    assert refusal(read_guarded(dying, ["dies"])[0]) == ("the process that read it ended", "")


def test_a_reader_that_hangs_is_ended(tmp_path: Path) -> None:
    def stuck(_request: str) -> Reading:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(600)
        return present("never")

    (reading,) = read_guarded(stuck, ["x"], timeout_seconds=3)
    assert refusal(reading) == ("no answer within 3 s: does its file system hang?", "")
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists()


def test_after_so_many_hangs_nothing_more_is_asked() -> None:
    def dying(request: int) -> Reading:
        if request:
            os._exit(1)
        return present("read")

    readings = read_guarded(dying, [0, 1, 0, 1, 0, 1], most_hangs=2)
    assert [one.value if isinstance(one, Reading) else one.reason for one in readings] == [
        "read",
        "the process that read it ended",
        "read",
        "the process that read it ended",
        *["not asked: 2 reads before it did not come to an end"] * 2,
    ]
    assert [one.value for one in read_guarded(dying, [0, 0], most_hangs=1)] == ["read"] * 2
    assert isinstance(read_guarded(dying, [1, 1, 1, 1, 0], most_hangs=None)[-1], Reading)


def test_after_a_hang_the_next_is_waited_for_less_and_never_more(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def child(_read: object, requests: list[str], timeout_seconds: float) -> list[Unreadable]:
        given.append(timeout_seconds)
        return [Unreadable("hangs")]

    monkeypatch.setattr(process, "_one_child", child)
    read_guarded(present, ["a", "b", "c"])
    read_guarded(present, ["a", "b"], timeout_seconds=1)
    assert given == [20, 2, 2, 1, 1]
