"""The engine's rules, one by one, with a site in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hal_cluster.reimage.engine import Engine, before
from hal_cluster.reimage.errors import Conflict, ReimageError, Trouble
from hal_cluster.reimage.record import STEPS, Drained, Record, Run, State, Step, moment, record_of
from hal_cluster.reimage.stepping import Limits
from tests.unit.hal_cluster.reimage.fakes import IMAGE, RUN, Site, plan

NODE, OTHER = "hal05", "hal06"
LIMITS = Limits(600, 1200, 600, 600, 900, 600, 900, 900, 300)
BY_SLURM = replace(RUN, by_slurm=True)
AGAIN = replace(RUN, began="2026-11-22T19:00:00Z")


class Killed(BaseException):
    """The controller is no more."""


class Here:
    """A site of two nodes, and a controller that drives one of them."""

    def __init__(self, run: Run = RUN, *, confirmed: bool = True) -> None:
        self.site = Site(NODE, OTHER)
        self.jobs_end = False  # when they are waited for
        self.engine = self.controller()
        self.run = run
        self.machine = self.site.machines[NODE]
        if confirmed:
            self.confirm(run)

    def controller(self) -> Engine:
        """One that knows nothing but the records."""
        self.site.rollouts.clear()
        return Engine(self.site.world(), LIMITS, self.site.now)

    def confirm(self, run: Run, **other: str) -> Record:
        """Confirm the node's plan, with other values where some are given."""
        wanted = plan(NODE, **other)
        record = self.engine.confirm(wanted, run)
        self.site.confirmed[NODE], self.run = wanted, run
        return record

    def record(self) -> Record:
        return record_of(self.site.records[NODE])

    def tick(self) -> Record:
        """One look, then half a minute."""
        record = self.engine.tick(NODE, self.run)
        if self.jobs_end and record.waiting.startswith("job"):
            self.site.end_jobs(NODE)
        self.site.pass_time(30)
        return record

    def go_to(self, step: Step) -> None:
        """Look until a step is the next one to look at."""
        self.until(lambda record: record.step is step or not record.going)
        assert (self.record().step, self.record().state) == (step, State.GOING), self.record()

    def end(self) -> Record:
        """Look until it does not go on."""
        self.until(lambda record: not record.going)
        return self.record()

    def until(self, reached: Callable[[Record], bool]) -> None:
        for _ in range(400):
            if reached(self.record()):
                return
            self.tick()
        raise AssertionError(f"it goes nowhere: {self.record()}")

    def told(self) -> list[str]:
        """What acted on something, in order, once each."""
        acts = {
            *("slurm.drain", "slurm.reboot", "slurm.keep_drained", "slurm.prove", "slurm.end_proof", "bmc.shut_down"),
            *("bmc.identify", "bmc.network_once", "bmc.boot_as_set", "bmc.on", "provision.arm", "provision.disarm"),
            *("rollout.converge", "rollout.gates"),
        }
        told = [line.split()[0] for line in self.site.told]
        return list(dict.fromkeys(call for call in told if call in acts))


# --- the whole way


def test_a_node_goes_the_whole_way() -> None:
    here = Here()
    ended = here.end()
    assert (ended.state, ended.step, ended.reason, ended.waiting) == (State.DONE, Step.RETURN, "", "")
    assert here.told() == [
        *("bmc.identify", "slurm.drain", "bmc.shut_down", "slurm.end_proof", "provision.arm", "bmc.network_once"),
        *("bmc.on", "rollout.converge", "rollout.gates", "slurm.prove"),
    ]
    assert here.machine.serves
    assert here.machine.disk not in ("system 0", "erased")
    assert here.machine.key == ended.host_key
    assert here.site.orders == {}


def test_each_step_has_its_seconds_and_together_they_are_all_of_the_time() -> None:
    here = Here()
    began = here.site.clock
    ended = here.end()
    assert list(ended.seconds) == [step.value for step in STEPS]
    assert sum(ended.seconds.values()) == here.site.clock - 30 - began
    assert ended.seconds["install"] >= 30


def test_each_step_is_written_down_before_the_next_and_each_write_has_its_revision() -> None:
    here = Here()
    steps, revisions = [here.record().step], [here.record().revision]
    while here.record().going:
        here.tick()
        if here.record().revision != revisions[-1]:
            revisions.append(here.record().revision)
        if here.record().step is not steps[-1]:
            steps.append(here.record().step)
    assert steps == list(STEPS)
    assert revisions == list(range(1, len(revisions) + 1))


def test_other_nodes_are_not_asked_about() -> None:
    here = Here()
    here.end()
    assert {line.split()[1] for line in here.site.told} == {NODE}


def test_nothing_is_written_while_nothing_changes() -> None:
    here = Here()
    here.machine.jobs.append("7")
    here.go_to(Step.DRAIN)
    here.tick()
    before = here.record()
    here.tick()
    assert before.waiting == "job 7 of alice (ends by 12:00)"
    assert here.record() == before


def test_a_step_that_failed_has_its_seconds_and_those_that_it_took_to_make_it_safe() -> None:
    here = Here()
    here.site.faults[NODE].add("silent-install")
    here.go_to(Step.INSTALL)
    here.site.faults[NODE].add("slurmctld")  # it is not made safe at once
    began = moment(here.record().since)
    here.until(lambda record: bool(record.reason))
    failing = here.record()
    assert failing.going
    assert failing.seconds["install"] == LIMITS.of(Step.INSTALL)
    for _look in range(3):
        here.tick()
    here.site.faults[NODE].clear()
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.INSTALL)
    assert ended.seconds["install"] == here.site.clock - 30 - began > LIMITS.of(Step.INSTALL)


def test_a_node_that_slurm_does_not_know_is_installed_all_the_same() -> None:
    here = Here(confirmed=False)
    here.site.unknown.add(NODE)
    here.confirm(RUN)
    assert here.end().state is State.DONE
    assert "slurm.drain" not in here.told()
    assert "slurm.prove" not in here.told()


@pytest.mark.parametrize("step", [Step.DRAIN, Step.OFF, Step.ARM, Step.CONVERGE, Step.JOB, Step.RETURN])
def test_a_node_that_slurm_does_not_know_any_more_is_not_taken_for_one_without_jobs(step: Step) -> None:
    here = Here()
    here.machine.jobs.append("7")
    here.go_to(Step.DRAIN)
    if step is not Step.DRAIN:
        here.jobs_end = True
        here.go_to(step)
    here.site.unknown.add(NODE)
    here.site.told.clear()
    for _ in range(3):
        here.tick()
    assert (here.record().step, here.record().waiting) == (step, "an answer: Slurm does not know it any more")
    assert here.told() == []
    here.site.unknown.clear()
    here.jobs_end = True
    assert here.end().state is State.DONE
    assert here.machine.serves


