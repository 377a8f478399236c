"""A day on a machine with a load of 60: checks come late or not at all, and no healthy node is drained."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testinfra.host import Host
from testing.waiting import wait_for

Node = Callable[[str], Host]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[1]))
PODMAN = SCENARIO.parents[1] / "molecule/virtual_hal/podman"
NODES = ("hal01", "hal02")
PERIOD_US, QUOTA_US = 100_000, 1_600  # of one processor, for all of a node: as much as one of 60 that want it gets
DOUBTS = 3
HOURS = 7200  # for what hangs: a starved node does in an hour what it does in two minutes


def podman(*arguments: str) -> str:
    """Output of podman: what the machine below a node does to it."""
    return subprocess.run([str(PODMAN), *arguments], check=True, capture_output=True, text=True).stdout


def doubts(name: str) -> int:
    """How often since its boot a check of the node had no answer: of one question, or (in a row) of all of them."""
    known = json.loads(podman("exec", f"node_health-{name}", "cat", "/run/hal-node-health-doubts.json"))
    said = podman("exec", f"node_health-{name}", "journalctl", "--boot", "--identifier=hal-node-health", "--output=cat")
    return int(known["late"]) + said.count("did not finish within")


def drained(node: Node) -> str:
    """What sinfo says of nodes that are drained, and of reasons of the health check."""
    said = str(node("hal-login").check_output("sinfo --noheader --Node --partition=gpu --format='%N %T %E'"))
    return "\n".join(line for line in said.splitlines() if "drain" in line or "health:" in line)


@pytest.fixture
def starved(node: Node) -> Iterator[None]:
    """Healthy nodes that hardly get a processor."""
    for name in NODES:  # a test may have booted one, and a tmpfs does not survive
        mounted = "mountpoint -q /home || mount -t tmpfs tmpfs /home"
        podman("exec", "--privileged", f"node_health-{name}", "sh", "-c", mounted)
        node("hal-login").run(f"scontrol update NodeName={name} State=RESUME")
    wait_for("nodes before", lambda: drained(node), lambda lines: lines == "", 600)
    for name in NODES:
        podman("update", f"--cpu-period={PERIOD_US}", f"--cpu-quota={QUOTA_US}", f"node_health-{name}")
    try:
        yield
    finally:
        for name in NODES:
            podman("update", f"--cpu-period={PERIOD_US}", f"--cpu-quota={1000 * PERIOD_US}", f"node_health-{name}")


@pytest.mark.slow
def test_nodes_that_starve_are_not_drained(node: Node, starved: None) -> None:
    """slurmd runs the check, every 30 s."""
    before = [doubts(name) for name in NODES]
    wait_for(
        f"{DOUBTS} checks without an answer of each node",
        lambda: [doubts(name) - then for name, then in zip(NODES, before, strict=True)],
        lambda found: min(found) >= DOUBTS or drained(node) != "",
        HOURS,
    )
    assert drained(node) == ""


@pytest.mark.slow
def test_afterwards_a_fault_drains(node: Node) -> None:
    """The nodes have their processors again."""
    node("hal01").check_output("virtual-gpu lose 2")
    try:
        said = wait_for("hal01", lambda: drained(node), lambda lines: "health:" in lines, 600)
        assert said.startswith("hal01 ")
        assert " health: GPU lost (" in said
    finally:
        node("hal01").check_output("virtual-gpu repair")
        node("hal-login").check_output("scontrol update NodeName=hal01 State=RESUME")
