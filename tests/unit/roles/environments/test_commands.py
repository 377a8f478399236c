"""Commands of hal-environment: which environments they take, what they say of each, how they end."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NUMBERS = ("keep", "grace_hours", "reserve_gb", "unpacked_factor", "timeout_seconds", "verify_max_days")
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(
    part: Callable[[str], Any], tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Call:
    """A function: words -> status, output, errors. Roles a and b declare three environments that are not there."""
    monkeypatch.setitem(part("common").PACKAGES, "account", "")
    (tmp_path / "declared").mkdir()
    settings = {"root": str(tmp_path), "mount": "", "account": "", **dict.fromkeys(NUMBERS, "1")}
    (tmp_path / "settings").write_text(json.dumps(settings))
    for owner, ids in (("a", ["x/1", "x/2"]), ("b", ["y/1"])):
        declared = [{"id": one, "at": at, "link": f"{tmp_path}/{one}"} for at, one in enumerate(ids)]
        (tmp_path / f"declared/{owner}.json").write_text(json.dumps(declared))

    def call(*words: str, given: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(given))
        places = [f"--{name}={tmp_path / name}" for name in ("settings", "declared", "lock")]
        before = os.umask(0o077)
        status = part("main").main([*places, *words])
        assert os.umask(before) == 0o022, "what is made is for everybody to read"
        told = capfd.readouterr()
        return status, told.out, told.err

    return call


def test_a_list_says_of_each_what_is_wrong_or_that_it_is_ready(
    call: Call, part: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    status = part("status")
    said = {"x/1": ("", "", ""), "x/2": ("", "", ""), "y/1": ("", "", "")}
    asked: list[float] = []

    def late(env: dict[str, Any], days: float) -> str:
        asked.append(days)
        return said[env["id"]][2]

    monkeypatch.setattr(status, "wrong", lambda env: said[env["id"]][0])
    monkeypatch.setattr(status, "verified", lambda env: said[env["id"]][1])
    monkeypatch.setattr(status, "late", late)
    ready = [f"{one:<28} ready" for one in said]
    assert call("list") == (0, "\n".join(ready) + "\n", "")
    assert asked == [1.0] * 3
    for at, words in enumerate((("gone", "bad", "old"), ("", "bad", "old"), ("", "", "old"))):
        said["x/1"] = words
        line = f"{'x/1':<28} {words[at]}"
        assert call("list") == (1, "\n".join([line, *ready[1:]]) + "\n", "")


def test_each_that_is_named_is_verified_and_one_that_fails_keeps_no_other(
    call: Call, part: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(env: dict[str, Any]) -> str:
        assert (tmp_path / "lock").read_text().startswith(f"process {os.getpid()} on ")
        if env["id"] == "x/1":
            raise part("common").Problem("not there")
        return "1 changed" if env["id"] == "x/2" else ""

    monkeypatch.setattr(part("install"), "verify", verify)
    right = "y/1: every file is as it was installed\n"
    assert call("verify") == (1, f"x/1: not there\nx/2: 1 changed\n{right}", "")
    assert call("verify", "y/1") == (0, right, "")
    assert call("verify", "y/1", "x/2") == (1, f"x/2: 1 changed\n{right}", "")
    declared = "not declared; declared are x/1, x/2, y/1\n"
    assert call("verify", "z/2", "y/1", "z/1") == (1, "", f"hal-environment: z/1, z/2: {declared}")
    for name in ("a", "b"):
        (tmp_path / f"declared/{name}.json").unlink()
    assert call("verify") == (0, "", "")
    assert call("verify", "z/1") == (1, "", "hal-environment: z/1: not declared; declared are none\n")


def test_names_of_a_package_s_files_drive_no_terminal(
    call: Call, part: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who made a package chose them; a user of the file system may have laid others there."""
    monkeypatch.setattr(part("install"), "verify", lambda env: "1 added: a\x1b]0;x\x07\n\u202e")
    said = "1 added: a\\x1b]0;x\\x07\\x0a\\u202e"
    assert call("verify", "y/1") == (1, f"y/1: {said}\n", "")
    assert call("verify", "\x1b[2J")[2].startswith("hal-environment: \\x1b[2J: not declared; ")


def test_nothing_is_verified_or_installed_where_the_file_system_is_not_mounted(call: Call, tmp_path: Path) -> None:
    settings = json.loads((tmp_path / "settings").read_text())
    (tmp_path / "settings").write_text(json.dumps({**settings, "mount": str(tmp_path)}))
    words = f"{tmp_path} is not mounted: nothing is done"
    assert call("verify") == (1, "", f"hal-environment: {words}\n")
    status, out, errors = call("apply", given="{}")
    assert (status, json.loads(out)["problem"], errors) == (1, words, "")


def test_what_a_role_s_environments_are_like_is_said_as_data(call: Call, tmp_path: Path) -> None:
    status, out, errors = call("status", "a")
    assert (status, errors, out.count("\n")) == (0, "", 1)
    found = json.loads(out)["environments"]
    assert [one["wrong"] for one in found] == [
        f"{tmp_path}/{one} is not there: it is not installed" for one in ("x/1", "x/2")
    ]
    words = f"{tmp_path}/declared/c.json is not there: the role c has not been rolled out here"
    assert call("status", "c") == (1, "", f"hal-environment: {words}\n")
    (tmp_path / "settings").unlink()
    words = f"{tmp_path}/settings is not there: roll out the role environments"
    assert call("used") == (1, "", f"hal-environment: {words}\n")


def test_prefixes_in_use_are_told_a_line_each(
    call: Call, part: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part("status"), "used", lambda root: ["x/1.a", "x/1.b"] if root == str(tmp_path) else [])
    assert call("used") == (0, "x/1.a\nx/1.b\n", "")


@pytest.mark.parametrize("check", [False, True])
def test_a_request_is_carried_out_under_the_lock_and_answered_in_one_line(
    call: Call, part: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: bool
) -> None:
    request = {"environments": [1], "owner": "o", "remove_ok": True, "used": ["u"], "told": {"t": "ü"}}
    asked: list[Any] = []

    def apply(self: Any, *given: Any) -> dict[str, Any]:
        assert (tmp_path / "lock").read_text().startswith(f"process {os.getpid()} on ")
        asked.append((self.checking, *given))
        self.say("a step: ü")
        if len(asked) > 1:
            self.done["installed"].append("x/1")
            raise part("common").Problem("no ü")
        return {"done": "ü"}

    monkeypatch.setattr(part("install").Installer, "apply", apply)
    words = ["apply", *(["--check"] if check else [])]
    assert call(*words, given=json.dumps(request)) == (0, '{"done": "\\u00fc"}\n', "a step: ü\n")
    assert asked == [(check, *request.values())]
    status, out, _ = call(*words, given=json.dumps(request))
    lists: dict[str, list[str]] = {key: [] for key in ("repaired", "switched", "removed", "kept", "mended")}
    assert (status, json.loads(out)) == (1, {**lists, "changed": False, "installed": ["x/1"], "problem": "no ü"})
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o600
