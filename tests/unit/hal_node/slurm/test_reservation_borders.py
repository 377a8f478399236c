"""Reservations to the second and to the word: what begins now, what is over, which of several are acted on."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.reservations import KEYS, ReservationError, read, steps

START, END = datetime(2027, 1, 10, 8, 0, 0), datetime(2027, 1, 10, 16, 0, 0)
LONG_BEFORE, SECOND = datetime(2026, 11, 21), timedelta(seconds=1)
WHOLE: dict[str, Any] = {
    "name": "maint",
    "nodes": "hal[01-02]",
    "start": "2027-01-10T08:00:00",
    "end": "2027-01-10T16:00:00",
    "users": ["root"],
}
COUNTED: dict[str, Any] = {**{key: value for key, value in WHOLE.items() if key != "nodes"}, "node_count": 2}
SHOWN = (
    "ReservationName=maint StartTime=2027-01-10T08:00:00 EndTime=2027-01-10T16:00:00 Duration=08:00:00 "
    "Nodes=hal[01-02] NodeCnt=2 Features=(null) PartitionName=(null) Flags=SPEC_NODES Users=root Accounts=(null)"
)


def told(entries: list[dict[str, Any]], shown: str = "", now: datetime = LONG_BEFORE) -> list[str]:
    """What scontrol is asked for, in order."""
    return [" ".join(step.argv[1:]) for step in steps(entries, read(shown), now)]


def changed(shown: str = SHOWN, now: datetime = LONG_BEFORE, **values: Any) -> list[str]:
    """Which words are set when other values are declared than those of a reservation that is there."""
    lines = told([{**WHOLE, **values}], shown, now)
    begin = "update reservation ReservationName=maint "
    assert all(line.startswith(begin) for line in lines)
    return [line.removeprefix(begin) for line in lines]


@pytest.mark.parametrize(
    ("now", "begins"),
    [(START - SECOND, "2027-01-10T08:00:00"), (START, "now"), (START + SECOND, "now"), (END - SECOND, "now")],
)
def test_a_new_one_begins_at_its_time_or_now_if_that_has_passed(now: datetime, begins: str) -> None:
    assert told([WHOLE], now=now) == [
        f"create reservation ReservationName=maint StartTime={begins} EndTime=2027-01-10T16:00:00 "
        "Nodes=hal[01-02] Users=root"
    ]


@pytest.mark.parametrize("now", [END, END + SECOND])
@pytest.mark.parametrize("shown", ["", SHOWN.replace("root", "alice")])
def test_one_that_is_over_is_neither_made_nor_changed(now: datetime, shown: str) -> None:
    assert told([WHOLE], shown, now) == []


def test_a_start_is_changed_until_it_has_come() -> None:
    earlier = SHOWN.replace("StartTime=2027-01-10T08", "StartTime=2027-01-10T07")
    assert changed(earlier, START - SECOND) == ["StartTime=2027-01-10T08:00:00"]
    assert changed(earlier, START) == []


@pytest.mark.parametrize("end", ["2027-01-10T15:59:59", "2027-01-10T16:00:01"])
def test_an_end_is_changed_to_the_second(end: str) -> None:
    assert changed(end=end) == [f"EndTime={end}"]


def test_one_that_lasts_a_second_is_made_and_one_of_no_time_is_refused() -> None:
    assert told([{**WHOLE, "end": "2027-01-10T08:00:01"}])[0].count("EndTime=2027-01-10T08:00:01") == 1
    with pytest.raises(ReservationError, match=r"^reservation maint: it ends before it starts$"):
        told([{**WHOLE, "end": "2027-01-10T08:00:00"}])


def test_after_one_that_needs_nothing_the_others_have_their_turn() -> None:
    over = {**WHOLE, "name": "over", "start": "2026-01-01T00:00:00", "end": "2026-01-02T00:00:00"}
    entries = [{"name": "never", "state": "absent"}, over, {**WHOLE, "name": "first"}, {**WHOLE, "state": "present"}]
    other = SHOWN.replace("root", "alice")
    assert [line.split()[2] for line in told(entries, other)] == ["ReservationName=first", "ReservationName=maint"]


def test_what_is_done_is_said_of_each() -> None:
    entries = [{"name": "old", "state": "absent"}, {**WHOLE, "name": "new"}, {**WHOLE, "users": ["bob"]}]
    shown = f"{SHOWN}\n{SHOWN.replace('maint', 'old')}\n"
    assert [step.text for step in steps(entries, read(shown), LONG_BEFORE)] == [
        "old deleted",
        "new added",
        "maint: Users=bob",
    ]


def test_so_many_nodes_are_asked_for_and_kept() -> None:
    assert "Nodes=" not in told([COUNTED])[0]
    assert " NodeCnt=2 " in told([COUNTED])[0]
    assert told([COUNTED], SHOWN) == []
    for count in (1, 3):
        line = f"update reservation ReservationName=maint NodeCnt={count}"
        assert told([{**COUNTED, "node_count": count}], SHOWN) == [line]
    line = "update reservation ReservationName=maint NodeCnt=1"
    assert told([{**COUNTED, "node_count": 1}], SHOWN.replace(" NodeCnt=2", "")) == [line]


@pytest.mark.parametrize("nodes", ["hal02,hal01", "hal[01-02]", "hal[02,01]"])
def test_the_same_nodes_in_other_words_are_no_change(nodes: str) -> None:
    assert changed(nodes=nodes) == []


@pytest.mark.parametrize("nodes", ["hal01", "hal[01-03]"])
def test_other_nodes_are_set(nodes: str) -> None:
    assert changed(nodes=nodes) == [f"Nodes={nodes}"]


def test_nodes_that_nobody_can_read_are_refused_with_the_reservations_name() -> None:
    with pytest.raises(ReservationError, match=r"^reservation maint: nodes: "):
        changed(nodes="hal[02-01]")


def test_flags_are_added_and_taken_away_and_those_that_slurm_sets_stay() -> None:
    shown = SHOWN.replace("SPEC_NODES", "MAINT,SPEC_NODES,DAILY")
    assert changed(shown, flags=["OVERLAP", "MAINT", "FLEX"]) == ["Flags+=FLEX,OVERLAP", "Flags-=DAILY"]
    assert changed(shown, flags=["DAILY", "MAINT"]) == []
    assert changed(shown) == ["Flags-=DAILY,MAINT"]


def test_a_partition_that_is_not_declared_is_left_as_it_is() -> None:
    assert changed(SHOWN.replace("PartitionName=(null)", "PartitionName=gpu")) == []
    assert changed(SHOWN.replace("PartitionName=(null)", "PartitionName=gpu"), partition="gpu") == []


def test_users_and_accounts_may_both_be_declared_and_several_of_them() -> None:
    line = told([{**WHOLE, "users": ["bob", "ann"], "accounts": ["isl", "nlp"], "partition": "gpu"}])[0]
    assert line.endswith(" Nodes=hal[01-02] PartitionName=gpu Users=bob,ann Accounts=isl,nlp")
    shown = SHOWN.replace("Users=root", "Users=ann,bob")
    assert changed(shown, users=["bob", "ann"]) == []
    assert changed(users=[], accounts=["isl"]) == ["Accounts=isl", "Users="]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([WHOLE, WHOLE], "reservation maint is declared twice"),
        ([WHOLE, {"name": "maint", "state": "absent"}], "reservation maint is declared twice"),
        ([{**WHOLE, "name": ""}], "reservation without a name"),
        ([{"state": "absent"}], "reservation without a name"),
        ([{"name": "old", "state": "absent"}, {**WHOLE, "users": []}], "reservation maint: give users or accounts"),
        ([{**WHOLE, "node_count": 1}], "reservation maint: give either nodes or node_count"),
        ([{**WHOLE, "end": None, "duration": "soon"}], "reservation maint: duration: "),
        ([{**WHOLE, "end": "2027-01-10"}], "reservation maint: end '2027-01-10' is not a time such as"),
        ([{**WHOLE, "b": 1, "a": 2}], f"reservation maint: unknown key a, b; known are {', '.join(KEYS)}"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_done(entries: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(ReservationError) as refused:
        told(entries, SHOWN)
    assert str(refused.value).startswith(words)


def test_what_is_no_reservation_is_not_read_as_one() -> None:
    shown = read(f"slurm_load_reservations: a warning=1\n{SHOWN}\n\n{SHOWN.replace('maint', 'other')}\n")
    assert list(shown) == ["maint", "other"]
    assert (shown["maint"]["Accounts"], shown["maint"]["Users"]) == ("", "root")
