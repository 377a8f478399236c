"""hal-container, the program: what each command prints, keeps and refuses; the registry and builds are their own."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "roles/singularity/files"), str(ROOT / "plugins/module_utils")]

common: Any = importlib.import_module("container_common")
program: Any = importlib.import_module("hal_container")

NOW = 1_600_000_000
DAY = 86400
LOCK = ("lock", "/run/hal-container.lock", common.Problem, 0, "images")
VERSION = {"definition": "Bootstrap: docker\nFrom: x\xfc\n\n", "built_at": NOW, "built_by": "builder", "on": "login",
           "singularity": "3.5.3", "sha256": "abc"}  # fmt: skip
USER = {"name": "alice", "uid": 5001, "slot": 0, "start": 1_000_000, "count": 65536, "enabled": True}


class Registry:
    """Images as they are told: of each its size, its version or None, and what is wrong with it."""

    root = "/reg"

    def __init__(self) -> None:
        self.here: dict[str, tuple[int, dict[str, Any] | None, str]] = {}
        self.done: list[Any] = []
        self.found: dict[str, str] = {}
        self.older: str | None = None
        self.there = True

    def __call__(self, root: str, mount: str) -> Registry:
        self.done.append(("registry", root, mount))
        return self

    def images(self) -> list[str]:
        return sorted(self.here)

    def versions(self) -> dict[str, Any]:
        return {"known": []}

    def path(self, name: str) -> str:
        return f"/reg/{name}.sif"

    def status_of(self, name: str) -> Any:
        size = self.here[name][0]
        return os.stat_result((0,) * 6 + (size,) + (0,) * 3) if size >= 0 else None

    def version_of(self, name: str, known: Any) -> Any:
        assert known == self.versions()
        return self.here[name][1]

    def wrong(self, name: str, known: Any) -> str:
        assert known == self.versions()
        return self.here[name][2]

    def check_there(self) -> None:
        if not self.there:
            raise common.Problem("not mounted")

    def setup(self) -> list[str]:
        self.done.append("setup")
        return ["made a", "made b"]

    def verify(self) -> dict[str, str]:
        self.done.append("verify")
        return self.found

    def retire(self, name: str) -> str:
        self.done.append(("retire", name))
        return f"/reg/.hal/retired/{name}"

    def publish(self, *given: Any) -> Any:
        self.done.append(("publish", *given))
        return f"/reg/{given[0]}.sif", self.older


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    made = Registry()

    @contextmanager
    def locked(*given: Any) -> Iterator[None]:
        made.done.append(("lock", *given))
        yield
        made.done.append("unlock")

    monkeypatch.setattr(program, "Registry", made)
    monkeypatch.setattr(program, "locked", locked)
    monkeypatch.setattr(program.time, "time", lambda: NOW + 0.9)
    monkeypatch.setattr(program.os, "geteuid", lambda: 0)
    return made


@pytest.fixture
def told(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Any:
    """A function: words -> exit status, output, errors. `settings` of it are what the role has written."""
    settings = {"registry": "/reg", "mount": "/m", "verified": str(tmp_path / "verified"), "verify_max_days": "15",
                "build_dir": str(tmp_path / "builds"), "build_user": "builder", "users": [USER]}  # fmt: skip
    monkeypatch.setattr(program, "CONFIG", str(tmp_path / "containers.json"))

    def run(*words: str) -> tuple[int, str, str]:
        (tmp_path / "containers.json").write_text(json.dumps(settings))
        registry.done.clear()
        status = program.main(list(words))
        said = capfd.readouterr()
        return status, said.out, said.err

    run.settings = settings  # type: ignore[attr-defined]  # of this function
    return run


# ---------------------------------------------------------------- its use
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show"], "show takes 1 words"),
        (["show", "a", "b"], "show takes 1 words"),
        (["build", "a"], "build takes 2 words"),
        (["list", "x"], "list takes 0 words"),
    ],
)
def test_a_command_takes_its_words_and_no_others(told: Any, words: list[str], said: str) -> None:
    assert told(*words) == (2, "", f"hal-container {said}\n")


def test_help_is_an_answer_where_it_is_asked_for_and_else_an_error(told: Any) -> None:
    text = program.__doc__.strip() + "\n"
    for words in (["-h"], ["--help"], ["--help", "x"]):
        assert told(*words) == (0, text, "")
    for words in ([], ["frob"], ["frob", "--help"]):
        assert told(*words) == (2, "", text)


def test_what_changes_the_registry_is_root_s(told: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program.os, "geteuid", lambda: 1000)
    said = "hal-container: only root may do this; images of your own: singularity build --fakeroot\n"
    for words in (["build", "a", "b"], ["retire", "a"], ["verify"], ["setup"]):
        assert told(*words) == (1, "", said)
    assert registry.done == []
    assert told("list")[0] == 0


def test_without_the_role_nothing_is_done(told: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(program, "CONFIG", str(tmp_path / "none"))
    assert told("list") == (1, "", f"hal-container: {tmp_path}/none is not there: roll the role out\n")


def test_a_command_works_on_the_registry_of_the_settings(told: Any, registry: Registry) -> None:
    assert told("setup") == (0, "made a\nmade b\n", "")
    assert registry.done == [("registry", "/reg", "/m"), "setup"]


# ---------------------------------------------------------------- what users see
def test_the_list_is_a_table_as_wide_as_its_words(told: Any, registry: Registry) -> None:
    assert told("list") == (0, "no images in /reg yet\n", "")
    registry.here = {"gone": (-1, None, "")}
    assert told("list")[1] == "no images in /reg yet\n"
    registry.here |= {"a-long-name": (1_500_000, VERSION, ""), "b": (2_500_000_000, None, "")}
    assert told("list") == (
        0,
        "IMAGE        SIZE    BUILT       PATH\n"
        "a-long-name  1.5 MB  2020-09-13  /reg/a-long-name.sif\n"
        "b            2.5 GB  ?           /reg/b.sif\n",
        "",
    )


def test_an_image_is_shown_with_all_that_is_known_of_it(told: Any, registry: Registry) -> None:
    registry.here = {"tool": (1, VERSION, ""), "mine": (1, None, "")}
    assert told("show", "tool") == (
        0,
        "/reg/tool.sif\nbuilt 2020-09-13 12:26 UTC by builder on login with Singularity 3.5.3\nsha256 abc\n\n"
        "Bootstrap: docker\nFrom: x\xfc\n",
        "",
    )
    said = "hal-container: /reg/mine.sif: nobody knows where it is from: it was not built by hal-container\n"
    assert told("show", "mine") == (1, "", said)
    assert told("show", "none") == (1, "", "hal-container: none: no such image; hal-container list\n")


def test_what_users_have_written_drives_no_terminal(told: Any, registry: Registry) -> None:
    """A definition of theirs that was built for them; a file that was copied into the registry."""
    definition = "%post\n\tapt-get install \\\n\t\tx\x1b[2J\u202e\n"
    registry.here = {"a\x1b[2J": (1, {**VERSION, "definition": definition}, "")}
    assert "/reg/a\\x1b[2J.sif\n" in told("list")[1]
    status, out, _ = told("show", "a\x1b[2J")
    assert (status, out.split("\n\n")[1]) == (0, "%post\n\tapt-get install \\\n\t\tx\\x1b[2J\\u202e\n")
    registry.found = {"a\x1b[2J": "differs"}
    assert told("verify")[2] == "/reg/a\\x1b[2J.sif differs\n"
    assert told("show", "\x9b2J") == (1, "", "hal-container: \\u009b2J: no such image; hal-container list\n")


# ---------------------------------------------------------------- what root does
def test_a_build_is_published_under_the_lock(
    told: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def build(settings: Any, definition: str, publish: Any) -> Any:
        registry.done.append(("build", settings == told.settings, definition))
        return publish("/b/image.sif", {"on": "here"})

    monkeypatch.setattr(program, "build", build)
    monkeypatch.setattr(program.signal, "signal", lambda *_: None)
    monkeypatch.chdir(tmp_path)
    assert told("build", "tool", "x.def") == (0, "published /reg/tool.sif\n", "")
    assert registry.done == [
        ("registry", "/reg", "/m"), "setup", LOCK,
        ("build", True, str(tmp_path / "x.def")), ("publish", "tool", "/b/image.sif", {"on": "here"}), "unlock",
    ]  # fmt: skip
    registry.older = "/reg/tool--1.sif"
    words = "published /reg/tool.sif\nwhat it was before is /reg/tool--1.sif\n"
    assert told("build", "tool", "x.def") == (0, words, "")
    status, out, err = told("build", "Tool", "x.def")
    assert (status, out, registry.done[1:]) == (1, "", []), "a bad name is refused first"
    assert err.startswith("hal-container: 'Tool' is not a name of an image")


def test_signals_end_a_build_unless_they_are_ignored(
    told: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As nohup has it."""
    handled: list[Any] = []
    kept = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_IGN}
    monkeypatch.setattr(program, "build", lambda *_: ("/reg/tool.sif", None))
    monkeypatch.setattr(program.signal, "getsignal", kept.get)
    monkeypatch.setattr(program.signal, "signal", lambda *given: handled.append(given))
    told("build", "tool", "x.def")
    assert handled == [(signal.SIGTERM, program.stopped)]
    kept.update({signal.SIGTERM: signal.SIG_IGN, signal.SIGHUP: signal.SIG_DFL})
    told("build", "tool", "x.def")
    assert handled[1:] == [(signal.SIGHUP, program.stopped)]
    with pytest.raises(common.Problem, match=r"^stopped by signal 15$"):
        program.stopped(15, None)


