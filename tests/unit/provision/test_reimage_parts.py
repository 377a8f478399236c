"""Parts of hal-reimage, in this process: borders, orders, and words with their values."""

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

from hal_reimage.record import State, Step, stamp
from tests.unit.provision.conftest import node
from tests.unit.provision.reimages import NOW, done, failed, record
from tests.unit.provision.test_store import Place, Problem, settings_of

shown: Any = importlib.import_module("reimage_status")
store: Any = importlib.import_module("reimage_store")
slurm: Any = importlib.import_module("reimage_slurm")
cli: Any = importlib.import_module("reimage_cli")


@pytest.fixture
def place(tmp_path: Path) -> Any:
    return Place(str(settings_of(tmp_path, [node("hal05", 5), node("hal06", 6)])))


def problem(function: Any, *words: Any) -> str:
    with pytest.raises(Problem) as refused:
        function(*words)
    return str(refused.value)


# ---------------------------------------------------------------- what is shown

BOOTS: dict[str, Any] = {"armed": False, "until": "", "stopped": None, "unfinished": "", "called": None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "it boots its disk"),
        ({"problem": "x is damaged"}, "x is damaged"),
        ({"armed": True, "until": "T"}, "it boots the installer until T"),
        ({"armed": True, "until": "T", "called": {"at": "C"}}, "it boots the installer until T"),
        (
            {"armed": True, "until": "T", "stopped": {"at": "S", "why": "W"}, "unfinished": "U"},
            "it boots the installer until T; its installer stopped at S: W",
        ),
        ({"armed": True, "until": "T", "unfinished": "U"}, "it boots the installer until T; U"),
        ({"stopped": {"at": "S", "why": "W"}, "unfinished": "U; W"}, "it boots its disk; U; W"),
        ({"stopped": {"at": "S", "why": "W"}}, "it boots its disk"),
        ({"unfinished": "U", "called": {"at": "C"}}, "it boots its disk; U"),
        ({"called": {"at": "C"}}, "it boots its disk; it called home at C"),
    ],
)
def test_what_a_node_boots_is_said_in_words(changes: dict[str, Any], words: str) -> None:
    assert shown.boots_now({**BOOTS, **changes}) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (59, "59 s"), (61, "1 min"), (119, "1 min"), (120, "2 min"), (3661, "1 h 1 min"),
        (86399, "23 h 59 min"), (86400, "1 d 0 h"), (2 * 86400 + 3 * 3600 + 59, "2 d 3 h"),
    ],
)  # fmt: skip
def test_durations_change_their_unit_at_its_border(seconds: float, words: str) -> None:
    assert shown.duration(seconds) == words


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["hal05", "hal05"], "hal05"),
        (["a1", "a2", "b1", "a4"], "a[1-2,4],b1"),
        (["n9", "n10"], "n10,n9"),
        (["n-1", "n-3", "n-2"], "n-[1-3]"),
    ],
)
def test_a_fold_has_each_name_once(names: list[str], folded: str) -> None:
    assert shown.fold(names) == folded


@pytest.mark.parametrize(("state", "ago", "silent"), [("going", 1199, 0), ("going", 1200, 1200), ("failed", 9999, 0)])
def test_who_was_silent_for_twenty_minutes_drives_nothing(state: str, ago: int, silent: int) -> None:
    assert shown.silence({"state": state}, NOW - ago, NOW) == silent


@pytest.mark.parametrize(
    ("data", "when"),
    [
        (record(since=""), NOW - 900),
        (record(), NOW - 125),
        (record(ended=stamp(NOW)), NOW - 125),
        (failed(), NOW - 60),
        (failed(ended=""), NOW - 125),
    ],
)
def test_a_situation_began_with_its_step_or_its_end(data: dict[str, Any], when: float) -> None:
    assert shown.moment(shown.time_of(data)) == when


def rows(*records: dict[str, Any], looked: float = NOW, **more: Any) -> list[tuple[str, list[str]]]:
    data = {one["node"]: one for one in records}
    found = shown.rows(data, {}, list(data), dict.fromkeys(data, looked), NOW, **more)
    return [(row.state, row.nodes) for row in found]


@pytest.mark.parametrize(("ago", "there"), [(7 * 86400, True), (7 * 86400 + 1, False)])
@pytest.mark.parametrize("state", [State.DONE, State.ABORTED])
def test_what_ended_is_shown_for_a_week(state: State, ago: int, there: bool) -> None:
    data = done(ago=ago, state=state, reason="x")
    assert rows(data) == ([(state.value, ["hal05"])] if there else [])
    assert rows(data, wanted=["hal05"]) == [(state.value, ["hal05"])]


@pytest.mark.parametrize(("ago", "waits"), [(59, True), (60, False)])
def test_between_two_nodes_of_a_call_there_is_a_minute(ago: int, waits: bool) -> None:
    first = done("hal05", run={"nodes": ("hal05", "hal06")})
    found = shown.queue({"hal05": first}, {"hal05": NOW - ago}, NOW)
    assert [(row.state, row.step, row.words, row.nodes, row.times) for row in found] == (
        [("going", "waiting", "a turn", ["hal06"], [NOW - 900])] if waits else []
    )


