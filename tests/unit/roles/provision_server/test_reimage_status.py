"""What administrators are shown of reimages."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.reimage.record import Drained, State, Step, stamp
from hal_inventory.ranges import expand_list
from tests.unit.alike import alike
from tests.unit.roles.provision_server.reimages import NOW, done, failed, record

# How long is left depends on now. What Unicode made a letter after Python 2.7 is an escape there: lines end elsewhere.
alike("reimage_status", but=["boots_now", "changes", "rows", "sheet", "table"])
shown: Any = importlib.import_module("reimage_status")
KNOWN = [f"hal{at:02}" for at in range(1, 17)]


def table(*records: dict[str, Any], problems: dict[str, str] | None = None, **more: Any) -> list[str]:
    wanted = more.pop("wanted", ())
    known, silent = more.pop("known", KNOWN), more.pop("silent", {})
    looked = driven(records, silent)
    rows = shown.rows({one["node"]: one for one in records}, problems or {}, known, looked, NOW, wanted)
    lines: list[str] = shown.table(rows, NOW, **more)
    return lines


def driven(records: tuple[dict[str, Any], ...], silent: dict[str, float]) -> dict[str, float]:
    """When somebody drove each of them last: until it ended; else 10 s ago, or when ``silent`` says so."""
    return {
        one["node"]: shown.moment(one["ended"]) if one["ended"] else NOW - silent.get(one["node"], 10)
        for one in records
    }


def changes(*records: dict[str, Any], silent: dict[str, float] | None = None, **more: Any) -> dict[str, str]:
    looked = driven(records, silent or {})
    found: dict[str, str] = shown.changes({one["node"]: one for one in records}, looked, NOW, **more)
    return found


def test_equal_situations_are_one_row_since_the_first_of_them() -> None:
    nodes = [record(f"hal{at:02}", since=stamp(NOW - 60 * at)) for at in (5, 6, 7, 8, 10)]
    assert table(*nodes, record("hal01", waiting="2 jobs of alice", step=Step.DRAIN)) == [
        "nodes          step          since   waiting for, or why",
        "hal[05-08,10]  6/11 install  10 min  the call home",
        "hal01          2/11 drain    2 min   2 jobs of alice",
    ]


def test_what_waits_for_its_turn_has_no_number() -> None:
    line = table(record(step=Step.WAITING, waiting="its turn: 4 nodes are before it", since=""))[1]
    assert line == "hal05  waiting  15 min  its turn: 4 nodes are before it"


def test_first_what_goes_on_then_what_failed_and_what_to_do_then_what_ended() -> None:
    lines = table(
        done("hal01"),
        failed("hal02"),
        failed("hal03"),
        record("hal04", state=State.ABORTED, reason="aborted by alice at step drain", ended=stamp(NOW - 60)),
        record("hal05"),
        problems={"hal06": "/x/hal06.json: is damaged; no JSON"},
        width=100,
    )
    assert lines == [
        "nodes       step                  since          waiting for, or why",
        "hal05       6/11 install          2 min          the call home",
        "hal[02-03]  failed: 6/11 install  1 min ago      no call home within 30 min",
        "            look: hal-reimage show hal02; again: the same command; give up: hal-reimage abort hal02",
        "            hal03",
        "hal06       not known                            /x/hal06.json: is damaged; no JSON",
        "            look at the file; remove it when nothing can be made of it",
        "hal04       aborted               1 min ago      aborted by alice at step drain",
        "hal01       done                  1 h 0 min ago  compute-20261122-ppc64le",
    ]


def test_what_nobody_drives_is_a_row_of_its_own_with_what_to_do() -> None:
    nodes = [record(f"hal{at:02}") for at in (4, 5, 6, 7)]
    silent = {"hal04": shown.SILENT_SECONDS - 1, "hal05": 24 * 60, "hal07": 26 * 60}
    assert table(*nodes, failed("hal02"), silent=silent | {"hal02": 86400}, width=100) == [
        "nodes       step                  since      waiting for, or why",
        "hal[04,06]  6/11 install          2 min      the call home",
        "hal[05,07]  6/11 install          2 min      the call home",
        "            nobody has driven them for 24 min: give the same command again to go on, or: hal-reimage",
        "            abort hal05 hal07",
        "hal02       failed: 6/11 install  1 min ago  no call home within 30 min",
        "            look: hal-reimage show hal02; again: the same command; give up: hal-reimage abort hal02",
    ]
    left = table(record(), silent={"hal05": 14 * 3600}, width=120)[2]
    said = "nobody has driven it for 14 h 0 min: give the same command again to go on, or: hal-reimage abort hal05"
    assert left.strip() == said


FOUR = {"nodes": ("hal01", "hal02", "hal03", "hal04")}


@pytest.mark.parametrize(
    ("begun", "silent", "left", "words"),
    [
        ([record("hal01", run=FOUR)], {}, "hal[02-04]", "a turn after hal01"),
        ([done("hal01", run=FOUR), record("hal02", run=FOUR)], {}, "hal[03-04]", "a turn after hal02"),
        ([record("hal01", run=FOUR), record("hal02", run=FOUR)], {"hal01": 3600}, "hal[03-04]",
         "a turn after hal[01-02]"),
        ([record("hal01", run=FOUR), record("hal02", run=FOUR)], {"hal01": 3600, "hal02": 3600}, "hal[03-04]",
         "a turn after hal[01-02], which nobody drives; the same command goes on"),
        ([failed("hal01", run=FOUR), record("hal02", run=FOUR)], {}, "hal[03-04]",
         "a turn after hal02; without reimage_go_on=true there is none, because hal01 failed"),
        ([done("hal01", ago=5, run=FOUR)], {}, "hal[02-04]", "a turn"),  # between two nodes of a call
    ],
)  # fmt: skip
def test_nodes_of_a_call_that_have_no_record_of_it_wait_for_their_turn(
    begun: list[dict[str, Any]], silent: dict[str, float], left: str, words: str
) -> None:
    # An earlier reimage of such a node is not this one's.
    for more in ([], [done("hal04", ago=86400, run={"code": "2222-3333"})]):
        lines = table(*begun, *more, silent=silent, width=200)
        assert [left, "waiting", "15 min", words] in [re.split("  +", line) for line in lines]
    told = changes(*begun, silent=silent)
    assert told["hal04"] == f"hal04: waiting for {words}"
    assert set(told) == set(FOUR["nodes"])


@pytest.mark.parametrize(
    "begun",
    [
        [record("hal01")],  # written before its call named nodes
        [record("hal01", run={"nodes": ("hal01",)})],
        [record(name, run=FOUR) for name in FOUR["nodes"]],
        [done("hal01", run=FOUR)],  # long ago, and nobody came to the next
        [failed("hal01", run=FOUR)],
        [record("hal01", run=FOUR, state=State.ABORTED, reason="aborted", ended=stamp(NOW - 5))],
        [done("hal01", ago=5, run=FOUR), failed("hal02", run=FOUR)],
    ],
)
def test_nodes_wait_for_no_turn_that_will_not_come(begun: list[dict[str, Any]]) -> None:
    assert [line for line in table(*begun) if "waiting  " in line] == []
    assert set(changes(*begun)) == {one["node"] for one in begun}


@pytest.mark.parametrize("going_on", [False, True])
def test_what_ended_in_a_later_call_waits_in_none(going_on: bool) -> None:
    """The first call's controller died; in the next one hal02 is done, hal03 failed, and hal04 was not taken up."""
    again = {**FOUR, "began": stamp(NOW - 600), "go_on": going_on}
    records = [record("hal04", run=FOUR), done("hal02", ago=60, run=again), failed("hal03", run=again)]
    lines = table(*records, silent={"hal04": 7200}, width=120)
    assert [line.split("  ")[0] for line in lines if line.startswith("hal")] == ["hal04", "hal01", "hal03", "hal02"]
    assert changes(*records, silent={"hal04": 7200})["hal03"].startswith("hal03: failed")