def test_an_image_is_taken_away_under_the_lock(told: Any, registry: Registry) -> None:
    said = "a is in /reg/.hal/retired/a now; remove it there when nobody misses it\n"
    assert told("retire", "a") == (0, said, "")
    assert registry.done[1:] == [LOCK, ("retire", "a"), "unlock"]


def test_what_is_found_is_said_in_order_and_kept_for_root(told: Any, registry: Registry, tmp_path: Path) -> None:
    assert told("verify") == (0, "", "")
    kept = tmp_path / "verified"
    assert json.loads(kept.read_text()) == {"at": NOW, "wrong": {}}
    registry.found = {"b": "is bad", "a": "is worse"}
    assert told("verify") == (1, "", "/reg/a.sif is worse\n/reg/b.sif is bad\n")
    assert json.loads(kept.read_text()) == {"at": NOW, "wrong": registry.found}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert registry.done == [("registry", "/reg", "/m"), "verify"]
    registry.there = False
    assert told("verify") == (1, "", "hal-container: not mounted\n")
    assert told("status") == (1, "", "hal-container: not mounted\n")


@pytest.mark.parametrize("refused", [False, True])
def test_a_verification_clears_away_what_killed_builds_left(
    told: Any, registry: Registry, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, refused: bool
) -> None:
    (tmp_path / "builds").mkdir()

    def end(settings: Any) -> None:
        registry.done.append(("end", settings == told.settings))
        if refused:
            raise common.Problem("cannot be ended")

    monkeypatch.setattr(program, "end_builds", end)
    monkeypatch.setattr(program, "forget_stale", lambda folder: registry.done.append(("forget", folder)))
    assert told("verify") == (0, "", "")
    cleared = [LOCK, ("end", True), ("forget", str(tmp_path / "builds"))]
    assert registry.done[1:] == [*cleared, *([] if refused else ["unlock"]), "verify"]