def test_a_node_that_slurm_never_knows_again_fails_and_says_so() -> None:
    here = Here()
    here.go_to(Step.OFF)
    here.site.unknown.add(NODE)
    ended = here.end()
    gone = "Slurm does not know it any more"
    assert (ended.state, ended.reason) == (State.FAILED, f"{gone}; it could not be made safe: {gone}")
    assert here.machine.on


def test_what_nobody_foresaw_is_a_failure_with_a_reason() -> None:
    here = Here()
    here.go_to(Step.ARM)

    def breaks(when: str, what: str, node: str) -> None:
        if (when, what) == ("before", "provision.arm"):
            raise KeyError("manifest.json.sig")

    here.site.call = breaks
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.ARM)
    assert ended.reason == "KeyError, which nobody foresaw: 'manifest.json.sig'"
    assert here.machine.reason == f"hal-reimage: failed at arm: {ended.reason} (hal-reimage show hal05)"
    assert here.site.orders == {}


def test_an_ended_one_is_left_alone() -> None:
    here = Here()
    ended = here.end()
    here.site.told.clear()
    assert here.engine.tick(NODE, here.run) == ended
    assert here.site.told == [f"store.read {NODE}"]


def test_a_record_that_is_gone_is_no_reason_to_go_on() -> None:
    here = Here()
    here.site.records.clear()
    with pytest.raises(ReimageError, match="hal05: its record is gone"):
        here.tick()


# --- identity


def test_another_machine_is_refused_before_anything_is_done() -> None:
    here = Here()
    here.machine.serial = "S-other"
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.IDENTITY)
    assert ended.reason == "it is another machine. Nothing was done to it"
    assert here.told() == []
    assert here.machine.serves


# --- drain


def test_jobs_end_before_the_machine_goes_off() -> None:
    here = Here()
    here.machine.jobs += ["7", "8", "9", "10"]
    here.go_to(Step.DRAIN)
    for _ in range(5):
        here.tick()
    assert here.record().waiting == (
        "jobs 7 of alice (ends by 12:00), 8 of alice (ends by 12:00), 9 of alice (ends by 12:00) and 1 more"
    )
    assert (here.machine.on, here.machine.drained) == (True, True)
    assert here.machine.reason == f"hal-reimage: {IMAGE.folder} by root@here"
    here.site.end_jobs(NODE)
    assert here.end().state is State.DONE


def test_the_floor_is_waited_for() -> None:
    here = Here()
    here.site.floor = 2
    here.go_to(Step.DRAIN)
    here.tick()
    assert here.record().waiting == "too few would be left"
    assert here.machine.serves
    here.site.floor = 1
    assert here.end().state is State.DONE


def test_an_administrators_drain_is_kept_and_comes_back_with_his_words() -> None:
    here = Here()
    here.machine.drained, here.machine.reason = True, "fan"
    ended = here.end()
    assert (ended.state, ended.drained_before) == (State.DONE, Drained("fan", "root"))
    assert (here.machine.drained, here.machine.reason, here.machine.proven) == (True, "fan", True)


def test_an_administrators_drain_is_not_touched_by_a_failure_before_the_machine_goes_off() -> None:
    here = Here()
    here.machine.drained, here.machine.reason, here.machine.jobs = True, "fan", ["7"]
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.DRAIN)
    assert (here.machine.drained, here.machine.reason) == (True, "fan")


def test_an_administrators_drain_comes_back_after_a_failure_and_a_second_try() -> None:
    here = Here()
    here.machine.drained, here.machine.reason = True, "fan"
    here.site.faults[NODE].add("gates")
    assert here.end().state is State.FAILED
    assert here.machine.reason.startswith("hal-reimage: failed at gates")
    here.site.faults.clear()
    here.confirm(AGAIN)
    assert here.end().state is State.DONE
    assert (here.machine.drained, here.machine.reason) == (True, "fan")


def test_a_drain_that_its_administrator_ended_himself_does_not_come_back() -> None:
    here = Here()
    here.machine.drained, here.machine.reason, here.machine.jobs = True, "fan", ["7"]
    here.go_to(Step.DRAIN)
    here.tick()
    assert here.record().drained_before == Drained("fan", "root")
    here.site.resume(NODE)
    here.tick()
    here.site.end_jobs(NODE)
    assert here.end().state is State.DONE
    assert here.machine.serves


def test_a_drain_of_the_health_check_becomes_ours_and_ends() -> None:
    here = Here()
    here.machine.drained, here.machine.reason = True, "health: a GPU is lost"
    ended = here.end()
    assert (ended.state, ended.drained_before) == (State.DONE, None)
    assert here.machine.serves


def test_a_node_that_failed_while_it_waited_for_the_floor_serves_on() -> None:
    here = Here()
    here.site.floor = 2
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.DRAIN)
    assert ended.reason == "waited 20 min for too few would be left"
    assert here.machine.serves


# --- by Slurm


def test_by_slurm_the_machine_goes_off_when_slurm_has_started_its_reboot_program() -> None:
    here = Here(BY_SLURM)
    here.machine.jobs.append("7")
    here.go_to(Step.DRAIN)
    here.tick()
    here.tick()
    assert (here.machine.reboot, here.machine.on) == ("asked", True)
    assert here.record().waiting == "job 7 of alice (ends by 12:00)"
    here.site.end_jobs(NODE)
    here.go_to(Step.OFF)
    assert (here.machine.on, here.machine.reboot, here.machine.drained) == (False, "", True)
    assert "slurm.drain" not in here.told()
    assert here.end().state is State.DONE
    assert here.machine.serves


def test_by_slurm_the_floor_is_waited_for() -> None:
    here = Here(BY_SLURM)
    here.site.floor = 2
    here.go_to(Step.DRAIN)
    here.tick()
    assert (here.record().waiting, here.machine.reboot) == ("too few would be left", "")


def test_by_slurm_its_next_state_is_for_the_end_of_all_steps() -> None:
    here = Here(replace(BY_SLURM, next_state="DOWN"))
    here.go_to(Step.CONVERGE)
    assert here.machine.drained
    assert here.end().state is State.DONE
    assert (here.machine.drained, here.machine.proven) == (True, True)
    assert here.machine.reason == "hal-reimage: installed and proven; drained, as asked by root@here"


@pytest.mark.parametrize("run", [RUN, BY_SLURM])
@pytest.mark.parametrize("next_state", ["RESUME", "DOWN"])
def test_a_reboot_that_an_administrator_asked_for_is_the_one_and_ends_as_he_said(run: Run, next_state: str) -> None:
    here = Here(run)
    here.machine.jobs.append("7")
    here.site.ask_reboot(NODE, next_state)
    here.go_to(Step.DRAIN)
    here.tick()
    here.site.end_jobs(NODE)
    ended = here.end()
    assert (ended.state, ended.run.next_state) == (State.DONE, next_state)
    assert here.machine.serves == (next_state == "RESUME")
    assert {"slurm.drain", "slurm.reboot"}.isdisjoint(here.told())


