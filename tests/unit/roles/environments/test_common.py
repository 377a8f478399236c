"""What all parts of hal-environment share: words, files, programs that are run, settings."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def common(part: Callable[[str], Any]) -> Any:
    return part("common")


def test_words_of_programs_are_cut_at_their_beginning_and_names_at_their_end(common: Any) -> None:
    assert common.one_line(b" a\n  b\xff \n") == "a b�"
    assert (common.one_line("x" * 400), common.one_line("x" * 401)) == ("x" * 400, "... " + "x" * 400)
    assert common.one_line("abcd", 3) == "... bcd"
    assert common.some(["a", "b", "c"]) == "a, b, c"
    assert common.some(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert common.some(["a", "b"], 1) == "a and 1 more"


def test_a_file_is_replaced_whole_and_everybody_may_read_it(common: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    before = os.umask(0o077)
    try:
        common.save(str(path), {"b": 1, "a": "ü"})
    finally:
        os.umask(before)
    assert path.read_text() == json.dumps({"a": "ü", "b": 1}, indent=1) + "\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]
    assert common.load(str(path)) == {"a": "ü", "b": 1}


def test_what_is_not_there_is_none_and_what_cannot_be_read_is_a_problem(common: Any, tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("{")
    (tmp_path / "link").symlink_to("bad")
    for path in (tmp_path / "none", tmp_path / "bad" / "below"):
        assert (common.load(str(path)), common.inside(str(path)), common.link_of(str(path))) == (None, [], None)
    assert (common.link_of(str(tmp_path / "bad")), common.link_of(str(tmp_path / "link"))) == (None, "bad")
    assert common.inside(str(tmp_path)) == ["bad", "link"]
    for path in (tmp_path / "bad", tmp_path):
        with pytest.raises(common.Problem, match=f"^{re.escape(str(path))} cannot be read: "):
            common.load(str(path))
    too_long = str(tmp_path / ("x" * 300))
    for ask in (common.inside, common.link_of):
        with pytest.raises(OSError, match="too long"):
            ask(too_long)


def test_a_program_gets_its_environment_its_input_and_its_folder(common: Any, tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "A": "b"}
    said = common.run(["sh", "-c", "cat; pwd; echo $A >&2; exit 3"], environment, b"in\n", folder=str(tmp_path))
    assert said == (3, b"in\n" + os.fsencode(tmp_path) + b"\n", b"b\n")
    assert common.run(["pwd"], environment) == (0, b"/\n", b"")
    assert common.run(["/no/such"], environment) == (127, b"", b"/no/such: No such file or directory")
    assert common.run(["sh", "-c", "kill -STOP $$"], environment, limit_seconds=1)[0] == 124
    handle = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(handle, True)
    assert common.run(["sh", "-c", f"test -e /proc/self/fd/{handle}"], environment)[0] == 1
    os.close(handle)


def test_what_packages_brought_runs_as_the_account_of_the_settings(
    common: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def run(argv: list[str], environment: dict[str, str], **words: Any) -> str:
        asked.append((argv, environment, words))
        return "ran"

    monkeypatch.setattr(common, "run", run)
    monkeypatch.setitem(common.PACKAGES, "account", "packages")
    assert common.run_theirs(["x"], {"A": "b"}, 7) == "ran"
    assert asked == [(["x"], {"A": "b"}, {"limit_seconds": 7, "account": "packages"})]


def test_root_becomes_the_account_without_any_group_and_nobody_else_changes(
    common: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[Any] = []
    for name in ("setgroups", "setgid", "setuid"):
        monkeypatch.setattr(common.os, name, lambda given, name=name: done.append((name, given)))
    monkeypatch.setattr(common.os, "getuid", lambda: 1000)
    assert common._lower("nobody") is None
    monkeypatch.setattr(common.os, "getuid", lambda: 0)
    assert common._lower("") is None
    nobody = common.pwd.getpwnam("nobody")
    common._lower("nobody")()
    assert done == [("setgroups", []), ("setgid", nobody.pw_gid), ("setuid", nobody.pw_uid)]
    with pytest.raises(common.Problem) as refused:
        common._lower("no such")
    assert str(refused.value) == "there is no account no such, which programs of packages run as"


def test_settings_are_numbers_where_they_have_to_be(
    common: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(common.PACKAGES, "account", "nobody")
    names = ("grace_hours", "reserve_gb", "unpacked_factor", "timeout_seconds", "verify_max_days")
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"keep": "2", "root": "7", **dict.fromkeys(names, "1.5")}))
    assert common.settings(str(path)) == {"keep": 2, "root": "7", **dict.fromkeys(names, 1.5)}
    assert common.PACKAGES == {"account": "nobody"}
    path.write_text(json.dumps({"keep": "2", **dict.fromkeys(names, "1"), "account": "packages"}))
    common.settings(str(path))
    assert common.PACKAGES == {"account": "packages"}
    with pytest.raises(common.Problem) as refused:
        common.settings(str(tmp_path / "none"))
    assert str(refused.value) == f"{tmp_path}/none is not there: roll out the role environments"


def test_roles_that_declare_environments_have_a_file_each(common: Any, tmp_path: Path) -> None:
    for name in ("b.json", "a.json", "a.json.new", "json"):
        (tmp_path / name).write_text('[{"id": 1}]')
    assert common.owners(str(tmp_path)) == ["a", "b"]
    assert common.declared("a", str(tmp_path)) == [{"id": 1}]
    with pytest.raises(common.Problem) as refused:
        common.declared("c", str(tmp_path))
    assert str(refused.value) == f"{tmp_path}/c.json is not there: the role c has not been rolled out here"


def test_nothing_is_done_where_the_file_system_is_not_mounted(common: Any, tmp_path: Path) -> None:
    common.there({"mount": ""})
    common.there({"mount": "/"})
    with pytest.raises(common.Problem) as refused:
        common.there({"mount": str(tmp_path)})
    assert str(refused.value) == f"{tmp_path} is not mounted: nothing is done"


def test_what_is_kept_of_a_prefix_is_in_a_hidden_folder(common: Any, tmp_path: Path) -> None:
    assert common.hidden("/p", "x") == "/p/.hal/x"
    assert common.record_of(str(tmp_path)) is None
    (tmp_path / ".hal").mkdir()
    (tmp_path / ".hal/record.json").write_text('{"id": "a"}')
    assert common.record_of(str(tmp_path)) == {"id": "a"}