def test_what_was_left_half_installed_is_not_hidden_behind_a_turn_that_will_not_come() -> None:
    again = {**FOUR, "began": stamp(NOW - 600)}
    records = [record("hal04", run=FOUR), record("hal02", run=again), failed("hal03", run=again)]
    told = " ".join(" ".join(table(*records, silent={"hal04": 7200}, width=120)).split())
    assert (
        "nobody has driven it for 2 h 0 min: give the same command again to go on, or: hal-reimage abort hal04" in told
    )
    assert (
        "hal01 waiting 10 min a turn after hal02; without reimage_go_on=true there is none, because hal03 failed"
        in told
    )


def test_an_abort_is_no_word_of_a_call() -> None:
    aborted = record("hal01", run={**FOUR, "go_on": True}, state=State.ABORTED, reason="aborted", ended=stamp(NOW - 5))
    assert not any("waiting  " in line for line in table(aborted))


def test_two_calls_have_two_queues() -> None:
    other = {"code": "2222-3333", "nodes": ("hal05", "hal06")}
    nodes = [done("hal01", ago=5, run=FOUR), done("hal05", ago=5, run=other)]
    assert [line.split("  ")[0] for line in table(*nodes)[1:3]] == ["hal[02-04]", "hal06"]
    assert changes(*nodes, wanted=["hal06"]) == {"hal06": "hal06: waiting for a turn"}
    assert [line.split("  ")[0] for line in table(*nodes, wanted=["hal06", "hal03"])[1:]] == ["hal03", "hal06"]