def test_a_confirmed_next_state_of_down_is_not_overruled_by_an_older_reboot() -> None:
    here = Here(replace(RUN, next_state="DOWN"))
    here.machine.jobs.append("7")
    here.site.ask_reboot(NODE, "RESUME")
    here.go_to(Step.DRAIN)
    here.tick()
    assert here.machine.reboot == "asked"
    here.site.end_jobs(NODE)
    ended = here.end()
    assert (ended.state, ended.run.next_state, here.machine.drained) == (State.DONE, "DOWN", True)


def test_by_slurm_a_node_that_an_administrator_drained_is_not_rebooted_and_stays_his() -> None:
    here = Here(BY_SLURM)
    here.machine.drained, here.machine.reason = True, "fan"
    assert here.end().state is State.DONE
    assert "slurm.reboot" not in here.told()
    assert (here.machine.drained, here.machine.reason) == (True, "fan")


def test_by_slurm_a_failure_takes_the_reboot_back() -> None:
    here = Here(BY_SLURM)
    here.machine.jobs.append("7")
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.DRAIN)
    assert (here.machine.reboot, here.machine.drained, here.machine.on) == ("", True, True)
    here.site.end_jobs(NODE)
    here.site.pass_time()
    here.site.pass_time()
    assert here.machine.boots == 1


# --- off and arm


@pytest.mark.parametrize("step", [Step.OFF, Step.ARM, Step.CONVERGE, Step.GATES])
def test_a_node_that_somebody_gave_back_is_not_worked_on(step: Step) -> None:
    here = Here()
    here.go_to(step)
    here.site.told.clear()
    here.site.resume(NODE)
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, step)
    assert ended.reason == "somebody gave it back to Slurm, and jobs may start on it"
    assert {"bmc.shut_down", "provision.arm", "rollout.converge", "rollout.gates"}.isdisjoint(here.told())
    assert here.machine.drained


@pytest.mark.parametrize("step", [Step.OFF, Step.CONVERGE, Step.GATES])
def test_a_node_with_a_job_that_somebody_let_in_keeps_it(step: Step) -> None:
    here = Here()
    here.go_to(step)
    here.site.resume(NODE)
    assert here.site.submit(NODE)
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, step)
    job = f"job {here.machine.jobs[0]} of alice (ends by 12:00)"
    assert ended.reason == f"somebody gave it back to Slurm, and there are jobs on it: {job}"
    assert (here.machine.on, here.machine.drained, len(here.machine.jobs)) == (True, True, 1)


@pytest.mark.parametrize("aborted", [True, False])
def test_a_job_that_comes_while_its_system_does_not_shut_down_keeps_its_power(aborted: bool) -> None:
    here = Here()
    here.go_to(Step.OFF)

    def meanwhile(node: str) -> None:
        if aborted:
            here.site.abort(node)
        here.site.resume(node)
        assert here.site.submit(node)

    here.site.faults[NODE].add("deaf")
    here.site.meanwhile = meanwhile
    ended = here.end()
    assert ended.state is (State.ABORTED if aborted else State.FAILED)
    assert (len(here.machine.jobs), here.machine.on, here.machine.boots) == (1, True, 1)
    if not aborted:
        assert ended.reason.startswith("somebody gave it back to Slurm, and there are jobs on it: job ")


def test_a_node_that_is_aborted_as_its_turn_comes_is_not_switched_on() -> None:
    here = Here()
    here.go_to(Step.BOOT)

    def aborts(when: str, what: str, node: str) -> None:
        if (when, what) == ("after", "bmc.network_once"):
            here.site.abort(node)

    here.site.call = aborts
    ended = here.end()
    here.tick()
    assert (ended.state, here.machine.on, here.machine.network_next) == (State.ABORTED, False, False)


def test_a_machine_that_was_switched_on_is_not_armed() -> None:
    here = Here()
    here.go_to(Step.ARM)
    here.site.press_the_button(NODE)
    ended = here.end()
    assert (ended.state, ended.reason) == (State.FAILED, "somebody switched it on while it was to be off")
    assert "provision.arm" not in here.told()
    assert (here.machine.disk, here.machine.drained) == ("system 0", True)


def test_a_machine_that_keeps_its_power_is_not_armed() -> None:
    here = Here()
    here.site.faults[NODE].add("power-ignored")
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.OFF)
    assert "provision.arm" not in here.told()


# --- boot and install


@pytest.mark.parametrize("step", [Step.BOOT, Step.INSTALL])
def test_an_order_that_was_taken_back_is_not_booted_for(step: Step) -> None:
    here = Here()
    here.site.faults[NODE].add("override-ignored")
    here.go_to(step)
    here.site.disarm(NODE)
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, step)
    assert ended.reason.startswith("its order was taken back, or ran out, before")
    assert (here.machine.disk, here.machine.drained) == ("system 0", True)
    assert here.machine.on == (step is Step.INSTALL)


def test_the_call_home_of_the_last_reimage_is_not_taken_for_that_of_this_one() -> None:
    here = Here()
    first = here.end()
    here.confirm(AGAIN, previous=first.ended)
    here.site.faults[NODE].add("disk-missing")
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.INSTALL)
    assert ended.called_before == here.site.called[NODE]  # it did not begin
    assert (here.machine.disk, here.machine.drained) == (first_disk(here), True)
    here.site.faults.clear()
    here.confirm(RUN, previous=first.ended)
    assert here.end().state is State.DONE
    assert here.record().host_key == here.machine.key != first.host_key


@pytest.mark.parametrize("fault", ["", "image-broken"])
def test_an_installation_that_has_begun_is_not_over_on_a_node_that_was_installed_before(fault: str) -> None:
    here = Here()
    first = here.end()
    here.confirm(AGAIN, previous=first.ended)
    here.site.faults[NODE] |= {fault} - {""}
    here.go_to(Step.INSTALL)
    here.until(lambda record: record.waiting == "its installation to end" or not record.going)
    ended = here.end()
    if fault:
        assert (ended.state, ended.step) == (State.FAILED, Step.INSTALL)
        assert ended.reason.startswith("its installer stopped: the image is broken")
    else:
        assert ended.state is State.DONE
        assert ended.seconds["install"] > ended.seconds["start"]


def first_disk(here: Here) -> str:
    """Return what the first reimage left on the disk: the one installed system of the site."""
    assert here.machine.disk.startswith("system ")
    assert here.machine.disk != "system 0"
    return here.machine.disk


def test_a_machine_that_is_switched_on_already_is_not_switched_on_for_an_old_call_home() -> None:
    here = Here()
    first = here.end()
    here.confirm(AGAIN, previous=first.ended)
    here.go_to(Step.BOOT)
    here.site.disarm(NODE)
    here.site.press_the_button(NODE)
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.BOOT)


def test_a_machine_that_boots_its_disk_instead_is_disarmed_after_a_while() -> None:
    here = Here()
    here.site.faults[NODE].add("override-ignored")
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.INSTALL)
    assert ended.reason == (
        "waited too long for its firmware to boot from the network: the disk is as it was; its console says: last line"
    )
    assert ended.seconds["install"] < LIMITS.begin + LIMITS.install
    assert (here.machine.disk, here.machine.drained, here.site.orders) == ("system 0", True, {})


