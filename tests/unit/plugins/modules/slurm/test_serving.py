"""hal_slurm_node sees nodes through to "takes jobs again": what it resumes, what it waits for, what it only names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.modules import Answer, Ran, loaded

SILENCE = " Reason=Not responding [slurm@2026-11-26T08:00:00]"
FAN = " Reason=broken fan [root@2026-11-26T08:00:00]"
SHOW = ["timeout", "30", "scontrol", "--oneliner", "show", "node", "hal01"]
RESUME = ["timeout", "30", "scontrol", "update", "NodeName=hal01", "State=RESUME"]
GONE = (1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)\n")


class Slurmctld:
    """A slurmctld that says of hal01 one state after another, the last for ever, and a clock."""

    def __init__(self, *patched: Any) -> None:
        self.now, self.states, self.resumed = 0.0, list[str | Answer](), list[str | Answer]()
        module = loaded("hal_slurm_node")
        module.__dict__["time"] = SimpleNamespace(time=lambda: self.now, sleep=self.sleep)
        self.ran = Ran(module, self.answer, *patched)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 10000, "it goes on for ever"

    def answer(self, argv: list[str]) -> Answer:
        if argv[3] == "update":
            self.states = self.resumed or self.states
            return 0, "", ""
        said = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        return (0, f"NodeName={argv[-1]} State={said}\n", "") if isinstance(said, str) else said

    def __call__(self, *states: str | Answer, check: bool = False, **more: Any) -> dict[str, Any]:
        self.now, self.states = 0.0, list(states)
        return self.ran(check, **{"nodes": ["hal01"], "state": "serving", **more})


@pytest.fixture
def slurmctld(patched: tuple[Any, Any]) -> Slurmctld:
    return Slurmctld(*patched)


FINE = {"changed": False, "resumed": [], "missing": []}


@pytest.mark.parametrize("state", ["IDLE", "IDLE+DRAIN" + FAN, "DOWN+DRAIN" + FAN, "DOWN+REBOOT_ISSUED+NOT_RESPONDING"])
def test_a_node_that_serves_or_that_somebody_keeps_is_left_alone(slurmctld: Slurmctld, state: str) -> None:
    assert slurmctld(state) == FINE
    assert (slurmctld.ran.told, slurmctld.now) == ([SHOW], 0)


def test_a_node_that_slurmctld_brings_back_itself_is_only_waited_for(slurmctld: Slurmctld) -> None:
    assert slurmctld("DOWN+NOT_RESPONDING" + SILENCE, "IDLE+NOT_RESPONDING", "UNKNOWN", "IDLE") == FINE
    assert slurmctld.ran.told == [SHOW] * 4


def test_a_silenced_node_is_resumed_once_it_has_registered_and_not_before(slurmctld: Slurmctld) -> None:
    slurmctld.resumed = ["IDLE+NOT_RESPONDING", "IDLE"]
    silent = "DOWN+NOT_RESPONDING" + SILENCE
    assert slurmctld(silent, silent, "DOWN" + SILENCE) == {**FINE, "changed": True, "resumed": ["hal01"]}
    assert slurmctld.ran.told == [SHOW, SHOW, SHOW, RESUME, SHOW, SHOW]


def test_a_node_that_goes_silent_again_is_resumed_once(slurmctld: Slurmctld) -> None:
    slurmctld.resumed = ["DOWN" + SILENCE]
    said = slurmctld("DOWN" + SILENCE, wait_seconds=10)
    assert said["msg"].startswith("hal01 is DOWN: Not responding [slurm@2026-11-26T08:00:00]; slurmctld does not hear")
    assert (said["failed"], said["resumed"], said["changed"]) == (True, ["hal01"], True)
    assert slurmctld.ran.told.count(RESUME) == 1


@pytest.mark.parametrize(
    ("state", "more"),
    [
        ("DOWN" + FAN, {}),
        ("DOWN" + SILENCE.replace("slurm@", "root@"), {}),
        ("DOWN" + SILENCE, {"slurm_user": "root"}),
        ("DOWN Reason=Node unexpectedly rebooted [slurm@2026-11-26T08:00:00]", {}),
    ],
)
def test_what_slurmctld_did_not_do_for_silence_stays_and_is_named_at_once(
    slurmctld: Slurmctld, state: str, more: dict[str, Any]
) -> None:
    said = slurmctld(state, **more)
    assert said["msg"].startswith("hal01 is DOWN: ")
    assert said["msg"].endswith("; resume it when that is settled: scontrol update NodeName=hal01 State=RESUME")
    assert (said["failed"], slurmctld.ran.told, slurmctld.now) == (True, [SHOW], 0)


@pytest.mark.parametrize(
    "state", ["IDLE+NOT_RESPONDING", "UNKNOWN", "DOWN+NOT_RESPONDING" + SILENCE, "DOWN*+DRAIN" + FAN]
)
def test_a_node_of_which_nothing_is_heard_is_waited_for_and_then_named(slurmctld: Slurmctld, state: str) -> None:
    said = slurmctld(state)
    assert said["failed"]
    assert said["msg"].startswith(f"hal01 is {state.split(' ')[0]}: ")
    assert "look at slurmd, munge, the clock and the firewall there" in said["msg"]
    assert 300 < slurmctld.now < 310
    assert RESUME not in slurmctld.ran.told


def test_a_slurmctld_that_does_not_answer_is_asked_three_times_and_the_node_is_not_known(slurmctld: Slurmctld) -> None:
    assert slurmctld(GONE, GONE, "IDLE") == FINE
    said = slurmctld(GONE)
    assert said["msg"] == (
        "whether hal01 takes jobs is not known: scontrol --oneliner show: slurm_load_node error: Unable to contact"
        " slurm controller (connect failure)"
    )
    assert slurmctld.ran.told == [SHOW] * 3
    assert slurmctld((0, "", ""))["msg"] == "whether hal01 takes jobs is not known: scontrol shows no node"
    said = slurmctld((1, "Node hal01 not found\n", ""))
    assert said["msg"] == "slurmctld does not know hal01: it has to restart with the new slurm.conf first"
    assert slurmctld.ran.told == [SHOW]


def test_each_node_that_is_missing_is_named(slurmctld: Slurmctld) -> None:
    said = slurmctld("DOWN" + FAN, nodes=["hal01", "hal02"])
    assert [line.split(":")[0] for line in said["msg"].splitlines()] == ["hal01 is DOWN", "hal02 is DOWN"]


def test_in_check_mode_nothing_is_resumed_and_nothing_is_waited_for(slurmctld: Slurmctld) -> None:
    assert slurmctld("DOWN" + SILENCE, check=True) == {**FINE, "changed": True, "resumed": ["hal01"]}
    said = slurmctld("DOWN+NOT_RESPONDING" + SILENCE, check=True)
    assert (said["changed"], len(said["missing"])) == (False, 1)
    assert (slurmctld.ran.told, slurmctld.now) == ([SHOW], 0)
