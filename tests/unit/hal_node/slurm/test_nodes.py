"""What slurmctld says of nodes, and when it may lose one more.

Lines as `scontrol --oneliner show node` writes them, written by hand after 22.05 and 20.02.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.drains import too_few
from ansible.module_utils.hal_node.slurm.nodes import read_jobs, read_nodes

LINE = (
    "NodeName={name} Arch=x86_64 CoresPerSocket=20  CPUAlloc=0 CPUTot=160 CPULoad=0.50 AvailableFeatures=(null) "
    "NodeAddr=10.65.7.101 NodeHostName={name} Version=22.05.8 RealMemory=240000 State={state} ThreadsPerCore=4 "
    "BootTime=2026-11-21T00:50:06 SlurmdStartTime=2026-11-21T08:01:02 LastBusyTime=2026-11-21T08:01:02{more}"
)


def nodes(*states: str, more: str = "") -> dict[str, dict[str, Any]]:
    text = "\n".join(
        LINE.format(name=f"hal{number:02d}", state=state, more=more) for number, state in enumerate(states, 1)
    )
    found: dict[str, dict[str, Any]] = read_nodes(text)
    return found


@pytest.mark.parametrize(
    ("state", "usable", "drained", "down", "answers"),
    [
        ("IDLE", True, False, False, True),
        ("MIXED", True, False, False, True),
        ("ALLOCATED+PLANNED", True, False, False, True),
        ("IDLE+DRAIN", False, True, False, True),
        ("MIXED+DRAIN", False, True, False, True),
        ("DOWN+DRAIN", False, True, True, True),
        ("DOWN*", False, False, True, False),
        ("IDLE*+DRAIN", False, True, False, False),
        ("IDLE+NOT_RESPONDING", False, False, False, False),
        ("DOWN+NOT_RESPONDING", False, False, True, False),
        ("UNKNOWN", False, False, False, False),
        ("IDLE+REBOOT_ISSUED", False, False, False, False),
    ],
)
def test_what_a_state_means(state: str, usable: bool, drained: bool, down: bool, answers: bool) -> None:
    node = nodes(state)["hal01"]
    assert (node["usable"], node["drained"], node["down"], node["answers"]) == (usable, drained, down, answers)
    assert (node["state"], node["slurmd_start"]) == (state, "2026-11-21T08:01:02")


def test_who_drained_it_and_why() -> None:
    node = nodes("IDLE+DRAIN", more=" Reason=hal-reboot: new kernel [see 42] [root@2026-11-21T08:00:00]")["hal01"]
    assert (node["reason"], node["by"]) == ("hal-reboot: new kernel [see 42]", "root")
    assert nodes("IDLE")["hal01"]["reason"] == ""


@pytest.mark.parametrize(
    ("state", "reason", "reboot", "usable"),
    [
        ("IDLE", "", "", True),
        ("MIXED+DRAIN+REBOOT_REQUESTED", "", "asked", False),
        ("MIXED+REBOOT_REQUESTED", "", "asked", False),
        ("DOWN+DRAIN+REBOOT_ISSUED", "Reboot ASAP : reboot issued", "issued", False),
        # 20.02 has one flag, and says in the reason that the node was told to.
        ("ALLOCATED@+DRAIN", "Reboot ASAP", "asked", False),
        ("REBOOT+DRAIN", "Reboot ASAP", "asked", False),
        ("REBOOT*+DRAIN", "Reboot ASAP : reboot issued", "issued", False),
        ("DOWN+DRAIN", "Reboot ASAP : reboot issued", "", False),
    ],
)
def test_a_reboot_that_was_asked_for_or_issued(state: str, reason: str, reboot: str, usable: bool) -> None:
    more = f" Reason={reason} [root@2026-11-21T08:00:00]" if reason else ""
    node = nodes(state, more=more)["hal01"]
    assert (node["reboot"], node["usable"]) == (reboot, usable)


def test_partitions_and_the_state_after_a_reboot() -> None:
    node = nodes("DOWN+DRAIN+REBOOT_ISSUED", more=" NextState=RESUME Partitions=gpu,cpu,debug ")["hal01"]
    assert (node["partitions"], node["next_state"]) == (["gpu", "cpu", "debug"], "RESUME")
    plain = nodes("IDLE")["hal01"]
    assert (plain["partitions"], plain["next_state"]) == ([], "")


@pytest.mark.parametrize(
    ("state", "maintained"), [("IDLE", False), ("IDLE+MAINTENANCE+RESERVED", True), ("MAINT", True), ("MIXED$", True)]
)
def test_a_node_in_a_reservation_for_maintenance(state: str, maintained: bool) -> None:
    assert nodes(state)["hal01"]["maintained"] is maintained


def test_what_shows_no_node_is_none() -> None:
    assert read_nodes("Node hal77 not found\n\n") == {}


def test_jobs_are_read() -> None:
    assert read_jobs("12|alice|2026-11-22T10:00:00\n13|bob|Unknown\n\n") == [
        {"id": "12", "user": "alice", "end": "2026-11-22T10:00:00"},
        {"id": "13", "user": "bob", "end": "Unknown"},
    ]


def test_so_many_nodes_have_to_stay() -> None:
    four = nodes("IDLE", "MIXED", "IDLE+DRAIN", "DOWN*")
    assert too_few(["hal01"], four, {}, site=1) == ""
    assert too_few(["hal01"], four, {}, site=2) == (
        "1 nodes would be left for jobs, at least 2 have to stay; 2 of 4 are away already"
    )
    assert too_few(["hal03", "hal04"], four, {}, site=4) == "", "what is away already is not taken away"