def test_the_console_of_an_installation_that_stopped_is_asked_for_the_line_that_says_why() -> None:
    here = Here()
    here.site.faults[NODE] |= {"disk-missing", "untold"}
    here.site.console = "a\nNOT INSTALLED: no disk 0xhal05\nb\n\n"
    reason = here.end().reason
    assert reason.endswith("; its console says: NOT INSTALLED: no disk 0xhal05")
    assert here.machine.reason == f"hal-reimage: failed at install: {reason} (hal-reimage show hal05)"


@pytest.mark.parametrize(
    ("fault", "why", "disk"),
    [("disk-missing", "no disk 0xhal05", "system 0"), ("image-broken", "the image is broken", "erased")],
)
def test_an_installer_that_says_why_it_stops_is_not_waited_for(fault: str, why: str, disk: str) -> None:
    here = Here()
    here.site.faults[NODE].add(fault)
    here.site.console = f"a\nhal05: NOT INSTALLED: {why}\nb\n"
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.INSTALL)
    assert ended.reason == f"its installer stopped: {why}"  # the console says the same
    assert ended.seconds["install"] < LIMITS.begin
    assert (here.machine.disk, here.machine.drained, here.site.orders) == (disk, True, {})
    here.site.faults.clear()
    here.confirm(RUN)
    assert here.end().state is State.DONE


def test_what_would_have_the_machine_boot_from_the_network_is_taken_back() -> None:
    here = Here()
    here.go_to(Step.BOOT)
    here.site.faults[NODE].add("power-ignored")
    here.tick()
    here.tick()
    assert here.machine.network_next
    here.site.disarm(NODE)
    assert here.end().state is State.FAILED
    assert not here.machine.network_next


# --- start


def test_an_old_host_key_is_not_the_nodes() -> None:
    here = Here()
    here.go_to(Step.START)
    here.machine.key = "key 0"
    here.tick()
    assert here.record().step is Step.START
    assert here.record().waiting.startswith("it to show its new host key")
    here.machine.key = here.record().host_key
    assert here.end().state is State.DONE


def test_an_old_boot_id_is_no_start() -> None:
    here = Here()
    here.go_to(Step.START)
    assert here.record().old_boot_id == "boot 1"
    new, here.machine.boots = here.machine.boots, 1
    here.tick()
    assert (here.record().step, here.record().waiting) == (Step.START, "it to boot")
    here.machine.boots = new
    assert here.end().state is State.DONE


def test_the_boot_id_is_that_of_before_the_first_try() -> None:
    here = Here()
    here.site.faults[NODE].add("silent-install")
    assert here.end().state is State.FAILED
    here.site.faults.clear()
    here.confirm(AGAIN)
    assert here.end().old_boot_id == "boot 1"


# --- gates, job, return


@pytest.mark.parametrize(("fault", "step"), [("converge", Step.CONVERGE), ("gates", Step.GATES), ("job", Step.JOB)])
def test_a_gate_that_fails_keeps_the_node_drained_with_the_reason(fault: str, step: Step) -> None:
    here = Here()
    here.site.faults[NODE].add(fault)
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, step)
    assert (here.machine.drained, here.machine.reserved) == (True, False)
    assert here.machine.reason == f"hal-reimage: failed at {fault}: {ended.reason} (hal-reimage show hal05)"


@pytest.mark.parametrize("boots", ["asked", "issued"])
def test_a_reboot_of_a_node_whose_test_job_failed_is_taken_back_with_the_next_try(boots: str) -> None:
    """Else Slurm has it serve after the reboot, and the next try finds that somebody gave it back."""
    here = Here()
    here.site.faults[NODE].add("job")
    assert here.end().step is Step.JOB
    here.site.faults.clear()
    here.site.resume(NODE)
    here.site.ask_reboot(NODE, "RESUME")
    if boots == "issued":
        here.site.pass_time(1)
    assert here.machine.reboot == boots
    here.confirm(AGAIN)
    assert (here.machine.reboot, here.machine.drained, here.machine.reserved) == ("", True, False)
    assert here.end().state is State.DONE


def test_a_test_job_of_a_reimage_that_was_aborted_proves_nothing_for_the_next() -> None:
    here = Here()
    here.go_to(Step.JOB)
    here.tick()
    here.tick()
    old = here.record().job
    here.site.abort(NODE)  # and its controller is dead: the reservation is still there
    assert (here.machine.reserved, here.machine.test_ended) == (True, "")
    here.confirm(AGAIN, previous=here.record().ended)
    ended = here.end()
    assert (ended.state, here.machine.proven) == (State.DONE, True)
    assert ended.job != old


def test_nobody_elses_job_comes_while_the_test_job_runs() -> None:
    here = Here()
    here.go_to(Step.JOB)
    here.tick()
    assert (here.machine.reserved, here.machine.drained) == (True, False)
    assert not here.site.submit(NODE)


def test_a_node_that_slurm_does_not_send_jobs_to_is_not_done() -> None:
    here = Here()
    here.go_to(Step.RETURN)
    here.machine.runs = "nothing"
    here.tick()
    assert here.record().waiting == "Slurm to send it jobs; Slurm says: not answering"
    ended = here.end()
    assert (ended.state, ended.step) == (State.FAILED, Step.RETURN)
    assert here.machine.drained


@pytest.mark.parametrize("passes", [True, False])
def test_a_node_that_its_health_check_drained_is_not_done(passes: bool) -> None:
    here = Here()
    here.go_to(Step.RETURN)
    here.machine.drain("health: GPU lost")
    here.tick()
    assert here.record().waiting == "its health check, which drained it: health: GPU lost"
    if passes:
        here.machine.drained, here.machine.reason = False, ""
    ended = here.end()
    assert (ended.state, here.machine.serves) == ((State.DONE, True) if passes else (State.FAILED, False))
    assert passes or ended.reason.endswith("min for its health check, which drained it: health: GPU lost")


# --- time limits and trouble


LATE = {
    Step.IDENTITY: ("bmc", "bmc does not answer"),
    Step.DRAIN: ("slurmctld", "slurmctld does not answer"),
    Step.OFF: ("bmc", "bmc does not answer"),
    Step.ARM: ("bmc", "bmc does not answer"),
    Step.BOOT: ("bmc", "bmc does not answer"),
    Step.INSTALL: ("silent-install", "waited 25 min for its installation to end; its console says: last line"),
    Step.START: ("ssh", "waited 10 min for it to answer by ssh; its console says: last line"),
    Step.JOB: ("slurmctld", "slurmctld does not answer"),
    Step.RETURN: ("slurmctld", "slurmctld does not answer"),
}


