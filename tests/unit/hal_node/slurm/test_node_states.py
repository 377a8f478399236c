"""Each state that Slurm has for a node: whether it takes jobs, answers, and how many have to stay."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.drains import too_few
from ansible.module_utils.hal_node.slurm.nodes import has_to_register, missing, read_jobs, read_node, standing


def node(state: str) -> dict[str, Any]:
    found: dict[str, Any] = read_node(f"NodeName=hal01 State={state} Partitions=gpu,cpu ")
    return found


@pytest.mark.parametrize(
    "flag",
    [
        *("DRAIN", "DRAINED", "DRAINING", "DOWN", "FAIL", "FAILING", "NOT_RESPONDING", "UNKNOWN", "INVAL"),
        *("INVALID_REG", "REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED", "POWERED_DOWN", "POWERING_DOWN"),
        *("POWER_DOWN", "POWERING_UP", "FUTURE"),
    ],
)
def test_a_node_that_is_away_for_whatever_takes_no_job(flag: str) -> None:
    assert not node(f"IDLE+{flag}")["usable"]
    silent = {"NOT_RESPONDING", "UNKNOWN", "INVAL", "INVALID_REG", "REBOOT", "REBOOT_ISSUED"}
    assert node(f"IDLE+{flag}")["answers"] is (flag not in silent)
    assert node(f"IDLE+{flag}")["drained"] is flag.startswith("DRAIN")
    assert node(f"IDLE+{flag}")["failing"] is flag.startswith("FAIL")
    assert node(f"IDLE+{flag}")["down"] is (flag == "DOWN")


@pytest.mark.parametrize("state", ["IDLE", "MIXED", "ALLOCATED", "COMPLETING", "IDLE+CLOUD", "MIXED+PLANNED"])
def test_a_node_that_works_takes_jobs(state: str) -> None:
    found = node(state)
    assert (found["usable"], found["answers"], found["failing"], found["reboot"]) == (True, True, False, "")
    assert (found["reason"], found["by"], found["partitions"]) == ("", "", ["gpu", "cpu"])


@pytest.mark.parametrize("line", ["", "NodeName=hal01", "State=IDLE", " NodeName=hal01 State=IDLE", "Node x not found"])
def test_half_a_line_is_no_node(line: str) -> None:
    assert read_node(line) is None


def test_a_row_of_another_width_is_no_job() -> None:
    assert read_jobs("1|bob\n 2|ann|12:00 \n3|eve|12:00|x\n\n") == [{"id": "2", "user": "ann", "end": "12:00"}]


@pytest.mark.parametrize(("keep", "may"), [(0, True), (1, True), (2, True), (3, False)])
def test_as_many_as_have_to_stay_may_be_all_that_are_left(keep: int, may: bool) -> None:
    nodes = {"hal01": node("IDLE"), "hal02": node("IDLE"), "hal03": node("MIXED"), "hal04": node("DOWN")}
    said = "2 nodes would be left for jobs, at least 3 have to stay; 1 of 4 are away already"
    assert too_few(["hal01", "hal04", "hal99"], nodes, {}, site=keep) == ("" if may else said)


# ------------------------------------------------------------------------------------------------ whose a DOWN is
SILENCE = " Reason=Not responding [slurm@2026-11-26T08:00:00]"
FAN = " Reason=broken fan [root@2026-11-26T08:00:00]"
HEALTH = " Reason=health: GPU lost [root@2026-11-26T08:00:00]"
BOOTED = " Reason=Node unexpectedly rebooted [slurm@2026-11-26T08:00:00]"
LOOK = "slurmctld does not hear of its slurmd: look at slurmd, munge, the clock and the firewall there, then repeat"
RESUME = "scontrol update NodeName=hal01 State=RESUME"


@pytest.mark.parametrize(
    ("state", "how", "registers"),
    [
        ("IDLE", "serves", False),
        ("MIXED+PLANNED", "serves", False),
        ("DOWN+NOT_RESPONDING" + SILENCE, "silenced", True),
        ("DOWN*" + SILENCE, "silenced", True),  # 20.02
        ("DOWN" + SILENCE, "silenced", False),
        # In slurmctld's words and not by it; and by it for another reason.
        ("DOWN*" + SILENCE.replace("slurm@", "root@"), "lacks", True),
        ("DOWN" + SILENCE.replace("responding", "responding to me"), "lacks", False),
        ("DOWN" + FAN, "lacks", False),
        ("DOWN*" + FAN, "lacks", False),
        ("DOWN" + BOOTED, "lacks", False),
        ("DOWN", "lacks", False),
        ("DOWN+DRAIN" + FAN, "kept", False),
        ("IDLE+DRAIN" + HEALTH, "kept", False),
        ("DOWN+DRAIN+NOT_RESPONDING" + FAN, "unheard", True),
        ("DOWN*+DRAIN" + SILENCE, "unheard", True),
        ("IDLE+DRAIN+NOT_RESPONDING" + HEALTH, "unheard", False),
        ("IDLE+NOT_RESPONDING", "unheard", False),
        ("UNKNOWN", "unheard", False),
        ("DOWN+DRAIN+REBOOT_ISSUED+NOT_RESPONDING" + SILENCE, "kept", False),
        ("DOWN+REBOOT_ISSUED+NOT_RESPONDING" + SILENCE, "kept", False),
        ("IDLE+REBOOT_REQUESTED", "kept", False),
        ("IDLE+POWERED_DOWN", "kept", False),
        ("IDLE+INVAL" + BOOTED, "lacks", False),
        # FAIL is set on purpose, by an administrator or by a reimage: a drain that no registration ends.
        ("IDLE+FAIL" + FAN, "kept", False),
        ("MIXED+FAILING" + HEALTH, "kept", False),
        ("DOWN+FAIL" + FAN, "kept", False),
        ("DOWN+FAIL+NOT_RESPONDING" + FAN, "unheard", True),
        ("IDLE+FAIL+INVAL" + BOOTED, "lacks", False),
    ],
)
def test_only_what_slurmctld_did_for_silence_is_ours_to_undo(state: str, how: str, registers: bool) -> None:
    assert (standing(node(state), "slurm"), has_to_register(node(state))) == (how, registers)


def test_who_is_behind_slurmctld_is_slurm_conf_s() -> None:
    ours = node("DOWN" + SILENCE.replace("slurm@", "root@"))
    assert (standing(ours, "root"), standing(ours, "slurm")) == ("silenced", "lacks")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            "DOWN" + FAN,
            f"DOWN: broken fan [root@2026-11-26T08:00:00]; resume it when that is settled: {RESUME}",
        ),
        ("DOWN", f"DOWN: no reason given; resume it when that is settled: {RESUME}"),
        ("DOWN*" + SILENCE, f"DOWN*: Not responding [slurm@2026-11-26T08:00:00]; {LOOK}, or {RESUME}"),
        ("IDLE+NOT_RESPONDING", f"IDLE+NOT_RESPONDING: no reason given; {LOOK}"),
        (
            "IDLE+INVAL" + BOOTED,
            "IDLE+INVAL: Node unexpectedly rebooted [slurm@2026-11-26T08:00:00]; it registered with less than its line"
            " in slurm.conf says: mend it, then restart slurmd there",
        ),
    ],
)
def test_what_is_missing_is_one_line_with_who_and_when(state: str, words: str) -> None:
    assert missing(node(state), "slurm") == f"hal01 is {words}"