def test_what_ended_long_ago_is_shown_when_it_is_asked_for() -> None:
    old = done("hal01", ago=8 * 86400)
    assert table(old) == ["no reimage is under way"]
    assert table(old, done("hal02", ago=6 * 86400))[1].startswith("hal02  done  6 d 0 h ago")
    assert table(old, wanted=["hal01"])[1].startswith("hal01  done  8 d 0 h ago")
    assert table(old, record("hal02"), wanted=["hal02"])[1:] == ["hal02  6/11 install  2 min  the call home"]
    # What failed stays until somebody sees to it.
    assert "hal03" in table(failed("hal03", ended=stamp(NOW - 80 * 86400)))[1]


def test_what_ended_in_two_runs_is_two_rows() -> None:
    assert len(table(done("hal01"), done("hal02"), done("hal03", run={"code": "2222-3333"}))) == 3


def test_nothing_is_said_where_nothing_is() -> None:
    assert table() == ["no reimage is under way"]


def test_a_node_that_left_the_model_is_shown_as_such() -> None:
    assert table(failed("hal05"), known=["hal01"], width=120)[1].endswith(
        "no call home within 30 min; it is no longer in cluster.yml"
    )


def test_what_a_console_said_moves_no_cursor() -> None:
    lines = table(failed(reason="it said \x1b[2J\x9b1m\r\n\x07boo"))
    assert lines[1].endswith(r"it said \x1b[2J\u009b1m \x07boo")
    assert "\x1b" not in "".join(shown.sheet(failed(reason="\x1b[2J"), True, "", NOW, NOW, NOW))
    assert changes(failed(reason="a\nb\x1b")) == {"hal05": r"hal05: failed at 6/11 install: a b\x1b"}


@given(
    st.lists(st.sampled_from([*KNOWN, "hal-login", "a-node-with-quite-a-long-name7"]), unique=True, min_size=1),
    st.text(max_size=300),
    st.integers(72, 200),
)
def test_no_line_is_wider_than_the_terminal_and_no_node_is_left_out(names: list[str], words: str, width: int) -> None:
    lines = table(*(failed(name, reason=f"x{words}") for name in names), known=names, width=width)
    assert max(map(len, lines)) <= width
    column = lines[0].index("step")
    folded = "".join(line[:column].strip() for line in lines[1:])
    assert set(expand_list(folded)) == set(names)


@given(st.sets(st.from_regex(r"[a-z]{1,3}(-[a-z])?[0-9]{0,3}", fullmatch=True), min_size=1))
def test_a_fold_stands_for_exactly_its_names(names: set[str]) -> None:
    assert sorted(expand_list(shown.fold(names))) == sorted(names)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["hal05"], "hal05"),
        (["hal08", "hal05", "hal06", "hal07"], "hal[05-08]"),
        (["hal01", "hal03", "hal04"], "hal[01,03-04]"),
        (["hal9", "hal10", "hal09"], "hal[09-10],hal9"),
        (["hal-login", "hal01"], "hal-login,hal01"),
    ],
)
def test_names_are_folded_as_people_write_them(names: list[str], folded: str) -> None:
    assert shown.fold(names) == folded


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (3600, "1 h 0 min"), (90000, "1 d 1 h")],
)
def test_durations_are_in_units_of_people(seconds: float, words: str) -> None:
    assert shown.duration(seconds) == words


