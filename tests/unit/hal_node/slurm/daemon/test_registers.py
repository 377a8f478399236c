"""hal_slurm_daemon and a slurmd of which slurmctld hears nothing: it registers again when no job is in the way."""

from __future__ import annotations

import pytest

from tests.unit.hal_node.slurm.machine import DOWN, NODE, NOTHING, Machine

SILENCE = " Reason=Not responding [slurm@2026-11-26T08:00:00]"
FAN = " Reason=broken fan [root@2026-11-26T08:00:00]"


def test_a_slurmd_whose_node_is_down_for_silence_is_started_again(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.states = ["DOWN+NOT_RESPONDING" + SILENCE] * 2 + ["DOWN" + SILENCE]
    why = (
        "slurmctld has hal05 DOWN+NOT_RESPONDING (Not responding) and asks it no more: slurmd registers again when it"
        " starts"
    )
    said = slurmd(check=True)
    assert (said["action"], said["why"], slurmd.did) == ("restart", [why], [])
    assert slurmd.foretold == ["restarts now", f"{why}: restart"]
    assert slurmd() == {**NOTHING, "changed": True, "action": "restart", "why": [why]}
    assert slurmd.did == ["systemctl reset-failed slurmd.service", "systemctl restart slurmd.service"]
    assert slurmd.slept == [0.5], "it has registered, though slurmctld does not give it back"


def test_jobs_that_run_there_are_in_its_way(slurmd: Machine) -> None:
    slurmd.recorded()
    slurmd.states = ["DOWN+NOT_RESPONDING" + SILENCE]
    slurmd.jobs["node"] = (0, "7\n", "")
    said = slurmd()
    assert (said["action"], said["pending"], slurmd.did) == ("nothing", "restart", [])
    assert said["blocked"] == "1 job runs there; slurm_restart_ok=true permits it, or repeat when none runs"


@pytest.mark.parametrize(
    "state",
    [
        "IDLE",
        "IDLE+NOT_RESPONDING",  # slurmctld pings it
        "DOWN" + SILENCE,  # it has registered
        "DOWN" + FAN,
        "DOWN+NOT_RESPONDING" + FAN,
        "DOWN+REBOOT_ISSUED+NOT_RESPONDING" + SILENCE,
        "",
    ],
)
def test_every_other_slurmd_is_left_alone(slurmd: Machine, state: str) -> None:
    slurmd.recorded()
    slurmd.states = [state]
    assert slurmd() == NOTHING
    assert slurmd.did == []


def test_slurmctld_and_a_plan_ask_nothing_of_it(slurmctld: Machine) -> None:
    slurmctld.recorded()
    slurmctld.states = ["DOWN+NOT_RESPONDING" + SILENCE]
    assert slurmctld() == NOTHING
    slurmctld.name = "slurmd"
    assert slurmctld(phase="stop_first") == NOTHING
    assert NODE not in slurmctld.ran.told


def test_a_started_slurmd_is_not_waited_for_when_somebody_has_set_its_node_down(slurmd: Machine) -> None:
    slurmd.unit |= DOWN
    slurmd.states = ["DOWN+NOT_RESPONDING" + FAN, "DOWN" + FAN]
    assert slurmd()["action"] == "start"
    assert slurmd.slept == [0.5, 0.5]