@pytest.mark.parametrize("step", LATE)
def test_each_step_has_a_time_limit_and_says_what_it_waited_for(step: Step) -> None:
    fault, reason = LATE[step]
    here = Here()
    here.go_to(step)
    here.site.faults[NODE].add(fault)
    here.tick()
    assert here.record().going
    here.until(lambda record: bool(record.reason))
    assert here.record().seconds.get(step.value, 0.0) <= LIMITS.of(step) + 60
    assert here.record().reason == reason
    here.site.faults.clear()
    assert here.end().state is State.FAILED
    assert here.machine.drained == (step is not Step.IDENTITY and step is not Step.DRAIN)
    assert here.site.orders == {}


@pytest.mark.parametrize("step", [Step.CONVERGE, Step.GATES])
def test_a_rollout_that_never_ends_fails(step: Step) -> None:
    here = Here()
    here.go_to(step)
    here.site.hangs = True
    ended = here.end()
    assert ended.state is State.FAILED
    assert ended.reason == f"waited 30 min for its {'rollout' if step is Step.CONVERGE else 'checks'}"
    assert here.machine.drained


@pytest.mark.parametrize("step", LATE)
def test_trouble_that_passes_is_waited_for(step: Step) -> None:
    fault = "bmc" if step in (Step.IDENTITY, Step.OFF, Step.ARM, Step.BOOT) else "slurmctld"
    fault = {Step.INSTALL: "server", Step.START: "ssh"}.get(step, fault)
    here = Here()
    here.go_to(step)
    here.site.faults[NODE].add(fault)
    for _ in range(3):
        if fault == "server":  # it keeps the records as well: nobody can write down what is waited for
            with pytest.raises(Trouble):
                here.tick()
            here.site.pass_time(30)
        else:
            here.tick()
    assert here.record().going
    if fault not in ("server", "ssh"):
        assert here.record().waiting == f"an answer: {fault} does not answer"
    here.site.faults.clear()
    assert here.end().state is State.DONE


# --- failing


def test_what_fails_is_written_down_then_made_safe_then_said_to_have_failed() -> None:
    here = Here()
    here.site.faults[NODE].add("gates")
    seen: list[tuple[str, str, bool]] = []

    def look(when: str, what: str, node: str) -> None:
        record = here.record()
        if when == "before" and what in ("provision.disarm", "slurm.keep_drained") and record.reason:
            seen.append((what, record.state.value, record.reason == "gates failed"))

    here.site.call = look
    assert here.end().state is State.FAILED
    assert seen == [("provision.disarm", "going", True), ("slurm.keep_drained", "going", True)]


def test_one_that_fails_is_in_no_rollout_before_it_is_safe() -> None:
    here = Here()
    here.go_to(Step.CONVERGE)
    here.tick()
    here.site.resume(NODE)
    here.site.call = lambda when, what, node: (
        here.site.faults[NODE].add("slurmctld") if what == "rollout.leave" else None
    )
    assert here.tick().waiting.startswith("an answer, to be made safe")
    assert f"rollout.leave {NODE}" in here.site.told


def test_a_node_that_cannot_be_made_safe_is_tried_again() -> None:
    here = Here()
    here.go_to(Step.INSTALL)
    here.site.disarm(NODE)
    here.site.faults[NODE].add("slurmctld")
    here.tick()
    here.tick()
    record = here.record()
    assert (record.going, record.waiting) == (True, "an answer, to be made safe: slurmctld does not answer")
    here.machine.drained = False
    here.site.faults.clear()
    assert here.end().state is State.FAILED
    assert here.machine.drained


def test_a_node_that_cannot_be_made_safe_for_long_says_so_and_is_made_safe_first_by_the_next_try() -> None:
    here = Here()
    here.site.faults[NODE].add("override-ignored")
    here.go_to(Step.INSTALL)
    here.tick()
    here.site.faults[NODE].add("slurmctld")
    ended = here.end()
    assert ended.state is State.FAILED
    assert ended.reason.endswith("; it could not be made safe: slurmctld does not answer")
    here.machine.drained, here.machine.reason, here.machine.runs = False, "", "nothing"
    here.site.faults.clear()
    here.machine.serial = "S-other"
    here.confirm(AGAIN)
    assert here.machine.drained
    assert (here.end().step, here.machine.drained) == (Step.IDENTITY, True)


def test_a_kill_in_the_midst_of_failing_is_followed_by_a_failure_or_another_try() -> None:
    here = Here()
    here.go_to(Step.INSTALL)
    here.site.disarm(NODE)
    here.site.faults[NODE].add("slurmctld")
    here.tick()
    assert (here.record().going, bool(here.record().reason)) == (True, True)
    here.engine = here.controller()
    with pytest.raises(Trouble, match="slurmctld does not answer"):
        here.confirm(AGAIN)  # first it is made safe, and that cannot be
    here.site.faults.clear()
    here.machine.drained = False
    assert here.confirm(AGAIN).step is Step.IDENTITY
    assert here.machine.drained
    assert here.end().state is State.DONE


AGAIN_AT = {
    Step.IDENTITY: ("bmc", Step.IDENTITY),
    Step.DRAIN: ("slurmctld", Step.IDENTITY),
    Step.OFF: ("bmc", Step.IDENTITY),
    Step.ARM: ("bmc", Step.IDENTITY),
    Step.BOOT: ("bmc", Step.IDENTITY),
    Step.INSTALL: ("silent-install", Step.IDENTITY),
    Step.START: ("ssh", Step.START),
    Step.CONVERGE: ("converge", Step.CONVERGE),
    Step.GATES: ("gates", Step.CONVERGE),
    Step.JOB: ("job", Step.CONVERGE),
    Step.RETURN: ("slurmctld", Step.CONVERGE),
}


@pytest.mark.parametrize("step", AGAIN_AT)
def test_one_that_failed_is_taken_up_where_what_is_known_of_it_holds(step: Step) -> None:
    fault, at = AGAIN_AT[step]
    here = Here()
    here.go_to(step)
    here.site.faults[NODE].add(fault)
    here.until(lambda record: bool(record.reason))
    here.site.faults.clear()
    assert (here.end().state, here.record().step) == (State.FAILED, step)
    again = here.confirm(AGAIN)
    assert (again.step, again.state, again.reason, again.ended, again.job) == (at, State.GOING, "", "", "")
    assert here.end().state is State.DONE
    assert here.machine.serves


def test_one_that_failed_before_its_disk_was_touched_and_serves_again_waits_for_floor_and_jobs() -> None:
    here = Here()
    here.site.faults[NODE].add("power-ignored")
    assert here.end().step is Step.OFF
    here.site.resume(NODE)
    assert here.site.submit(NODE)
    here.site.faults.clear()
    here.site.floor = 2
    here.confirm(AGAIN)
    assert here.machine.serves
    here.go_to(Step.DRAIN)
    here.tick()
    assert (here.record().waiting, here.machine.serves) == ("too few would be left", True)
    here.site.floor, here.jobs_end = 0, True
    assert here.end().state is State.DONE


