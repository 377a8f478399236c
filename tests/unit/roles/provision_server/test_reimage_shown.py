"""What hal-reimage shows of reimages: words, rows in their order, tables and sheets that fill their width."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from hal_cluster.reimage.record import State, Step, stamp
from tests.unit.roles.provision_server.reimages import NOW, done, failed, record

shown: Any = importlib.import_module("reimage_status")
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
