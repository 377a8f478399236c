"""The readers that act: files on a real file system, programs that hang, flood or are not there."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.expect import process as hal_expect_process
from ansible.module_utils.hal_node.expect.commands import read_commands
from ansible.module_utils.hal_node.expect.files import read_files
from ansible.module_utils.hal_node.expect.process import read_guarded, run
from ansible.module_utils.hal_node.expect.values import Reading, Unreadable, present


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("one\n\n  two \n")
    (tmp_path / "text").chmod(0o640)
    (tmp_path / "serial").write_bytes(b"7A2B\0")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\n")
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("text")
    (tmp_path / "dangling").symlink_to("gone")
    (tmp_path / "big").write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def read(path: Path, what: str | None = None, **more: Any) -> tuple[Any, ...]:
    """Read one property as the module does."""
    reading = read_files([{"path": str(path), **({"read": what} if what else {}), **more}])[0]
    if isinstance(reading, Unreadable):
        return "unknown", reading.reason
    return reading.exists, reading.value if reading.has_value else reading.note


@pytest.mark.parametrize(
    ("name", "what", "expected"),
    [
        ("text", None, (True, "one\n\n  two ")),
        ("text", "lines", (True, ["one", "  two"])),
        ("text", "mode", (True, "0640")),
        ("text", "type", (True, "file")),
        ("text", "size", (True, 12)),
        ("text", "sha256", (True, hashlib.sha256(b"one\n\n  two \n").hexdigest())),
        ("text", "exists", (True, True)),
        ("text", "target", (True, "/text is a file, not a link")),
        ("serial", "content", (True, "7A2B")),
        ("bytes", "content", (True, "\ufffd\ufffd")),
        ("empty", "content", (True, "")),
        ("folder", "type", (True, "directory")),
        ("folder", "content", ("unknown", "/folder is a directory, so it has no content")),
        ("folder", "exists", (True, True)),
        ("fifo", "type", (True, "fifo")),
        ("fifo", "content", ("unknown", "/fifo is a fifo, so it has no content")),
        ("link", "type", (True, "link")),
        ("link", "target", (True, "text")),
        ("link", "mode", (True, "0640")),
        ("link", "content", (True, "one\n\n  two ")),
        ("dangling", "exists", (True, True)),
        ("dangling", "content", (True, "/dangling is a link to gone, which does not exist")),
        ("big", "content", ("unknown", "/big is larger than 4194304 bytes: compare its sha256")),
        ("none", "exists", (False, False)),
        ("none", "content", (False, "/none does not exist")),
        ("none", "mode", (False, "/none does not exist")),
        ("text/below", "content", (False, "/text/below does not exist")),
        ("text", "mood", ("unknown", 'a file has no "mood" to read')),
    ],
)
def test_properties(place: Path, name: str, what: str | None, expected: tuple[Any, ...]) -> None:
    exists, value = read(place / name, what)
    assert (exists, value.replace(str(place), "") if isinstance(value, str) else value) == expected


def test_owner_is_a_name_and_also_its_number(place: Path) -> None:
    reading = read_files([{"path": "/", "read": "owner"}, {"path": "/", "read": "group"}])
    assert [(one.value, one.also) for one in reading] == [("root", [0]), ("root", [0])]


def test_select_keeps_whole_lines_or_the_group(place: Path) -> None:
    (place / "conf").write_text("# Port 1\nPort 22\n  Port 23\n")
    assert read(place / "conf", select=r"Port (\d+)") == (True, ["22", "23"])
    assert read(place / "conf", select=r"Port 22") == (True, "Port 22")
    assert read(place / "conf", select=r"ort 22") == (False, f'no line of {place}/conf matches "ort 22"')
    assert read(place / "none", select="x") == (False, f"{place}/none does not exist")


@pytest.mark.root  # drops privileges to see a permission refused
def test_what_may_not_be_read_is_unknown(place: Path) -> None:
    secret = Path("/root/.hal-expect-test")

    def as_nobody(request: dict[str, str]) -> Reading:
        from ansible.module_utils.hal_node.expect.files import read_file

        if os.geteuid() == 0:
            os.setuid(65534)
        return read_file(request)

    mode = os.stat("/root").st_mode & 0o777
    if mode & 0o001:
        pytest.skip("/root is open to everybody here")
    for what in ("content", "exists", "mode"):
        reading = read_guarded(as_nobody, [{"path": str(secret), "read": what}])[0]
        assert isinstance(reading, Unreadable)
        assert reading.reason == f"{secret}: Permission denied"


def test_a_hanging_file_system_costs_its_own_entry_only() -> None:
    def stuck(request: str) -> Reading:
        if request == "stuck":
            time.sleep(60)
        return present(request)

    began = time.monotonic()
    readings = read_guarded(stuck, ["a", "stuck", "b"], timeout_seconds=3)
    assert time.monotonic() - began < 30
    assert [getattr(reading, "value", None) for reading in readings] == ["a", None, "b"]
    assert "no answer within 3 s" in readings[1].reason


def test_many_entries_on_a_hanging_file_system_do_not_wait_in_full_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck(_request: str) -> Reading:
        time.sleep(60)
        return present("never")

    monkeypatch.setattr(hal_expect_process, "AFTER_A_HANG_SECONDS", 0.1)
    began = time.monotonic()
    assert all(isinstance(reading, Unreadable) for reading in read_guarded(stuck, ["x"] * 5, timeout_seconds=3))
    assert time.monotonic() - began < 10


def test_a_reader_that_dies_costs_its_own_entry_only() -> None:
    def dying(request: str) -> Reading:
        if request == "dies":
            os._exit(1)
        return present(request)

    readings = read_guarded(dying, ["a", "dies", "b"])
    assert [getattr(reading, "value", None) for reading in readings] == ["a", None, "b"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["no-such-program"], "there is no program no-such-program"),
        (["/no/such/program"], "cannot run /no/such/program: No such file or directory"),
        (["/etc/passwd"], "cannot run /etc/passwd: Permission denied"),
        (["sh", "-c", "kill -9 $$"], "sh was killed by signal 9"),
        (["sh", "-c", "yes"], "yes"),
        (["sleep", "30"], "sleep did not finish within 0.5 s"),
    ],
)
def test_a_program_that_gives_no_answer_is_unknown(argv: list[str], words: str) -> None:
    with pytest.raises(Unreadable) as caught:
        run(argv, 0.5 if argv[0] == "sleep" else 20)
    if words == "yes":
        assert caught.value.reason == "sh printed more than 4194304 bytes"
    else:
        assert caught.value.reason == words


def test_a_timeout_ends_what_the_program_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    with pytest.raises(Unreadable):
        run(["sh", "-c", f"sleep 60 & echo $! > '{mark}'; wait"], 5)
    child = int(mark.read_text())
    for _attempt in range(50):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or " Z " in state.read_text():
            return
        time.sleep(0.05)
    pytest.fail("the child of the program is still there")


def test_a_daemon_that_keeps_the_output_open_is_not_waited_for() -> None:
    began = time.monotonic()
    assert run(["sh", "-c", "sleep 30 & echo ready"], 20)[:2] == (0, "ready\n")
    assert time.monotonic() - began < 10


def test_programs_get_the_c_locale_no_input_and_sbin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    _status, out, _err = run(["sh", "-c", "echo $LC_ALL; cat; case $PATH in */sbin*) echo sbin;; esac"])
    assert out == "C\nsbin\n"


def test_equal_commands_run_once(tmp_path: Path) -> None:
    argv = ["sh", "-c", f"echo x >> '{tmp_path}/log'; cat '{tmp_path}/log'"]
    readings = read_commands([{"argv": argv}, {"argv": argv, "lines": True}, {"argv": argv, "exit": True}])
    assert [reading.value for reading in readings] == ["x", ["x"], 0]
