"""Each state that Slurm has for a node: whether it takes jobs, answers, and how many have to stay."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_slurm_nodes import read_jobs, read_node, too_few


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
    assert too_few(nodes, ["hal01", "hal04", "hal99"], keep) == ("" if may else said)
