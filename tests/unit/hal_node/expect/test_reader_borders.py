"""Commands, files, kernel and mounts: what is refused, and the borders of what is accepted."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hal_node.expect import commands as commands
from ansible.module_utils.hal_node.expect import files as files
from ansible.module_utils.hal_node.expect import kernel as kernel
from ansible.module_utils.hal_node.expect import mounts as mounts
from ansible.module_utils.hal_node.expect.commands import interpret, read_commands
from ansible.module_utils.hal_node.expect.values import Unreadable

from tests.unit.hal_node.expect.conftest import refusal, whole


@pytest.mark.parametrize("argv", [[], "id", {}, None])
def test_a_command_is_a_list_of_words(argv: Any) -> None:
    words = "argv has to be a list that is not empty: program, then arguments"
    assert refusal(read_commands([{"argv": argv}])[0]) == (words, "")


@pytest.mark.parametrize("seconds", [0, -1, "x", None, True, [5]])
def test_the_time_that_a_command_has_is_above_0(seconds: Any) -> None:
    (reading,) = read_commands([{"argv": ["true"], "timeout_seconds": seconds}])
    assert refusal(reading) == ("timeout_seconds has to be a number above 0", "")


def test_commands_run_with_their_words_as_text_and_the_time_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[list[str], float]] = []

    def answer(argv: list[str], timeout: float) -> tuple[int, str, str]:
        asked.append((argv, timeout))
        if argv[0] == "none":
            raise Unreadable("there is no program none")
        return 0, "x\n", ""

    monkeypatch.setattr(commands, "run", answer)
    requests: list[dict[str, Any]] = [
        {"argv": ["tool", 5]},
        {"argv": ["tool", "5"], "timeout_seconds": "0.5"},
        {"argv": ["tool", "5"], "timeout_seconds": 20, "lines": True},
        {"argv": ["none"]},
        {"argv": ["none"], "exit": True},
    ]
    readings = read_commands(requests)
    assert asked == [(["tool", "5"], 20.0), (["tool", "5"], 0.5), (["none"], 20.0)]
    assert [one.value for one in readings[:3]] == ["x", "x", ["x"]]
    assert [refusal(one) for one in readings[3:]] == [("there is no program none", "")] * 2


@pytest.mark.parametrize("name", ["lines", "json", "exit"])
def test_a_flag_of_a_command_is_true_or_false(name: str) -> None:
    with pytest.raises(Unreadable, match=f"^{name} has to be true or false$"):
        interpret({name: "maybe"}, "tool", 0, "{}", "")


def test_what_a_failed_command_says_is_a_detail() -> None:
    for out, err, words in (("out", " a\n b ", "a b"), (" out\n", "\n", "out"), ("", "x" * 300, "x" * 200)):
        with pytest.raises(Unreadable) as error:
            interpret({}, "tool", 2, out, err)
        assert refusal(error.value) == ("tool ended with status 2", words)


def test_one_status_may_be_accepted_without_a_list_and_none_by_an_empty_one() -> None:
    assert interpret({"accept_exit": "1"}, "tool", 1, "x", "").value == "x"
    for accepted in ([], [1], 1, ["x"]):
        with pytest.raises(Unreadable, match=r"^tool ended with status 0$"):
            interpret({"accept_exit": accepted}, "tool", 0, "x", "")


def test_values_of_json_are_found_by_their_key() -> None:
    text = '{"a": [{"b": "x"}, null, {"c": {"z": 1, "y": 2}}], "": 5}\n'
    assert whole(interpret({"key": "a.0.b"}, "tool", 0, text, "")) == {"value": "x", "items": ["x"]}
    assert whole(interpret({"key": "a.2.c"}, "tool", 0, text, "")) == {"value": {"z": 1, "y": 2}, "items": ["y", "z"]}
    for key in ("a.9", "a.x", "a.0.b.c", "a.0.c", "b"):
        said = {"exists": False, "has_value": False, "note": f'the output of tool has no "{key}"'}
        assert whole(interpret({"key": key}, "tool", 0, text, "")) == said
    said = {"exists": False, "has_value": False, "note": '"a.1" in the output of tool is null'}
    assert whole(interpret({"key": "a.1"}, "tool", 0, text, "")) == said
    said = {"exists": False, "has_value": False, "note": '"." in the output of tool is null'}
    assert whole(interpret({"json": True}, "tool", 0, "null", "")) == said
    with pytest.raises(Unreadable) as error:
        interpret({"key": "a"}, "tool", 0, "no json", "")
    assert error.value.reason == "tool did not print JSON"
    assert error.value.detail.startswith("Expecting value")


def test_a_command_that_prints_nothing_has_an_empty_value_that_is_not_there() -> None:
    empty = {"exists": False, "items": [], "note": "tool printed nothing"}
    assert whole(interpret({}, "tool", 0, "\n\n", "")) == {**empty, "value": ""}
    assert whole(interpret({}, "tool", 0, " \n", "")) == {**empty, "value": " "}
    assert whole(interpret({"lines": True}, "tool", 0, "\n", "")) == {**empty, "value": []}
    no_line = {"exists": False, "has_value": False, "items": [], "note": 'no line of the output of tool matches "x"'}
    assert whole(interpret({"select": "x"}, "tool", 0, "\n", "")) == no_line


def test_the_lines_of_a_command_are_its_items() -> None:
    assert whole(interpret({}, "tool", 0, " a \n\nb\n", "")) == {"value": " a \n\nb", "items": [" a", "b"]}
    one = {"select": "(a)?b", "lines": True}
    assert whole(interpret(one, "tool", 0, " ab \nb\nc\n", "")) == {"value": ["a", ""], "items": ["a", ""]}
    assert whole(interpret(one, "tool", 0, "ab\n", "")) == {"value": ["a"], "items": ["a"]}


def test_a_file_is_asked_for_by_an_absolute_path() -> None:
    with pytest.raises(Unreadable, match=r"^path has to be absolute: etc/hosts$"):
        files.read_file({"path": "etc/hosts"})


@pytest.mark.parametrize("what", ["exists", "type", "content", "lines", "mode"])
def test_what_may_not_be_looked_at_is_not_missing(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    def refuse(*_words: Any) -> None:
        raise OSError(errno.EACCES, "no")

    monkeypatch.setattr(files, "_read", refuse)
    with pytest.raises(Unreadable, match=r"^/x: Permission denied$"):
        files.read_file({"path": "/x", "read": what})


def test_an_error_of_a_file_without_a_number_is_said_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def odd(*_words: Any) -> None:
        raise OSError("odd")

    monkeypatch.setattr(files, "_read", odd)
    with pytest.raises(Unreadable, match=r"^/x: odd$"):
        files.read_file({"path": "/x"})


def test_a_file_that_is_not_there_has_no_value_and_a_link_to_nothing_says_where_it_leads(tmp_path: Path) -> None:
    note = f"{tmp_path}/x does not exist"
    assert whole(files.read_file({"path": f"{tmp_path}/x", "read": "exists"})) == {
        **{"exists": False, "value": False, "items": [False], "note": note},
    }
    assert whole(files.read_file({"path": f"{tmp_path}/x"})) == {"exists": False, "has_value": False, "note": note}
    (tmp_path / "link").symlink_to("gone")
    assert whole(files.read_file({"path": f"{tmp_path}/link", "read": "mode"})) == {
        **{"has_value": False, "note": f"{tmp_path}/link is a link to gone, which does not exist"},
    }
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(Unreadable, match=r"/loop: Too many levels of symbolic links$"):
        files.read_file({"path": f"{tmp_path}/loop"})


def test_a_folder_has_a_mode_and_no_content(tmp_path: Path) -> None:
    tmp_path.chmod(0o2750)
    assert whole(files.read_file({"path": str(tmp_path), "read": "mode"})) == {
        **{"value": "2750", "items": ["2750"], "scale": "mode"},
    }
    for what in ("size", "sha256", "lines", "content"):
        with pytest.raises(Unreadable, match=f"is a directory, so it has no {what}$"):
            files.read_file({"path": str(tmp_path), "read": what})


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        (0o100644, "file"),
        (0o040755, "directory"),
        (0o120777, "link"),
        (0o140755, "socket"),
        (0o010644, "fifo"),
        (0o060644, "block"),
        (0o020644, "char"),
        (0o170000, "unknown kind of file"),
    ],
)
def test_every_kind_of_file_has_a_name(mode: int, name: str) -> None:
    assert files._kind(mode) == name


def test_a_number_without_a_name_stands_for_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nobody(_number: int) -> None:
        raise KeyError

    (tmp_path / "x").touch()
    status = (tmp_path / "x").stat()
    monkeypatch.setattr(files, "pwd", SimpleNamespace(getpwuid=nobody))
    monkeypatch.setattr(files, "grp", SimpleNamespace(getgrgid=nobody))
    for what, number in (("owner", status.st_uid), ("group", status.st_gid)):
        assert files.read_file({"path": f"{tmp_path}/x", "read": what}).value == number


def test_content_may_be_as_large_as_the_limit_and_loses_one_end_of_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(b"0123456\n\n\0\0")
    monkeypatch.setattr(files, "MOST_CONTENT", 11)
    assert files.read_file({"path": f"{tmp_path}/x"}).value == "0123456\n"
    monkeypatch.setattr(files, "MOST_CONTENT", 10)
    with pytest.raises(Unreadable, match=r"/x is larger than 10 bytes: compare its sha256$"):
        files.read_file({"path": f"{tmp_path}/x"})


def test_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    before = len(os.listdir("/proc/self/fd"))
    for what in ("content", "lines", "sha256"):
        files.read_file({"path": f"{tmp_path}/x", "read": what})
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_module_entry_reads_one_thing(tmp_path: Path) -> None:
    (tmp_path / "a_b/parameters").mkdir(parents=True)
    (tmp_path / "a_b/parameters/list").write_text("1,2\n")
    (tmp_path / "a_b/version").write_text("1.2\n")
    (tmp_path / "a_b/srcversion").write_text("ABC\n")

    def read(**request: Any) -> Any:
        return kernel.read_modules([{"name": "a-b", **request}], str(tmp_path))[0]

    assert whole(read(parameter="list")) == {"value": "1,2", "items": ["1", "2"]}
    assert whole(read(read="version")) == {"value": "1.2", "items": ["1.2"], "scale": "version"}
    assert whole(read(read="srcversion")) == {"value": "ABC", "items": ["ABC"]}
    words = 'a module entry reads one thing: take "read" or "parameter"'
    assert refusal(read(parameter="list", read="version")) == (words, "")
    assert refusal(read(parameter="../version")) == ('not a parameter name: "../version"', "")
    assert refusal(read(read="author")) == ('a kernel module has no "author" to read', "")
    assert read(parameter="none").note == "module a-b shows no parameter none"
    (tmp_path / "a_b/version").unlink()
    assert whole(read(read="version")) == {"has_value": False, "note": "module a-b does not tell its version"}


def test_a_kernel_file_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "net").symlink_to("net")
    words = f"{tmp_path}/net: Too many levels of symbolic links"
    assert refusal(kernel.read_sysctls([{"name": "net"}], str(tmp_path))[0]) == (words, "")
    (tmp_path / "plain").write_text("")
    (reading,) = kernel.read_sysctls([{"name": "plain.x"}], str(tmp_path))
    assert whole(reading) == {"exists": False, "has_value": False, "note": "there is no sysctl plain.x"}


def test_without_the_table_of_mounts_nothing_is_known(tmp_path: Path) -> None:
    readings = mounts.read_mounts([{"path": "/"}, {"path": "/x"}], f"{tmp_path}/none")
    assert [refusal(one) for one in readings] == [(f"{tmp_path}/none: No such file or directory", "")] * 2


def test_lines_of_mounts_that_are_not_whole_are_passed_by() -> None:
    text = (
        "1 1 0:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:2 / /short - xfs /dev/sdb1 rw\n"
        "3 1 0:3 / /none rw xfs /dev/sdb1 rw\n"
        "4 1 0:4 / /half rw - xfs /dev/sdb1\n"
        "5 1 0:5 / /opt\\134a rw shared:1 - xfs s\\040x rw,rw\n"
    )
    assert mounts.parse(text) == {
        "/": {"fstype": "ext4", "source": "/dev/sda1", "options": ["rw"]},
        "/opt\\a": {"fstype": "xfs", "source": "s x", "options": ["rw"]},
    }


def test_a_mount_has_four_things_to_read(tmp_path: Path) -> None:
    (tmp_path / "mounts").write_text("1 1 0:1 / / rw - ext4 /dev/sda1 rw\n")
    (reading,) = mounts.read_mounts([{"path": "//", "read": "size"}], f"{tmp_path}/mounts")
    assert refusal(reading) == ('a mount has no "size" to read', "")
    (reading,) = mounts.read_mounts([{"path": "/x/", "read": "source"}], f"{tmp_path}/mounts")
    assert whole(reading) == {"exists": False, "has_value": False, "note": "nothing is mounted at /x"}
