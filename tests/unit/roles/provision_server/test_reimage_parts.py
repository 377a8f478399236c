"""Parts of hal-reimage, in this process: its records, what it tells Slurm, and the program around them."""

from __future__ import annotations

import errno
import importlib
import io
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hal_cluster.reimage.record import Step
from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.roles.provision_server.refusals import problem
from tests.unit.roles.provision_server.reimages import failed, record
from tests.unit.roles.provision_server.test_store import Place, settings_of

store: Any = importlib.import_module("reimage_store")
slurm: Any = importlib.import_module("reimage_slurm")
cli: Any = importlib.import_module("reimage_cli")


@pytest.fixture
def place(tmp_path: Path) -> Any:
    return Place(str(settings_of(tmp_path, [node("hal05", 5), node("hal06", 6)])))


# ---------------------------------------------------------------- records


def test_when_somebody_drove_a_node_last_is_the_later_of_two(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, mark = Path(place.records, "hal05.json"), Path(place.records, ".driven-hal05")
    assert store.looked(place, "hal05") is None
    mark.touch()
    assert store.looked(place, "hal05") is None
    path.touch()
    for written, driven in ((1000, 2000), (4000, 3000)):
        os.utime(path, (written, written))
        os.utime(mark, (driven, driven))
        assert store.looked(place, "hal05") == max(written, driven)
    mark.unlink()
    assert store.looked(place, "hal05") == 4000

    def closed(path: str) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(store, "os", SimpleNamespace(path=os.path, stat=closed))
    assert problem(store.looked, place, "hal05") == f"{path}: cannot be read: Permission denied"


def test_only_what_goes_on_is_marked_and_every_fault_is_said(place: Any) -> None:
    for data in (record("hal05"), record("hal06"), failed("hal07")):
        Path(place.records, f"{data['node']}.json").write_text(json.dumps(data))
    assert store.driven(place, ["hal05", "hal07", "hal08"]) == ""
    mark = Path(place.records, ".driven-hal05")
    assert sorted(path.name for path in Path(place.records).glob(".driven-*")) == [mark.name]
    os.utime(mark, (1, 1))
    store.driven(place, ["hal05"])
    assert time.time() - mark.stat().st_mtime < 3600
    mark.unlink()
    for name in ("hal05", "hal06"):
        Path(place.records, f".driven-{name}").mkdir()
    said = [f"{place.records}/.driven-{name}: cannot be written: Is a directory" for name in ("hal05", "hal06")]
    assert problem(store.driven, place, []) == "\n".join(said)


def test_records_that_cannot_be_listed_are_named(place: Any) -> None:
    Path(place.records, "hal05.json").write_text("{")
    Path(place.records, "hal06.json").write_text("[]")
    said = [f"{place.records}/hal05.json: is damaged; no JSON", f"{place.records}/hal06.json: is damaged; no mapping"]
    assert problem(store.images_in_use, place) == "\n".join(said)
    place.records += ".gone"
    assert problem(store.names, place) == f"{place.records}: cannot be read: No such file or directory"


@pytest.mark.parametrize("changes", [{"state": "failed", "reason": "x"}, {"step": "boot"}, {"revision": 8}, None])
def test_only_the_newest_record_arms(place: Any, changes: dict[str, Any] | None) -> None:
    good = {**record(step=Step.ARM), "revision": 7}
    path = Path(place.records, "hal05.json")
    path.write_text(json.dumps(good))
    with store.newest(place, "hal05", 7):
        pass
    path.unlink() if changes is None else path.write_text(json.dumps({**good, **changes}))
    said = "hal05: not armed: its reimage was aborted, or somebody else goes on with it"
    assert problem(store.newest(place, "hal05", 7).__enter__) == said


# ---------------------------------------------------------------- Slurm


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Slurm answers so, by its first words; and is written down what it is told."""
    found = SimpleNamespace(words=[], answers={}, waited=[])

    def run(*words: str) -> tuple[int, str]:
        found.words.append(" ".join(words))
        answers = [found.answers[one] for one in found.answers if found.words[-1].startswith(one)]
        return answers[0] if answers else (0, "")

    monkeypatch.setattr(slurm, "_run", run)
    monkeypatch.setattr(slurm, "_is_there", lambda program: program == "scontrol")
    monkeypatch.setattr(slurm.time, "sleep", found.waited.append)
    return found


def test_a_reservation_that_does_not_go_is_tried_ten_times_and_said(told: SimpleNamespace) -> None:
    told.answers = {"scontrol --oneliner": (0, "x State=IDLE y"), "scontrol delete": (1, "in use")}
    assert problem(slurm.drain, "hal05", "why") == (
        "drained in Slurm: why; its reservation for a test job is still there: in use;"
        " scontrol delete ReservationName=hal-reimage-hal05"
    )
    assert told.words[2:] == [
        "scontrol show reservation hal-reimage-hal05",
        "scancel --name hal-reimage-hal05 --nodelist hal05",
        *["scontrol delete ReservationName=hal-reimage-hal05"] * 10,
    ]
    assert told.waited == [0.5] * 10


def test_what_slurm_says_of_a_reservation_is_no_reservation_only_when_it_is_not_found(told: SimpleNamespace) -> None:
    told.answers = {"scontrol --oneliner": (0, "x State=IDLE"), "scontrol show": (1, "no controller")}
    assert ": no controller; scontrol delete" in problem(slurm.drain, "hal05", "why")
    told.answers["scontrol show"] = (1, "Reservation not found")
    assert slurm.drain("hal05", "why") == "drained in Slurm: why"
    told.answers["scontrol --oneliner"] = (1, "Node hal05 not found")
    assert slurm.drain("hal05", "why") == "Slurm does not know it"
    told.answers["scontrol --oneliner"] = (1, "no controller")
    assert problem(slurm.drain, "hal05", "why") == "not drained in Slurm: no controller"


def test_where_slurm_is_not_its_command_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "scontrol").touch(0o644)
    assert not slurm._is_there("scontrol")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"/nowhere{os.pathsep}{tmp_path}")
    assert slurm._is_there("scontrol")
    (tmp_path / "scontrol").chmod(0o644)
    assert slurm.drain("hal05", "why") == (
        "Slurm's commands are not on this machine; where they are:"
        " scontrol update NodeName=hal05 State=DRAIN Reason=hal-reimage"
    )


@pytest.mark.parametrize(
    ("reason", "line"),
    [("x" * 240, "x" * 240), ("x" * 241, "x" * 237 + "..."), ("a\"b'c\\[d]\té~ ", "abc(d) ~")],
)
def test_a_reason_is_what_slurm_keeps(told: SimpleNamespace, reason: str, line: str) -> None:
    told.answers = {"scontrol --oneliner": (0, "x State=IDLE"), "scontrol show": (1, "not found")}
    assert slurm.drain("hal05", reason) == f"drained in Slurm: {line}"
    assert told.words[1] == f"scontrol update NodeName=hal05 State=DRAIN Reason={line}"


def test_what_slurm_says_is_one_line_in_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "timeout").write_text('#!/bin/sh\nshift\nprintf "%s,\\n  " "$LC_ALL" "$@"; echo x >&2; exit 3\n')
    (tmp_path / "timeout").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert slurm._scontrol("a", "é") == (3, "C, scontrol, a, é, x")
    (tmp_path / "timeout").write_text("#!/bin/sh\nexit 124\n")
    assert slurm._scontrol("a") == (124, "no answer within 30 s")
    monkeypatch.setenv("PATH", "/nowhere")
    assert problem(slurm._scontrol, "a") == "scontrol cannot be run: No such file or directory"


# ---------------------------------------------------------------- the program


def test_a_record_has_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    most = 256 * 1024

    def given(content: bytes) -> Any:
        monkeypatch.setattr(cli, "standard_input", lambda: io.BytesIO(content))
        return cli._given("hal05")

    assert given(b'"' + b"x" * (most - 2) + b'"') == "x" * (most - 2)
    assert problem(given, b'"' + b"x" * (most - 1) + b'"') == (
        f"hal05: more than {most} bytes on standard input are not a record"
    )
    for content in (b"{", b'"\xff"'):
        assert problem(given, content) == "hal05: no record on standard input; JSON"


def test_who_aborts_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "al;ice@x.y_z-1")
    assert cli._who() == "al?ice@x.y_z-1"
    monkeypatch.delenv("SUDO_USER")
    monkeypatch.setattr(cli.os, "geteuid", lambda: 12)
    monkeypatch.setattr(cli.pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name=f"user{uid}"))
    assert cli._who() == "user12"

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.setattr(cli.pwd, "getpwuid", unknown)
    assert cli._who() == "uid 12"


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"),
    [
        (True, {"TERM": "xterm"}, True), (False, {"TERM": "xterm"}, False), (True, {"TERM": "dumb"}, False),
        (True, {}, False), (True, {"TERM": "xterm", "NO_COLOR": ""}, False),
    ],
)  # fmt: skip
def test_colours_are_for_terminals_that_have_them(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], coloured: bool
) -> None:
    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cli.sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
    assert cli._coloured() is coloured
    assert cli._width() == 80  # it has no number of a file