@pytest.mark.parametrize("job", [True, False])
@pytest.mark.parametrize("step", [Step.GATES, Step.JOB])
def test_one_that_was_installed_and_serves_again_is_drained_where_the_floor_lets_it(step: Step, job: bool) -> None:
    here = Here()
    here.site.faults[NODE].add("gates" if step is Step.GATES else "job")
    assert here.end().step is step
    before = here.record()
    here.site.resume(NODE)
    if job:
        assert here.site.submit(NODE)
    here.site.floor = 2
    why = f"hal05: it failed at {step.value}, serves jobs since, and cannot be drained now: too few would be left. "
    with pytest.raises(ReimageError) as said:
        here.confirm(AGAIN)
    assert str(said.value).startswith(why)
    assert (here.machine.serves, here.record()) == (True, before)
    here.site.floor = 0
    here.site.faults.clear()
    here.confirm(AGAIN)
    assert here.machine.drained
    if job:  # which nothing disturbs
        failed = here.end()
        assert (failed.state, failed.step) == (State.FAILED, Step.CONVERGE)
        assert failed.reason.startswith("there are jobs on it: job ")
        assert (here.machine.drained, len(here.machine.jobs)) == (True, 1)
        here.site.end_jobs(NODE)
        here.confirm(AGAIN)
    assert here.end().state is State.DONE


FAILING = {
    Step.OFF: "power-ignored",
    Step.INSTALL: "disk-missing",
    Step.CONVERGE: "converge",
    Step.GATES: "gates",
    Step.JOB: "job",
}


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("step", FAILING)
def test_a_run_that_is_killed_at_any_call_while_it_fails_is_gone_on_with_by_the_same_command(
    step: Step, resumed: bool
) -> None:
    """Somebody may have given the node back in between: it is drained again, and the next one is done at the latest."""
    failing = 0
    for at in range(200):
        here = Here()
        here.go_to(step)
        here.site.faults[NODE].add(FAILING[step])
        if kill_at(here, at):
            assert failing > 1, "it was never killed while it failed"
            return
        failing += bool(here.record().reason)
        if resumed:
            here.site.resume(NODE)
        here.site.faults.clear()
        here.engine = here.controller()
        known = bool(here.record().reason)
        here.confirm(AGAIN)
        if known and not before(step, Step.START):
            assert here.machine.drained
        ended = here.end()
        if ended.state is State.FAILED:  # the fault had happened, or somebody gave it back before it was failing
            assert ended.reason, ended
            assert here.machine.drained
            here.confirm(replace(AGAIN, began="2026-11-22T20:00:00Z"))
            ended = here.end()
        assert ended.state is State.DONE, ended
    raise AssertionError("it goes nowhere")


def kill_at(here: Here, at: int) -> bool:
    """Kill a run at this call from now on; return whether it ended before."""

    def call(when: str, what: str, node: str) -> None:
        nonlocal at
        at -= 1
        if at < 0:
            raise Killed

    here.site.call = call
    try:
        here.end()
    except Killed:
        return False
    finally:
        here.site.call = lambda when, what, node: None
    return True


def test_one_that_was_never_made_safe_and_serves_is_made_safe_by_the_same_command() -> None:
    """slurmctld fell silent as the node was given back: at the end of a reimage that was all right till then."""
    here = Here()
    here.go_to(Step.RETURN)
    here.machine.drained, here.machine.reserved = False, False  # its last word was heard
    here.site.faults[NODE].add("slurmctld")
    assert "could not be made safe" in here.end().reason
    assert here.machine.serves
    here.site.faults.clear()
    here.confirm(AGAIN)
    assert here.machine.drained
    assert here.end().state is State.DONE


def test_the_floor_counts_for_one_that_was_killed_while_it_failed_too() -> None:
    here = Here()
    here.go_to(Step.GATES)
    here.site.faults[NODE].add("gates")
    here.until(lambda record: record.waiting == "its checks")
    here.site.call = lambda when, what, node: (
        here.site.faults[NODE].add("slurmctld") if what == "rollout.leave" else None
    )
    here.until(lambda record: bool(record.reason))
    here.site.call = lambda when, what, node: None
    here.site.faults.clear()
    here.site.resume(NODE)
    here.site.floor = 2
    with pytest.raises(ReimageError, match="too few would be left"):
        here.confirm(AGAIN)
    assert here.machine.serves
    here.site.floor = 1
    here.confirm(AGAIN)
    assert here.machine.drained
    assert here.end().state is State.DONE


def test_one_that_runs_its_old_system_waits_for_the_floor_as_at_first() -> None:
    here = Here()
    here.go_to(Step.START)
    here.site.faults[NODE].add("ssh")
    assert here.end().step is Step.START
    here.site.resume(NODE)
    here.site.floor = 2
    assert here.confirm(AGAIN).step is Step.IDENTITY
    here.site.faults.clear()
    here.go_to(Step.DRAIN)
    here.tick()
    assert (here.record().waiting, here.machine.serves) == ("too few would be left", True)


@pytest.mark.parametrize("step", [Step.OFF, Step.GATES])
def test_a_drain_that_its_administrator_ended_after_the_failure_does_not_come_back(step: Step) -> None:
    here = Here(confirmed=False)
    here.machine.drain("fan")
    here.confirm(RUN)
    here.site.faults[NODE].add(FAILING[step])
    assert here.end().drained_before == Drained("fan", "root")
    here.site.resume(NODE)
    here.site.faults.clear()
    here.confirm(AGAIN)
    assert here.end().state is State.DONE
    assert here.machine.serves


@pytest.mark.parametrize("step", [Step.OFF, Step.GATES])
def test_a_drain_of_somebody_after_the_failure_is_there_again_at_the_end(step: Step) -> None:
    here = Here()
    here.site.faults[NODE].add(FAILING[step])
    assert here.end().step is step
    here.machine.drain("bad DIMM")
    here.site.faults.clear()
    here.confirm(AGAIN)
    assert here.record().drained_before == Drained("bad DIMM", "root")
    assert here.end().state is State.DONE
    assert (here.machine.drained, here.machine.reason) == (True, "bad DIMM")


def test_a_drain_of_the_health_check_after_the_failure_ends_with_the_next_try() -> None:
    here = Here()
    here.site.faults[NODE].add("gates")
    assert here.end().step is Step.GATES
    here.machine.drain("health: GPU lost")
    here.site.faults.clear()
    assert here.confirm(AGAIN).drained_before is None
    assert here.end().state is State.DONE
    assert here.machine.serves


def test_an_abort_of_a_node_that_slurm_does_not_know_any_more_is_heard() -> None:
    here = Here()
    here.go_to(Step.CONVERGE)
    here.site.unknown.add(NODE)
    assert here.tick().waiting.endswith("Slurm does not know it any more")
    assert here.site.abort(NODE)
    assert here.tick().state is State.ABORTED
    assert f"rollout.leave {NODE}" in here.site.told