def test_rows_are_in_the_order_of_what_is_to_do() -> None:
    """The furthest first; of equal ones the oldest last, and names after that."""
    early = [record("hal01", step=Step.DRAIN), record("hal02", step=Step.GATES), record("hal03", step=Step.WAITING)]
    over = [done("hal04", ago=60), done("hal05", ago=30, run={"code": "2222-3333"})]
    assert rows(*early, failed("hal06"), *over) == [
        ("going", ["hal02"]), ("going", ["hal01"]), ("going", ["hal03"]), ("failed", ["hal06"]),
        ("done", ["hal05"]), ("done", ["hal04"]),
    ]  # fmt: skip


@pytest.mark.parametrize(("newer", "older"), [(State.DONE, State.ABORTED), (State.ABORTED, State.DONE)])
def test_what_ended_last_is_first_however_it_ended(newer: State, older: State) -> None:
    over = [done("hal01", ago=60, state=older, reason="x"), done("hal02", ago=30, state=newer, reason="y")]
    assert rows(*over) == [(newer.value, ["hal02"]), (older.value, ["hal01"])]


def test_a_step_that_has_begun_is_before_one_that_waits() -> None:
    begun = [record("hal01", step=Step.WAITING), record("hal02", step=Step.IDENTITY)]
    assert rows(*begun) == [("going", ["hal02"]), ("going", ["hal01"])]


def test_what_is_damaged_is_shown_when_it_is_wanted() -> None:
    problems = {"hal05": "a\nb", "hal06": "c"}
    found = shown.rows({}, problems, [], {}, NOW, ["hal05"])
    assert [(row.state, row.step, row.words, row.nodes) for row in found] == [("failed", "not known", "a b", ["hal05"])]
    assert [row.nodes for row in shown.rows({}, problems, [], {}, NOW)] == [["hal05"], ["hal06"]]


@pytest.mark.parametrize(("state", "number"), [("left", "31"), ("failed", "31"), ("aborted", "33"), ("done", "32")])
def test_each_state_has_its_colour(state: str, number: str) -> None:
    row = shown.Row(state, "s", "w", ["more"])
    row.nodes = ["hal05"]
    lines = shown.table([row], NOW, 80, True)
    assert lines == [
        "nodes  step  since  waiting for, or why",
        f"\033[{number}mhal05  s            w\033[0m",
        f"\033[{number}m       more\033[0m",
    ]


def test_a_narrow_table_breaks_names_and_words() -> None:
    row = shown.Row("going", "6/11 install", "word " * 12, ["hyphened-words-stay " * 3])
    row.nodes, row.times = ["hal01", "b1", "c1", "a-name-of-many-letters"], [NOW - 60, NOW - 120]
    assert shown.table([row], NOW, 60) == [
        "nodes          step          since  waiting for, or why",
        "a-name-of-man  6/11 install  2 min  word word word word word",
        "y-letters,b1,                       word word word word word",
        "c1,hal01                            word word",
        "               hyphened-words-stay hyphened-words-stay",
        "               hyphened-words-stay",
    ]


def test_words_fill_their_column_to_the_last_letter() -> None:
    row = shown.Row("going", "6/11 install", "abcd-fghi " * 6)
    row.nodes, row.times = ["hal01"], [NOW - 60]
    head = "nodes  step          since  waiting for, or why"
    begins = "hal01  6/11 install  1 min  "
    for width, words in ((57, 29), (56, 19), (58, 29), (67, 39)):
        lines = shown.table([row], NOW, width)
        assert lines[:2] == [head, begins + ("abcd-fghi " * 6)[:words]]


def test_names_have_ten_letters_at_least_and_words_two_dozen() -> None:
    row = shown.Row("going", "6/11 install", "a" * 23 + " b " + "c" * 30)
    row.nodes, row.times = ["a-name-of-many-letters"], [NOW - 60]
    assert shown.table([row], NOW, 30)[1:] == [
        "a-name-of-  6/11 install  1 min  " + "a" * 23,
        "many-lette" + " " * 23 + "b " + "c" * 22,
        "rs" + " " * 31 + "c" * 8,
    ]


@pytest.mark.parametrize(("width", "lines"), [(49, [35, 35]), (48, [29, 29, 11]), (50, [35, 35])])
def test_a_sheet_fills_its_width(width: int, lines: list[int]) -> None:
    data = failed(reason=" ".join(["ab-de"] * 12))
    found = shown.sheet(data, True, "", NOW, NOW, NOW, width)
    about = found[1 : found.index(next(line for line in found if line.startswith("  machine")))]
    assert [len(line) - 14 for line in about] == lines


def test_a_sheet_says_where_it_ended() -> None:
    aborted = record(state=State.ABORTED, reason="x", ended=stamp(NOW - 60), run={"by_slurm": True})
    lines = shown.sheet(aborted, True, "", NOW, NOW, NOW, 30)
    assert lines[0] == "hal05: aborted at 6/11 install since 2027-01-15T07:59:00Z (1 min)"
    assert "  begun by    scontrol reboot ASAP" in lines
    assert not any(line.startswith(("  next", "  waiting", "  test job", "  host key")) for line in lines)
    assert max(len(line.removeprefix("  image       ")) for line in lines[1:]) <= 64


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
    [("x" * 240, "x" * 240), ("x" * 241, "x" * 237 + "..."), ("a\"b'c\\[d]\té~ ", "abc(d)??~ ")],
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
        f"hal05: more than {most} bytes on standard input are no record"
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
