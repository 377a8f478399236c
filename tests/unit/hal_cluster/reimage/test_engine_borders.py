"""When a step's time is over to the second, and what is said of it to the letter."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hal_cluster.reimage.engine import Engine
from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.record import Drained, State, Step
from hal_cluster.reimage.stepping import Limits
from tests.unit.hal_cluster.reimage.test_engine import AGAIN, LIMITS, NODE, OTHER, Here

PROJECT = Path(__file__).resolve().parents[4]
DIFFERENT = Limits(11, 13, 17, 19, 23, 29, 31, 37, 41)


def test_the_playbook_leaves_each_limit_that_nobody_sets_to_the_engine() -> None:
    text = (PROJECT / "playbooks/reimage.yml").read_text()
    written = re.findall(r'^ +"?(\w+)"?: "{{ reimage_\1_seconds \| default\((\w+)\) }}"', text, re.M)
    assert [(name, usual) for name, usual in written if hasattr(Limits(), name)] == [
        (name, "omit") for name in ("identity", "off", "drain", "begin", "install", "start", "rollout", "job")
    ]


def test_each_step_has_its_own_limit() -> None:
    assert {step.value: DIFFERENT.of(step) for step in Step} == {
        **{"waiting": float("inf"), "identity": 11, "drain": 13, "off": 17, "arm": 17, "boot": 17, "install": 42},
        **{"start": 29, "converge": 62, "gates": 62, "job": 37, "return": 37},
    }


WAITS = {
    Step.DRAIN: "20 min for job 7 of alice (ends by 12:00)",
    Step.START: "10 min for it to answer by ssh; its console says: last line",
    Step.CONVERGE: "30 min for its rollout",
    Step.GATES: "30 min for its checks",
}


def waiting(step: Step) -> Here:
    """A node that stays in a step, at its first look there."""
    here = Here()
    here.go_to(step)
    if step is Step.DRAIN:
        here.machine.jobs.append("7")
    elif step is Step.START:
        here.site.faults[NODE].add("ssh")
    here.site.hangs = True
    here.engine.tick(NODE, here.run)
    assert (here.record().step, here.record().going) == (step, True)
    return here


@pytest.mark.parametrize("step", WAITS)
def test_a_step_may_take_all_of_its_time_and_no_second_more(step: Step) -> None:
    here = waiting(step)
    entered = here.site.clock - 30  # the look before this one passed
    here.site.clock = entered + LIMITS.of(step) - 1
    assert here.engine.tick(NODE, here.run).reason == ""
    here.site.clock += 1
    assert here.engine.tick(NODE, here.run).reason == f"waited {WAITS[step]}"


@pytest.mark.parametrize(("seconds", "minutes"), [(100, "1.7"), (90, "1.5"), (120, "2"), (6, "0.1")])
def test_how_long_was_waited_is_said_in_tenths_of_minutes(seconds: float, minutes: str) -> None:
    here = waiting(Step.GATES)
    here.engine = Engine(here.site.world(), Limits(rollout=seconds / 2), here.site.now)
    here.site.clock += seconds
    assert here.engine.tick(NODE, here.run).reason == f"waited {minutes} min for its checks"


@pytest.mark.parametrize("longer", [0, 1])
def test_an_installer_may_take_all_of_its_time_to_begin(longer: float) -> None:
    here = Here()
    here.go_to(Step.INSTALL)
    here.machine.runs = "stopped"
    entered = here.site.clock - 30
    here.site.orders[NODE].until = entered + 7200
    here.site.clock = entered + LIMITS.begin - 1
    assert here.engine.tick(NODE, here.run).reason == ""
    here.site.clock += 1 + longer
    said = "the installer to begin: the disk is as it was"
    assert here.engine.tick(NODE, here.run).reason == f"waited too long for {said}; its console says: last line"


@pytest.mark.parametrize("longer", [0, 1, 86400])
def test_a_node_is_tried_to_be_made_safe_for_all_of_that_time(longer: float) -> None:
    here = waiting(Step.GATES)
    here.site.faults[NODE].add("gates")
    here.site.hangs = False
    here.site.clock += 30
    here.site.call = lambda when, what, node: (
        here.site.faults[NODE].add("slurmctld") if (when, what) == ("after", "rollout.gates") else None
    )
    failing = here.engine.tick(NODE, here.run)
    assert (failing.state, failing.reason) == (State.GOING, "gates failed")
    began = here.site.clock
    here.site.clock = began + LIMITS.safe - 1
    assert here.engine.tick(NODE, here.run).going
    here.site.clock += 1 + longer
    ended = here.engine.tick(NODE, here.run)
    assert (ended.state, ended.waiting) == (State.FAILED, "")
    assert ended.reason == "gates failed; it could not be made safe: slurmctld does not answer"


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ("7", "job 7 of alice (ends by 12:00)"),
        ("7 8 9", "jobs 7 of alice (ends by 12:00), 8 of alice (ends by 12:00), 9 of alice (ends by 12:00)"),
        (
            "7 8 9 10 11",
            "jobs 7 of alice (ends by 12:00), 8 of alice (ends by 12:00), 9 of alice (ends by 12:00) and 2 more",
        ),
    ],
)
def test_three_jobs_are_named_and_the_others_counted(jobs: str, said: str) -> None:
    here = Here()
    here.machine.jobs += jobs.split()
    here.go_to(Step.DRAIN)
    here.tick()
    assert here.record().waiting == said


@pytest.mark.parametrize(
    ("console", "said"),
    [
        ("", ""),
        (" \n\n", ""),
        ("one\n  two  \n \n", "; its console says: two"),
        (f"{'x' * 201}\n", f"; its console says: {'x' * 197}..."),
        ("one\n\x1b[2Jtwo \x9b\u202e\n", r"; its console says: \x1b[2Jtwo \x9b\u202e"),
        ("NOT INSTALLED: first\nNOT INSTALLED: second\nthird\n", "; its console says: NOT INSTALLED: second"),
    ],
)
def test_of_a_console_the_last_line_that_says_something_is_told(console: str, said: str) -> None:
    here = waiting(Step.START)
    here.site.console = console
    here.site.clock += LIMITS.start
    assert here.engine.tick(NODE, here.run).reason == f"waited 10 min for it to answer by ssh{said}"


def test_what_is_written_down_of_others_words_is_one_printable_line() -> None:
    """The server's program shows it, and so does Slurm."""
    here = waiting(Step.GATES)
    world = here.site.world()
    answers = iter(["jobs of \x1b[2J\nmallory", "no\x1b]0;x\x07\n  disk\u202e"])

    class Says:
        """A rollout in whose end a node has a say; for what somebody waits, too."""

        def gates(self, node: str) -> str | None:
            raise Trouble(next(answers), passes=here.record().waiting == "its checks")

        def leave(self, node: str) -> None:
            """Nothing to leave."""

    here.engine = Engine(replace(world, rollout=Says()), LIMITS, here.site.now)  # type: ignore[arg-type]
    assert here.engine.tick(NODE, here.run).waiting == r"an answer: jobs of \x1b[2J mallory"
    assert here.engine.tick(NODE, here.run).reason == r"no\x1b]0;x\x07 disk\u202e"


