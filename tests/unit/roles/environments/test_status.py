"""What hal-environment says of an environment, of its verification, and of who uses it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DAY = 86400
START = "systemctl start hal-environment-verify.service, on the node that installs"


@pytest.fixture
def status(part: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(part("common").PACKAGES, "account", "")
    return part("status")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, Any]:
    """A finished environment without a package or Python."""
    (tmp_path / "t" / "1.abc" / ".hal").mkdir(parents=True)
    (tmp_path / "t" / "1.abc" / "bin").mkdir()
    (tmp_path / "t" / "1").symlink_to("1.abc")
    (tmp_path / "t" / "1.abc" / ".hal" / "activate.lua").touch()
    note(tmp_path / "t" / "1.abc", "record", digest="abc")
    return {"id": "t/1", "at": 0, "link": str(tmp_path / "t" / "1"), "digest": "abc", "python": "", "metas": []}


def note(prefix: Path, name: str, **content: Any) -> None:
    (prefix / ".hal" / f"{name}.json").write_text(json.dumps(content))


def prefix_of(env: dict[str, Any]) -> Path:
    return Path(f"{env['link']}.abc")


def test_what_is_wrong_is_said_from_the_outside_in(status: Any, env: dict[str, Any]) -> None:
    prefix, link = prefix_of(env), env["link"]
    assert status.wrong(env) == ""
    prefix.chmod(0o775)
    said = [status.wrong(env)]
    (prefix / ".hal/activate.lua").unlink()
    said.append(status.wrong(env))
    prefix.parent.chmod(0o757)
    said.append(status.wrong(env))
    said.append(status.wrong({**env, "digest": "new"}))
    (prefix / ".hal/record.json").unlink()
    said.append(status.wrong(env))
    prefix.rename(prefix.with_name("away"))
    said.append(status.wrong(env))
    Path(link).unlink()
    said.append(status.wrong(env))
    Path(link).mkdir()
    said.append(status.wrong(env))
    assert said == [
        f"{prefix} can be written by others than root",
        f"{prefix}/.hal/activate.lua is not there: the module cannot be loaded",
        f"{prefix.parent} can be written by others than root",
        f"{link} leads to 1.abc, made from another lock file: the declared one has the digest new",
        f"{link} leads to 1.abc, whose installation was never finished",
        f"{link} leads to 1.abc, which is not there",
        f"{link} is not there: it is not installed",
        f"{link} is not a link: somebody put something else there",
    ]


def test_programs_and_packages_are_looked_at(status: Any, env: dict[str, Any]) -> None:
    prefix = prefix_of(env)
    (prefix / "conda-meta").mkdir()
    for name in ("a-1-0.json", "b-1-0.json", "history"):
        (prefix / "conda-meta" / name).touch()
    assert status.faults({**env, "metas": ["a-1-0.json", "b-1-0.json"]}, str(prefix)) == ""
    wanted = {**env, "metas": ["b-1-0.json", "d-1-0.json", "c-1-0.json"]}
    assert status.faults(wanted, str(prefix)) == ("packages: c-1-0, d-1-0 is missing; a-1-0 is not in the lock file")
    (prefix / "bin").chmod(0o757)
    assert status.faults(wanted, str(prefix)) == f"{prefix}/bin can be written by others than root"
    (prefix / "bin").rmdir()
    assert status.faults(wanted, str(prefix)) == f"{prefix}/bin cannot be read: No such file or directory"


@pytest.mark.parametrize(("mode", "open_"), [(0o755, False), (0o775, True), (0o757, True), (0o700, False)])
def test_a_folder_that_others_may_write_to_is_said(status: Any, tmp_path: Path, mode: int, open_: bool) -> None:
    tmp_path.chmod(mode)
    assert status.loose(str(tmp_path)) == (f"{tmp_path} can be written by others than root" if open_ else "")


def test_a_folder_of_another_than_root_and_oneself_is_said(
    status: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    uid = tmp_path.stat().st_uid
    monkeypatch.setattr(status.os, "getuid", lambda: uid + 1)
    assert bool(status.loose(str(tmp_path))) is (uid != 0)


@pytest.mark.parametrize(
    ("declared", "script", "words"),
    [
        ("", "exit 3", ""),
        ("3.7", "echo 3.7.1", ""),
        ("3.7.1", "echo ' 3.7.1 '", ""),
        ("3.7", "echo 3.70.1", "{} is Python 3.70.1, declared is 3.7"),
        ("3.7.1", "echo 3.7", "{} is Python 3.7, declared is 3.7.1"),
        ("3.7", "echo broken >&2; exit 3", "{} does not run (3): broken"),
        ("3.7", "exit 3", "{} does not run (3): nothing was said"),
        ("3.7", '[ "$*" = "-B -E -S -c import sys; print(\'%d.%d.%d\' % sys.version_info[:3])" ] && echo 3.7.0', ""),
        ("3.7", 'echo "$PATH:$LANG:$HOME"', "{} is Python /usr/bin:/bin:C:, declared is 3.7"),
    ],
)
def test_its_python_answers_as_declared(
    status: Any, env: dict[str, Any], declared: str, script: str, words: str
) -> None:
    program = prefix_of(env) / "bin/python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert status.python({"python": declared}, str(prefix_of(env))) == words.format(program)


def test_the_last_verification_s_words_are_said_with_its_time(status: Any, env: dict[str, Any]) -> None:
    assert status.current(env) == str(prefix_of(env))
    assert status.verified(env) == ""
    note(prefix_of(env), "verified", words="1 changed (a)", at="yesterday", time=0)
    assert status.verified(env) == "1 changed (a); seen yesterday"
    note(prefix_of(env), "verified", words="", at="yesterday", time=0)
    assert status.verified(env) == ""
    prefix_of(env).rename(prefix_of(env).with_name("away"))
    assert (status.current(env), status.verified(env)) == (None, "there is nothing to verify")
    Path(env["link"]).unlink()
    assert (status.current(env), status.late(env, 15)) == (None, "")


@pytest.mark.parametrize(
    ("after", "late"), [(0, False), (15 * DAY, False), (15 * DAY + 1, True), (1 - DAY, False), (-DAY, True)]
)
def test_a_verification_is_late_after_the_days_and_when_its_time_is_to_come(
    status: Any, env: dict[str, Any], after: int, late: bool
) -> None:
    note(prefix_of(env), "verified", words="", at="then", time=10**9)
    assert status.late(env, 15, 10**9 + after) == (f"not since then: {START}" if late else "")
    (prefix_of(env) / ".hal/verified.json").unlink()
    assert status.late(env, 15, 10**9) == f"never: {START}"


def test_each_environment_is_told_at_its_place_and_what_cannot_be_read_is_told_there(
    status: Any, env: dict[str, Any]
) -> None:
    note(prefix_of(env), "verified", words="bad", at="then", time=0)
    one = {"id": "t/1", "wrong": "", "verified": "bad; seen then", "late": f"not since then: {START}"}
    assert status.of([{**env, "at": 2}, {**env, "at": 0}], 15) == {"environments": [one, None, one]}
    assert status.of([], 15) == {"environments": []}
    (prefix_of(env) / ".hal/verified.json").write_text("{")
    found = status.of([env], 15)["environments"][0]
    path = prefix_of(env) / ".hal/verified.json"
    assert found["wrong"] == ""
    assert [found[name].split(": ")[0] for name in ("verified", "late")] == [f"{path} cannot be read"] * 2


def test_a_prefix_is_used_by_a_program_a_folder_or_an_activation(status: Any, tmp_path: Path) -> None:
    root, typed, proc = tmp_path / "real", tmp_path / "typed", tmp_path / "proc"
    for name in ("t/1.a/bin", "t/2.b", "t/3.c", "t/4.d", ".packages/files", "t5"):
        (root / name).mkdir(parents=True)
    (root / "t/4").symlink_to("4.d")
    typed.symlink_to("real")
    processes: dict[str, dict[str, Any]] = {
        "1": {"exe": root / "t/1.a/bin/python", "environ": b"A=b\0"},
        "2": {"cwd": root / "t/2.b"},
        "3": {"exe": "/usr/bin/sleep", "environ": os.fsencode(f"A=b\0CONDA_PREFIX={typed}/t/3.c\0B=c\0")},
        "4": {"environ": os.fsencode(f"XCONDA_PREFIX={root}/t/9\0CONDA_PREFIX={typed}/t/4\0")},
        "5": {"cwd": root / ".packages/files"},
        "6": {"cwd": root / "t5"},
        "7": {"cwd": f"{root}more/t/7.g"},
        "self": {"cwd": root / "t/8.h"},
        "8": {},
    }
    for number, files in processes.items():
        (proc / number).mkdir(parents=True)
        for name, target in files.items():
            if name == "environ":
                (proc / number / name).write_bytes(target)
            else:
                (proc / number / name).symlink_to(target)
    expected = ["t/1.a", "t/2.b", "t/3.c", "t/4.d"]
    assert status.used(f"{typed}/", str(proc)) == status.used(str(typed), str(proc)) == expected
    assert status.used(str(root), str(proc)) == ["t/1.a", "t/2.b"], "an address that is typed is not guessed"