def test_whether_slurm_knows_a_node_is_asked_again_when_it_does_not_answer() -> None:
    here = Here()
    here.site.faults[NODE].add("slurmctld")
    here.site.pass_time(700)
    here.tick()
    assert (here.record().step, here.record().waiting) == (Step.WAITING, "an answer: slurmctld does not answer")
    here.site.faults.clear()
    ended = here.end()
    assert (ended.state, ended.in_slurm) == (State.DONE, True)


def drained_and_aborted() -> Here:
    """A node that an administrator had drained, and whose reimage was aborted."""
    here = Here(confirmed=False)
    here.machine.drain("fan")
    here.confirm(RUN)
    here.go_to(Step.CONVERGE)
    assert here.site.abort(NODE)
    assert here.tick().state is State.ABORTED
    return here


def test_a_drain_from_before_an_abort_is_known_though_slurm_was_silent_as_the_turn_came() -> None:
    here = drained_and_aborted()
    here.site.faults[NODE].add("slurmctld")
    here.confirm(AGAIN, previous=here.record().ended)
    assert here.tick().waiting == "an answer: slurmctld does not answer"
    here.site.faults.clear()
    assert here.end().state is State.DONE
    assert (here.machine.drained, here.machine.reason) == (True, "fan")


@pytest.mark.parametrize("since", ["", "bad DIMM"])
def test_a_drain_from_before_an_abort_that_somebody_ended_does_not_come_back(since: str) -> None:
    here = drained_and_aborted()
    here.site.resume(NODE)
    if since:
        here.machine.drain(since)
    here.confirm(AGAIN, previous=here.record().ended)
    assert here.end().state is State.DONE
    assert (here.machine.drained, here.machine.reason) == (bool(since), since)


def test_making_safe_that_breaks_as_nobody_foresaw_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Here()
    here.go_to(Step.GATES)
    here.site.faults[NODE].add("gates")

    def broken(*_arguments: object) -> None:
        raise KeyError("reason")

    monkeypatch.setattr("tests.unit.hal_cluster.reimage.fakes.FakeSlurm.keep_drained", broken)
    ended = here.end()
    assert ended.state is State.FAILED
    assert ended.reason == "gates failed; it could not be made safe: KeyError: 'reason'"


def test_one_that_was_installed_and_does_not_start_is_installed_again() -> None:
    """Its host certificate was of an authority that nobody here believes, or its disk is not as it should be."""
    here = Here()
    here.go_to(Step.START)
    here.site.faults[NODE].add("ssh")
    assert here.end().state is State.FAILED
    first = here.record().host_key
    again = here.confirm(AGAIN)
    assert (again.step, again.state) == (Step.IDENTITY, State.GOING)
    here.site.faults.clear()
    assert here.end().state is State.DONE
    assert here.record().host_key != first
    assert here.machine.serves


def test_who_asked_for_another_end_is_heard_by_the_next_try_as_well() -> None:
    here = Here(replace(RUN, next_state="DOWN"))
    here.site.faults[NODE].add("gates")
    assert here.end().state is State.FAILED
    here.site.faults.clear()
    here.confirm(AGAIN)
    assert here.end().state is State.DONE
    assert here.machine.drained


# --- codes, plans and controllers


@pytest.mark.parametrize("how", [State.DONE, State.ABORTED])
def test_a_code_that_was_used_begins_a_new_one_only_for_a_plan_that_knows_of_the_last(how: State) -> None:
    here = Here()
    if how is State.ABORTED:
        here.go_to(Step.DRAIN)
        assert here.site.abort(NODE)
    ended = here.end()
    assert ended.state is how
    with pytest.raises(ReimageError, match="hal05: this code was used"):
        here.confirm(AGAIN)
    assert here.record() == ended
    began = here.confirm(AGAIN, previous=ended.ended)
    assert (began.step, began.revision, began.seconds, began.old_boot_id) == (Step.WAITING, ended.revision + 1, {}, "")
    assert here.end().state is State.DONE


@pytest.mark.parametrize("failed", [True, False])
@pytest.mark.parametrize("other", ["plan", "code"])
def test_another_plan_or_code_is_refused_while_one_is_on(other: str, failed: bool) -> None:
    here = Here()
    here.go_to(Step.CONVERGE)
    if failed:
        here.site.faults[NODE].add("converge")
        here.end()
    before = here.record()
    run = AGAIN if other == "plan" else replace(AGAIN, code="2222-2222")
    with pytest.raises(ReimageError) as refused:
        here.confirm(run, disk="0xother" if other == "plan" else "0xhal05")
    assert str(refused.value) == (
        f"hal05: another reimage of it {'failed' if failed else 'is'} at converge, confirmed by root@here with "
        "K7QX-M2VD; that command goes on with it, hal-reimage abort hal05 on the server ends it"
    )
    assert here.record() == before


def test_the_time_that_a_run_was_dead_is_no_steps() -> None:
    here = Here()
    here.go_to(Step.INSTALL)
    here.machine.runs = "stopped"  # it does nothing more
    here.site.pass_time(86400)
    here.engine = here.controller()
    here.confirm(AGAIN)
    here.machine.runs = "installer"
    here.site.orders[NODE].until = here.site.clock + 7200
    ended = here.end()
    assert ended.state is State.DONE
    assert ended.seconds["install"] < 86400


@pytest.mark.parametrize("again", [AGAIN, replace(RUN, call="the same command, in the same second")])
def test_a_second_controller_takes_over_and_the_first_does_nothing_more(again: Run) -> None:
    here = Here()
    here.go_to(Step.ARM)
    first = here.engine
    here.engine = here.controller()
    here.confirm(again)
    here.site.told.clear()
    taken = here.record()
    assert first.tick(NODE, RUN) == taken
    assert here.site.told == [f"store.read {NODE}"]
    assert here.end().state is State.DONE


def test_a_second_controller_that_takes_over_within_a_look_has_its_way() -> None:
    here = Here()
    here.go_to(Step.ARM)
    second = here.controller()

    def take_over(when: str, what: str, node: str) -> None:
        if (when, what) == ("before", "provision.arm"):
            here.site.call = lambda when, what, node: None
            second.confirm(here.record().plan, AGAIN)

    here.site.call = take_over
    assert here.engine.tick(NODE, RUN).run == AGAIN
    assert here.site.orders == {}  # the server arms for the newest record alone


def test_a_write_of_an_old_revision_is_refused() -> None:
    here = Here()
    old = here.record()
    here.tick()
    with pytest.raises(Conflict):
        here.site.world().store.write(old)


# --- whenever it is aborted or killed


def whole(run: Run, prepare: Callable[[Site], None]) -> Here:
    """Return a site where a whole reimage is about to begin."""
    here = Here(run)
    prepare(here.site)
    here.machine.jobs.append("7")
    here.jobs_end = True
    return here


def as_it_is(site: Site) -> None:
    """Nothing special."""


def drained(site: Site) -> None:
    """An administrator had drained it."""
    site.machines[NODE].drained, site.machines[NODE].reason = True, "fan"


def to_be_rebooted(site: Site) -> None:
    """An administrator wants it rebooted, and DOWN after it."""
    site.ask_reboot(NODE, "DOWN")