def test_the_console_is_not_asked_where_a_system_does_the_work() -> None:
    here = waiting(Step.GATES)
    here.site.told.clear()
    here.site.clock += LIMITS.of(Step.GATES)
    assert here.engine.tick(NODE, here.run).reason == "waited 30 min for its checks"
    assert f"bmc.console {NODE}" not in here.site.told


def test_an_abort_says_whose_drain_it_takes_the_place_of() -> None:
    here = Here(confirmed=False)
    here.machine.drain("fan")
    here.confirm(here.run)
    here.go_to(Step.CONVERGE)
    assert here.record().drained_before == Drained("fan", "root")
    assert here.site.abort(NODE)
    here.site.resume(NODE)  # a run that goes on looks once more
    here.tick()
    assert here.machine.reason == "hal-reimage: aborted by root at converge (root had drained it before: fan)"
    assert here.machine.drained


def test_an_abort_of_a_node_that_nobody_had_drained_says_no_more_than_that() -> None:
    here = Here()
    here.go_to(Step.CONVERGE)
    assert here.site.abort(NODE)
    here.site.resume(NODE)
    here.tick()
    assert here.machine.reason == "hal-reimage: aborted by root at converge"


def test_one_that_was_aborted_before_its_turn_is_not_drained() -> None:
    here = Here()
    assert here.site.abort(NODE)
    assert here.tick().state is State.ABORTED
    assert here.machine.serves


def test_a_failure_is_told_to_slurm_with_the_way_to_look_at_it() -> None:
    here = Here()
    here.site.faults[NODE].add("gates")
    ended = here.end()
    assert (ended.reason, ended.waiting) == ("gates failed", "")
    assert here.machine.reason == "hal-reimage: failed at gates: gates failed (hal-reimage show hal05)"


def test_why_a_node_that_serves_again_is_not_taken_up_is_said_with_the_way_out() -> None:
    here = Here()
    here.site.faults[NODE].add("gates")
    assert here.end().state is State.FAILED
    here.site.resume(NODE)
    here.site.machines[OTHER].drain("fan")
    here.site.floor = 1
    with pytest.raises(Exception, match="it failed at gates") as refused:
        here.confirm(AGAIN)
    assert str(refused.value) == (
        "hal05: it failed at gates, serves jobs since, and cannot be drained now: too few would be left. "
        "hal-reimage abort hal05 leaves it out"
    )