# ---------------------------------------------------------------- what the audit asks
def test_the_status_has_every_image_and_what_is_wrong_with_it(told: Any, registry: Registry, tmp_path: Path) -> None:
    assert told("status") == (0, '{"images": [], "late": "", "wrong": []}\n', "")
    just, since = {**VERSION, "built_at": NOW}, {**VERSION, "built_at": NOW + 1}
    registry.here = {
        "c": (1, just, ""), "b": (1, since, ""), "a": (1, None, ""), "e": (1, just, "stands wrong"),
        "d": (1, None, "x"),
    }  # fmt: skip
    found = dict.fromkeys(["a", "b", "c", "e", "gone"], "was read wrong")
    (tmp_path / "verified").write_text(json.dumps({"at": NOW, "wrong": found}))
    status, out, _ = told("status")
    assert (status, json.loads(out)) == (0, {
        "images": ["a", "b", "c", "d", "e"], "late": "",
        "wrong": ["/reg/c.sif was read wrong", "/reg/d.sif x", "/reg/e.sif stands wrong"],
    })  # fmt: skip


def test_who_is_not_root_is_told_what_stands_there_alone(
    told: Any, registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.here = {"c": (1, VERSION, "")}
    (tmp_path / "verified").write_text(json.dumps({"at": NOW, "wrong": {"c": "was read wrong"}}))
    assert json.loads(told("status")[1])["wrong"] == ["/reg/c.sif was read wrong"]
    monkeypatch.setattr(program.os, "geteuid", lambda: 1000)
    assert told("status") == (0, '{"images": ["c"], "late": "", "wrong": []}\n', "")


@pytest.mark.parametrize(
    ("verified", "built", "days"),
    [(0, [16], 16), (0, [15], 0), (16, [40], 16), (16, [1], 0), (30, [1, 20, 18], 20), (0, [], 0), (40, [None], 0)],
)
def test_an_image_is_late_when_neither_its_build_nor_a_reading_is_young(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, verified: int, built: list[int | None], days: int
) -> None:
    monkeypatch.setattr(program.time, "time", lambda: NOW)
    for number, age in enumerate(built):
        version = None if age is None else {"built_at": NOW - age * DAY}
        registry.here[str(number)] = (1, version, "")
    read_at = NOW - verified * DAY if verified else 0
    words = f"not read again for {days} days" if days else ""
    assert program.late(registry, registry.versions(), read_at, 15) == words
    if days:
        monkeypatch.setattr(program.time, "time", lambda: NOW + DAY - 1)
        assert program.late(registry, registry.versions(), read_at, 15) == words, "whole days"


# ---------------------------------------------------------------- accounts and ranges
def test_the_account_of_builds_is_compared_with_the_declared_one(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(program, "check_nobodys", lambda *given: asked.append(given))
    assert told("check-builder") == (0, "", "")
    told.settings["users"] = [USER, {**USER, "name": "builder", "uid": 7000}]
    assert told("check-builder") == (0, "", "")
    folder = told.settings["build_dir"]
    assert asked == [("builder", None, folder), ("builder", 7000, folder)]


def test_lines_that_touch_a_declared_range_are_named_of_all_files(
    told: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ("subuid", "passwd", "subgid", "group")
    subuid, passwd, subgid, group = (str(tmp_path / name) for name in names)
    monkeypatch.setattr(program, "FILES", {subuid: passwd, subgid: group})
    assert told("check-ids") == (0, "", "")
    (tmp_path / "subuid").write_text("m\xfcller:1000000:5\nalice:5:65536\nalice:1000000:65536\n")
    (tmp_path / "subgid").write_text("bob:1000000:5\n")
    (tmp_path / "passwd").write_text("eve:x:1000001:1::/:/bin/sh\n")
    (tmp_path / "group").write_text("them:x:1000002:\n")
    status, out, err = told("check-ids")
    begun = [re.sub(rf"^{re.escape(str(tmp_path))}/(\w+:[0-9]*).*", r"\1", line) for line in out.splitlines()]
    assert (status, begun, err) == (0, ["subgid:1", "group:1", "subuid:1", "subuid:2", "passwd:1"], "")
    assert "m\xfcller" in out