WAYS = {
    "drain": (RUN, as_it_is),
    "slurm": (BY_SLURM, as_it_is),
    "drained": (RUN, drained),
    "reboot": (RUN, to_be_rebooted),
    "reboot by slurm": (BY_SLURM, to_be_rebooted),
}


def calls(way: str) -> list[tuple[str, str]]:
    """Return each call of a whole reimage, before and after."""
    here = whole(*WAYS[way])
    seen: list[tuple[str, str]] = []
    here.site.call = lambda when, what, node: seen.append((when, what))
    assert here.end().state is State.DONE
    return seen


def at(here: Here, number: int, act: Callable[[], None]) -> None:
    """Have something happen at a call of the engine's."""
    left = number

    def call(when: str, what: str, node: str) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            act()

    here.site.call = call


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_is_killed_at_any_call_is_done_by_the_same_command(way: str) -> None:
    def kill() -> None:
        raise Killed

    number = 0
    for number, (when, what) in enumerate(calls(way)):
        here = whole(*WAYS[way])
        at(here, number, kill)
        with pytest.raises(Killed):
            here.end()
        here.engine = here.controller()
        point = f"killed {when} {what} ({number})"
        if here.record().going:
            here.confirm(AGAIN)
        else:  # it was through: the same command does not begin anew
            with pytest.raises(ReimageError, match="this code was used"):
                here.confirm(AGAIN)
        ended = here.end()
        assert ended.state is State.DONE, f"{point}: {ended}"
        assert here.site.orders == {}, point
        assert (here.machine.proven, here.machine.reserved) == (True, False), point
        stays = {"drained": "fan"}.get(way, "drained, as asked" if "reboot" in way else "")
        assert here.machine.drained == bool(stays), point
        assert stays in here.machine.reason, point
    assert number > 60


def test_what_a_reboot_is_to_end_in_survives_a_kill_when_it_was_first_seen_as_it_began() -> None:
    here = Here()
    here.go_to(Step.DRAIN)
    here.site.ask_reboot(NODE, "DOWN")
    here.machine.reboot = "issued"

    def kill(when: str, what: str, node: str) -> None:
        if (when, what) == ("after", "slurm.keep_drained"):
            raise Killed

    here.site.call = kill
    here.engine.tick(NODE, RUN)
    with pytest.raises(Killed):
        here.engine.tick(NODE, RUN)
    here.site.call = lambda when, what, node: None
    here.engine = here.controller()
    here.confirm(AGAIN)
    ended = here.end()
    assert (ended.state, ended.run.next_state, here.machine.drained) == (State.DONE, "DOWN", True)


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_is_aborted_at_any_call_leaves_the_node_drained_and_booting_its_disk(way: str) -> None:
    for number, (when, what) in enumerate(calls(way)):
        here = whole(*WAYS[way])
        aborted: list[bool] = []
        at(here, number, lambda here=here, aborted=aborted: aborted.append(here.site.abort(NODE)))  # type: ignore[misc]
        ended = here.end()
        point = f"aborted {when} {what} ({number})"
        if aborted != [True]:  # it was over
            assert ended.state is State.DONE, point
            continue
        here.tick()  # a run that goes on with other nodes looks once more
        assert ended.state is State.ABORTED, point
        assert here.site.orders == {}, point
        assert not here.machine.network_next, point
        assert not here.machine.reserved, point
        if ended.reason != "aborted by root at waiting":
            assert here.machine.drained, point
            assert here.machine.reason.startswith("hal-reimage: aborted by root at "), point
        before = here.machine.disk
        here.site.press_the_button(NODE)
        for _ in range(4):
            here.site.pass_time()
        assert here.machine.disk == before, point


# ---------------------------------------------------------------- other people's drains, and what is asked for later


def test_a_drain_that_came_meanwhile_is_there_again_at_the_end() -> None:
    """An administrator drains a node that is being installed: it is proven, and stays drained with his words."""
    site = Site("hal01")
    engine = Engine(site.world(), LIMITS, site.now)
    site.confirmed["hal01"] = plan("hal01")
    engine.confirm(plan("hal01"), RUN)
    for _ in range(200):
        record = engine.tick("hal01", RUN)
        if record.step is Step.INSTALL:
            site.machines["hal01"].drained, site.machines["hal01"].reason = True, "PSU smells"
        if not record.going:
            break
        site.pass_time(30)
    assert (record.state, site.machines["hal01"].drained, site.machines["hal01"].reason) == (
        State.DONE,
        True,
        "PSU smells",
    )


def test_a_drain_of_before_survives_an_abort_and_the_next_reimage() -> None:
    site = Site("hal01")
    engine = Engine(site.world(), LIMITS, site.now)
    machine = site.machines["hal01"]
    machine.drained, machine.reason = True, "DIMM"
    for number in range(2):
        kept = site.records.get("hal01")
        wanted = plan("hal01", previous=str(kept["ended"]) if kept else "")
        site.confirmed["hal01"] = wanted
        run = replace(RUN, began=f"{RUN.began} {number}")
        engine.confirm(wanted, run)
        for _ in range(200):
            record = engine.tick("hal01", run)
            if number == 0 and record.step is Step.INSTALL:
                site.abort("hal01")
            if not record.going:
                break
            site.pass_time(30)
        site.pass_time(30)
    assert (record.state, machine.drained, machine.reason) == (State.DONE, True, "DIMM")


@pytest.mark.parametrize(("first", "then", "drained"), [("RESUME", "DOWN", True), ("DOWN", "RESUME", True)])
def test_whoever_wants_it_to_stay_drained_is_heard(first: str, then: str, drained: bool) -> None:
    site = Site("hal01")
    engine = Engine(site.world(), LIMITS, site.now)
    site.confirmed["hal01"] = plan("hal01")
    for number, next_state in enumerate((first, then)):
        site.faults["hal01"] = {"gates"} if number == 0 else set()
        run = replace(RUN, next_state=next_state, began=f"{RUN.began} {number}")
        engine.confirm(plan("hal01"), run)
        for _ in range(200):
            record = engine.tick("hal01", run)
            if not record.going:
                break
            site.pass_time(30)
    assert (record.state, site.machines["hal01"].drained) == (State.DONE, drained)


def test_a_test_job_that_slurm_has_forgotten_is_run_again() -> None:
    """The run was killed; slurmctld forgets jobs some minutes after their end."""
    site = Site("hal01")
    engine = Engine(site.world(), LIMITS, site.now)
    site.confirmed["hal01"] = plan("hal01")
    engine.confirm(plan("hal01"), RUN)
    jobs = []
    for _ in range(200):
        record = engine.tick("hal01", RUN)
        if record.job and record.job not in jobs:
            jobs.append(record.job)
            if len(jobs) == 1:
                site.forget_job("hal01")
        if not record.going:
            break
        site.pass_time(30)
    assert record.state is State.DONE
    assert len(jobs) == 2
