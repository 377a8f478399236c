"""A node that is not well is drained, and sinfo -R says why. Faults are planted on hal01, and hal02 is left alone."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_run import of_scenario
from promises import Rollout
from testinfra.host import Host
from waiting import wait_for

Node = Callable[[str], Host]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[1]))
PROJECT = SCENARIO.parents[1]
CHECK = "/usr/libexec/hal-node-health/check"


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


@pytest.fixture
def hal01(node: Node) -> Iterator[Host]:
    """A node that takes jobs before and after a test."""
    host = node("hal01")
    yield host
    host.run(f"{CHECK}; scontrol update NodeName=hal01 State=RESUME")
    wait_for("hal01 after the test", lambda: state(node), lambda now: now == "idle")


def podman(*arguments: str) -> str:
    """Output of podman: what the machine below a node does to it."""
    argv = [str(PROJECT / "molecule/shared/podman"), *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def state(node: Node, name: str = "hal01") -> str:
    """What sinfo calls a node, without the mark of one that has not answered yet."""
    sinfo = f"sinfo --noheader --Node --nodes={name} --partition=gpu --format=%t"
    return str(node("hal-login").check_output(sinfo)).rstrip("*")


def reason(node: Node, name: str = "hal01") -> str:
    """The whole reason of a node, as sinfo -R has it."""
    sinfo = f"sinfo --noheader --list-reasons --nodes={name} --partition=gpu --format=%E"
    return str(node("hal-login").check_output(sinfo))


def check(host: Host) -> str:
    """Run what Slurm runs."""
    return str(host.run(CHECK).stdout)


@contextmanager
def planted(host: Host, plant: str, undo: str) -> Iterator[None]:
    """A fault, and its end."""
    host.check_output(plant)
    try:
        yield
    finally:
        host.check_output(undo)


# ---------------------------------------------------------------- what was rolled out
@pytest.mark.parametrize("path", [CHECK, "/usr/sbin/hal-node-health", "/usr/libexec/hal-node-health/job-begin"])
def test_what_slurm_starts_is_root_s_alone(node: Node, path: str) -> None:
    program = node("hal01").file(path)
    assert (program.user, program.group, program.mode) == ("root", "root", 0o755)
    assert program.content_string.splitlines()[-1].startswith("exec /usr/")


def test_slurm_works_with_the_programs(node: Node) -> None:
    running = node("hal-login").check_output("scontrol show config")
    assert f"HealthCheckProgram      = {CHECK}\n" in running
    assert "Prolog                  = /usr/libexec/hal-node-health/job-begin\n" in running
    assert "Epilog                  = /usr/libexec/hal-node-health/job-end\n" in running


def test_every_check_holds_on_a_node_that_is_well(node: Node) -> None:
    seen = node("hal02").run("hal-node-health")
    assert seen.rc == 0, seen.stdout
    assert "ok   time         chronyd runs" in seen.stdout
    assert state(node, "hal02") == "idle"


def test_the_node_is_checked_at_boot(node: Node) -> None:
    unit = node("hal01").service("hal-node-health")
    assert unit.is_enabled
    before = node("hal01").check_output("systemctl show --property=Before hal-node-health")
    assert "slurmd.service" in before.partition("=")[2].split()


# ---------------------------------------------------------------- faults
def test_slurm_itself_drains_a_node_whose_disk_is_full_and_gives_it_back(node: Node, hal01: Host) -> None:
    """Nobody runs the check here: slurmd does, every 30 s."""
    with planted(hal01, "dd if=/dev/zero of=/dev/shm/full bs=1M count=50 2>&1", "rm /dev/shm/full"):
        wait_for("hal01", lambda: state(node), lambda now: now == "drain", 60)
        assert reason(node) == "health: disk full: /dev/shm (space is left (/dev/shm): is 13, declared at least 32)"
        assert state(node, "hal02") == "idle"
    wait_for("hal01", lambda: state(node), lambda now: now == "idle", 60)


def test_a_missing_mount_drains(node: Node, hal01: Host) -> None:
    podman("exec", "--privileged", "node_health-hal01", "umount", "/home")
    try:
        assert "drained: health: not mounted: /home (" in check(hal01)
        assert reason(node).startswith(
            "health: not mounted: /home (file system is mounted (home): is no, declared yes)"
        )
    finally:
        podman("exec", "--privileged", "node_health-hal01", "mount", "-t", "tmpfs", "tmpfs", "/home")


def test_a_wrong_clock_drains(node: Node, hal01: Host) -> None:
    """chronyd is told that it is noon, or midnight. It may not set the clock here, and knows how far off it is.

    Its first updates after a start would be steps, of a clock that it only imagines: not with this threshold.
    """
    other = "0:00" if time.gmtime().tm_hour in range(6, 18) else "12:00"
    tell = f"chronyc makestep 1000000 1 && chronyc manual on && chronyc settime {other} && sleep 1"
    with planted(hal01, tell, "systemctl restart chronyd && chronyc -n waitsync 15 0.1 0 1"):
        check(hal01)
        assert reason(node).startswith("health: wrong clock (clock is close to its server: is ")


def test_a_dead_daemon_drains(node: Node, hal01: Host) -> None:
    with planted(
        hal01, "systemctl kill --signal=KILL chronyd", "systemctl restart chronyd && chronyc -n waitsync 15 0.1 0 1"
    ):
        check(hal01)
        assert reason(node).startswith("health: chronyd is dead")
        assert state(node, "hal02") == "idle"


# ---------------------------------------------------------------- administrators
def test_what_an_administrator_drained_stays_drained(node: Node, hal01: Host) -> None:
    node("hal-login").check_output("scontrol update NodeName=hal01 State=DRAIN Reason='new DIMM on Monday'")
    assert check(hal01) == ""
    with planted(hal01, "dd if=/dev/zero of=/dev/shm/full bs=1M count=50 2>&1", "rm /dev/shm/full"):
        assert "root has taken it out: new DIMM on Monday" in check(hal01)
    check(hal01)
    assert (state(node), reason(node)) == ("drain", "new DIMM on Monday")


def test_the_playbook_gives_a_node_back_only_when_it_is_well(node: Node, hal01: Host) -> None:
    resume = PROJECT / "playbooks/resume.yml"
    with planted(hal01, "dd if=/dev/zero of=/dev/shm/full bs=1M count=50 2>&1", "rm /dev/shm/full"):
        node("hal-login").check_output("scontrol update NodeName=hal01 State=DRAIN Reason='by hand'")
        refused = of_scenario(SCENARIO).playbook(resume, resume_nodes="hal01")
        assert refused.status != 0
        assert "hal01 is not well and was not given back: disk full: /dev/shm (space is left" in refused.words
        assert state(node) == "drain"
    given = of_scenario(SCENARIO).playbook(resume, resume_nodes="hal01")
    assert given.status == 0, given.explain()
    assert "hal01: takes jobs again; it was away for: by hand" in given.words
    assert state(node) == "idle"


def test_a_drain_of_the_check_is_a_finding(node: Node, hal01: Host, rollout: Rollout) -> None:
    name = "no drain of the health check waits for an administrator"
    assert rollout.promises("node_health", "hal01")[name]["status"] == "pass"
    with planted(hal01, "dd if=/dev/zero of=/dev/shm/full bs=1M count=50 2>&1", "rm /dev/shm/full"):
        check(hal01)
        assert rollout.promises("node_health", "hal01")[name]["status"] == "fail"
    check(hal01)
    assert rollout.promises("node_health", "hal01")[name]["status"] == "pass"


# ---------------------------------------------------------------- boot, last: what stands for the file system goes away
def test_a_node_that_is_not_well_after_a_boot_is_drained_before_slurmd_runs(node: Node) -> None:
    podman("restart", "--time", "0", "node_health-hal02")  # a tmpfs does not survive
    wait_for(
        "reason of hal02", lambda: reason(node, "hal02"), lambda why: why.startswith("health: not mounted: /home"), 60
    )
    ended, began = (stamp("hal-node-health", "ExecMainExit"), stamp("slurmd", "ExecMainStart"))
    assert 0 < ended <= began, "slurmd ran before the node was checked"
    assert state(node) == "idle", "the other node was touched"


def stamp(unit: str, event: str) -> int:
    """When a unit of hal02 did this, in microseconds of its machine. Not by SSH: that went away with the node."""
    show = ("systemctl", "show", f"--property={event}TimestampMonotonic", unit)
    return int(podman("exec", "node_health-hal02", *show).partition("=")[2])
