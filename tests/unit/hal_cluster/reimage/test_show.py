"""What an administrator reads, in 80 columns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hal_cluster.reimage.record import STEPS, Image, Plan, Record, State, Step
from hal_cluster.reimage.show import Shown, end_of, line_of, plan_of
from hal_cluster.reimage.world import Job, SlurmNode
from tests.unit.hal_cluster.reimage.fakes import RUN

IMAGE = Image("ac922-20261122.101500-ppc64le", "3f9a" * 16, "ppc64le", "4.18.0-80.7.2.el7")
LOG = "/root/hal/.state/hal/reimage/20261122T184000Z-converge-hal06.log"
REASON = f"Install packages: No package matching 'cuda' found; {LOG}"
SECONDS = {"waiting": 0.2, "identity": 2.1, "drain": 1840.0, "off": 62.0, "install": 912.0, "converge": 640.0}


def plan(node: str, wipe: tuple[str, ...] = ()) -> Plan:
    return Plan(node, f"78A1B2{node[-2:]}", f"0x50248414c1{node[-2:]}0001", IMAGE, wipe)


def shown(node: str, slurm: SlurmNode, last: Record | None = None, wipe: tuple[str, ...] = ()) -> Shown:
    place = "IBM Power System AC922 8335-GTH, 10.64.0.105"
    return Shown(plan(node, wipe), place, slurm, "10.64.1.105 says the same", last)


def record(node: str, state: State = State.DONE, step: Step = Step.RETURN, reason: str = "") -> Record:
    ended = "" if state is State.GOING else "2026-11-22T18:41:00Z"
    return Record(node, plan(node), RUN, step, state=state, reason=reason, ended=ended, seconds=SECONDS)


FAILED = record("hal06", State.FAILED, Step.CONVERGE, REASON)
FREE = SlurmNode(True, usable=True)


def test_a_plan_of_one_node_is_this() -> None:
    assert plan_of([shown("hal05", FREE)], "Code: K7QX-M2VD") == (
        "hal05  IBM Power System AC922 8335-GTH, 10.64.0.105\n"
        "    machine    serial 78A1B205; BMC: 10.64.1.105 says the same\n"
        "    erased     system disk 0x50248414c1050001\n"
        "    installed  ac922-20261122.101500-ppc64le\n"
        "               kernel 4.18.0-80.7.2.el7, sha256 3f9a3f9a3f9a\n"
        "    Slurm      no jobs\n"
        "\n"
        "Code: K7QX-M2VD"
    )


JOBS = tuple(Job(str(48211 + number), "alice", "2026-11-23T04:12:00") for number in range(3))


@pytest.mark.parametrize(
    ("slurm", "said"),
    [
        (SlurmNode(False), ["does not know it"]),
        (replace(FREE, jobs=JOBS[:1]), ["1 job, which ends first:", "48211 of alice ends by 2026-11-23T04:12:00"]),
        (
            replace(FREE, jobs=JOBS),
            ["3 jobs, which end first:", *(f"{job.id} of alice ends by 2026-11-23T04:12:00" for job in JOBS)],
        ),
        (
            SlurmNode(True, drained=True, by="ann", reason="bad fan"),
            ["no jobs", "drained by ann: bad fan. It stays drained afterwards"],
        ),
        (SlurmNode(True, drained=True, ours=True, reason="hal-reimage: x"), ["no jobs", "drained: hal-reimage: x"]),
        (SlurmNode(True, reboot="asked", reason="kernel"), ["no jobs", "a reboot was asked for: kernel"]),
    ],
)
def test_what_slurm_has_of_a_node_is_shown(slurm: SlurmNode, said: list[str]) -> None:
    lines = plan_of([shown("hal05", slurm)], "x").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("    Slurm "))
    assert [line.removeprefix("    Slurm").strip() for line in lines[first:-2]] == said


def test_four_nodes_are_whole_words_in_80_columns() -> None:
    nodes = [
        shown("hal05", replace(FREE, jobs=JOBS), wipe=("0x50248414c1050002", "0x50248414c1050003")),
        shown("hal06", SlurmNode(True, drained=True, ours=True, reason=f"hal-reimage: {REASON}"), FAILED),
        shown("hal07", SlurmNode(True, drained=True, by="root", reason="a fan that is bad " * 8)),
        shown("hal08", SlurmNode(False), record("hal08")),
    ]
    text = plan_of(nodes, "Code: K7QX-M2VD")
    assert [line for line in text.splitlines() if len(line) > 76 and LOG not in line] == []
    words = " ".join(text.split())
    for part in (
        "system disk 0x50248414c1050001 disk 0x50248414c1050002 disk 0x50248414c1050003 installed",
        f"last failed 2026-11-22T18:41:00Z at converge: {REASON}",
        "last done 2026-11-22T18:41:00Z",
    ):
        assert part in words


def test_each_step_is_a_line_with_its_number() -> None:
    lines = [line_of(replace(record("hal05", State.GOING), step=step)) for step in STEPS]
    assert (lines[0], lines[1], lines[-1]) == ("hal05   0/11 waiting", "hal05   1/11 identity", "hal05  11/11 return")
    waits = replace(record("hal05", State.GOING, Step.DRAIN), waiting="its jobs")
    assert line_of(waits) == "hal05   2/11 drain    waits for its jobs"
    assert line_of(replace(waits, reason="no")) == "hal05   2/11 drain    failing: no"
    assert line_of(record("hal05")) == "hal05  done in 57:36"
    assert line_of(FAILED) == f"hal06  failed at converge: {REASON}"
    assert line_of(replace(FAILED, state=State.ABORTED, reason="by ann")) == "hal06  aborted at converge: by ann"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3599, "59:59"), (3600, "1:00:00"), (7325, "2:02:05")],
)
def test_times_are_minutes_and_from_an_hour_on_hours(seconds: float, said: str) -> None:
    assert line_of(replace(record("hal05"), seconds={"drain": seconds})) == f"hal05  done in {said}"


def test_the_end_says_what_took_time_and_leaves_out_what_took_none() -> None:
    text = " ".join(end_of({"hal05": record("hal05")}, "hal-mgmt1").split())
    said = "identity 0:02, drain 30:40, off 1:02, install 15:12, converge 10:40"
    assert text == f"hal05: done in 57:36 ({said})"


def test_nodes_that_failed_alike_are_one_entry_and_what_to_do_can_be_copied() -> None:
    records = {
        "hal05": record("hal05"),
        "hal06": FAILED,
        "hal07": replace(FAILED, node="hal07"),
        "hal08": replace(FAILED, node="hal08", reason="another"),
    }
    lines = end_of(records, "hal-mgmt1").splitlines()
    assert lines[-3:] == [
        "Look: ssh hal-mgmt1 hal-reimage show NODE",
        "Again: the same command",
        "Give up: ssh hal-mgmt1 hal-reimage abort hal06 hal07 hal08",
    ]
    words = " ".join(" ".join(lines).split())
    assert f"hal[06-07]: failed 2026-11-22T18:41:00Z at converge: {REASON} hal08: failed" in words
    assert [line for line in lines if len(line) > 76] == []


def test_nothing_at_all_is_nothing() -> None:
    assert end_of({}, "hal-mgmt1") == ""
