"""A node is left alone, or made safe, whoever comes between two looks at it."""

from __future__ import annotations

import pytest

from hal_cluster.reimage.record import Drained, State, Step
from tests.unit.hal_cluster.reimage.fakes import FakeSlurm
from tests.unit.hal_cluster.reimage.test_engine import AGAIN, BY_SLURM, NODE, Here, Killed


def test_an_order_that_a_killed_run_left_is_taken_back_from_a_node_that_serves_again() -> None:
    here = Here()
    here.go_to(Step.BOOT)
    here.site.faults[NODE].add("swapped")

    def kill(when: str, what: str, node: str) -> None:
        if (when, what) == ("after", "store.write") and here.record().reason:
            raise Killed

    here.site.call = kill
    with pytest.raises(Killed):
        here.end()
    here.site.call = lambda when, what, node: None
    here.site.faults.clear()
    assert set(here.site.orders) == {NODE}
    here.machine.on, here.machine.runs, here.machine.network_next = True, "system 0", True
    here.site.resume(NODE)
    assert here.machine.serves
    here.confirm(AGAIN)
    assert (here.site.orders, here.machine.network_next) == ({}, False)
    assert here.machine.serves, "step drain asks how many are left"


def test_a_drain_of_ours_says_that_it_failed_when_its_jobs_do_not_end() -> None:
    here = Here()
    here.machine.jobs.append("7")
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.DRAIN)
    said = "waited 20 min for job 7 of alice (ends by 12:00)"
    assert here.machine.reason == f"hal-reimage: failed at drain: {said} (hal-reimage show hal05)"


@pytest.mark.parametrize("by_slurm", [False, True])
def test_a_reboot_of_an_administrator_that_no_job_lets_begin_is_taken_back(by_slurm: bool) -> None:
    here = Here(BY_SLURM) if by_slurm else Here()
    here.machine.jobs.append("7")
    here.site.ask_reboot(NODE)
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.DRAIN)
    assert (here.machine.reboot, here.machine.drained) == ("", True)
    assert here.machine.reason.startswith("hal-reimage: failed at drain: waited 20 min for job 7")


def test_a_drain_that_slurm_took_and_does_not_show_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Here()
    here.go_to(Step.DRAIN)
    with monkeypatch.context() as only_now:
        only_now.setattr(FakeSlurm, "drain", lambda self, node, reason: "")
        record = here.tick()
    assert (record.step, record.waiting, record.drained_before) == (Step.DRAIN, "Slurm to drain it", None)
    assert here.machine.on
    assert here.end().state is State.DONE
    assert here.machine.serves


def test_a_machine_that_is_off_and_was_given_back_is_refused_before_it_is_asked_for_power() -> None:
    here = Here()
    here.go_to(Step.OFF)
    here.machine.on, here.machine.runs = False, ""
    here.site.resume(NODE)
    here.site.told.clear()
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.OFF)
    assert ended.reason == "somebody gave it back to Slurm, and jobs may start on it"
    assert f"bmc.is_on {NODE}" not in here.site.told


def test_a_machine_whose_reimage_is_aborted_while_it_shuts_down_keeps_its_power() -> None:
    here = Here()
    here.go_to(Step.OFF)
    here.site.faults[NODE].add("deaf")
    aborted: list[bool] = []
    here.site.meanwhile = lambda node: aborted.append(here.site.abort(node))
    assert here.tick().state is State.ABORTED
    assert aborted == [True]
    assert here.machine.on
    assert here.machine.reason == "hal-reimage: aborted by root at off"


@pytest.mark.parametrize(("looks", "done"), [(2, "began"), (3, "called")])
def test_a_machine_that_went_on_while_its_run_was_dead_is_not_taken_for_one_without_an_order(
    looks: int, done: str
) -> None:
    here = Here()
    here.go_to(Step.BOOT)

    def kill(when: str, what: str, node: str) -> None:
        if (when, what) == ("after", "bmc.on"):
            raise Killed

    here.site.call = kill
    with pytest.raises(Killed):
        here.tick()
    here.site.call = lambda when, what, node: None
    for _ in range(looks):
        here.site.pass_time()
    assert (NODE in here.site.began, NODE in here.site.called) == (done == "began", done == "called")
    here.confirm(AGAIN)
    assert here.end().state is State.DONE
    assert here.machine.boots == 2, "it was not switched on once more"


def test_a_test_job_that_goes_on_is_waited_for_and_nobody_else_comes() -> None:
    here = Here()
    here.go_to(Step.JOB)
    job = here.engine.tick(NODE, here.run).job
    for _ in range(3):  # no time passes: it goes on
        record = here.engine.tick(NODE, here.run)
        assert (record.step, record.waiting, record.job) == (Step.JOB, f"test job {job}", job)
    assert not here.machine.serves
    assert here.end().state is State.DONE


def test_who_drains_a_node_after_its_test_job_has_it_drained_with_his_words() -> None:
    here = Here()
    here.go_to(Step.RETURN)
    here.machine.drain("PSU smells")
    ended = here.end()
    assert (ended.state, ended.reason, ended.drained_before) == (State.DONE, "", Drained("PSU smells", "root"))
    assert (here.machine.drained, here.machine.reason, here.machine.reserved) == (True, "PSU smells", False)