def test_colour_is_for_what_ended_and_takes_no_room() -> None:
    plain = table(record("hal01"), failed("hal02"), done("hal03"))
    coloured = table(record("hal01"), failed("hal02"), done("hal03"), colour=True)
    assert [one for one in plain if one not in coloured] == plain[2:]
    assert coloured[2] == f"\033[31m{plain[2]}\033[0m"
    assert coloured[-1] == f"\033[32m{plain[-1]}\033[0m"


def test_all_that_is_known_of_one() -> None:
    data = failed(
        run={"by_slurm": True},
        drained_before=Drained("disk is noisy", "bob"),
        host_key="SHA256:abc",
        job="4711",
        revision=14,
        seconds={"drain": 600.0, "identity": 2.1, "install": 65.0},
    )
    data["plan"].update(wipe=["0x5001"], previous="2026-10-01T08:00:00Z")
    lines = shown.sheet(data, True, "it boots its disk", NOW - 61, NOW - 86400, NOW, 110)
    assert lines == [
        "hal05: failed at 6/11 install since 2027-01-15T07:59:00Z (1 min)",
        "  reason      no call home within 30 min",
        "  machine     serial number S-hal05",
        "  erases      0x50248414c1050001, and 0x5001",
        "  image       compute-20261122-ppc64le, kernel 4.18.0-80.7.2.el7, sha256",
        f"              {'ab' * 32}",
        "  confirmed   by root@controller at 2027-01-15T07:45:00Z, code K7QX-M2VD",
        "  begun by    scontrol reboot ASAP",
        "  afterwards  it stays drained: bob had drained it before: disk is noisy",
        "  server      it boots its disk",
        "  host key    SHA256:abc",
        "  test job    4711",
        "  took        identity 2 s, drain 10 min, install 1 min",
        "  record      revision 14, written 1 min ago",
        "  last time   ended at 2026-10-01T08:00:00Z",
        "  next        look: hal-reimage show hal05; again: the same command; give up: hal-reimage abort hal05",
    ]


def test_one_that_goes_on_says_what_it_waits_for_and_what_comes_after() -> None:
    lines = shown.sheet(record(revision=3), False, "", NOW - 300, NOW - 8, NOW)
    assert lines[0] == "hal05: going 6/11 install since 2027-01-15T07:57:55Z (2 min)"
    assert lines[1:4] == [
        "  waiting for the call home",
        "  machine     serial number S-hal05; it is no longer in cluster.yml",
        "  erases      0x50248414c1050001, and no other disk",
    ]
    assert "  afterwards  it is given back to Slurm" in lines
    assert lines[-1] == "  record      revision 3, written 5 min ago, driven 8 s ago"
    drained = shown.sheet(record(run={"next_state": "DOWN"}), True, "", NOW, NOW, NOW)
    assert "  afterwards  it stays drained (next state DOWN)" in drained
    assert shown.sheet(done(), True, "", NOW, NOW, NOW)[0] == "hal05: done since 2027-01-15T07:00:00Z (1 h 0 min)"


def test_one_that_nobody_drives_says_what_to_do() -> None:
    lines = shown.sheet(record(revision=3), True, "", NOW - 1500, NOW - 1440, NOW, 200)
    left = "give the same command again to go on, or: hal-reimage abort hal05"
    assert lines[-2:] == [
        "  record      revision 3, written 25 min ago, driven 24 min ago",
        f"  next        nobody has driven it for 24 min: {left}",
    ]
    # Who watches gets one line of it, not one each time.
    line = f"hal05: 6/11 install: the call home: nobody has driven it since 2027-01-15T07:36:00Z: {left}"
    assert changes(record(), silent={"hal05": 1440}) == {"hal05": line}
    assert shown.changes({"hal05": record()}, {"hal05": NOW - 1440}, NOW + 60) == {"hal05": line}


def test_steps_are_counted_from_the_first_that_does_something() -> None:
    assert [shown.step_of(record(step=one)) for one in (Step.WAITING, Step.IDENTITY, Step.RETURN)] == [
        "waiting",
        "1/11 identity",
        "11/11 return",
    ]
