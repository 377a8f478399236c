"""playbooks/reboot.yml on a running cluster: it waits for jobs, gives back what it took, leaves alone what others took.

A container that reboots stops; what starts it again here stands for the machine's own firmware.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from running.ansible_run import Run
from testinfra.host import Host
from testing.slurm_cluster import PROJECT, SCENARIO, job_state, playbook
from testing.waiting import wait_for

Node = Callable[[str], Host]
PODMAN = str(PROJECT / "molecule/virtual_hal/podman")
CHECKED = ["munge", "slurm"]  # what this scenario rolls out


def reboot(nodes: str, *arguments: str, **variables: Any) -> Run:
    named = {"reboot_nodes": nodes, "reboot_roles": CHECKED, "reboot_poll_seconds": 2, "reboot_wait_seconds": 60}
    return playbook(PROJECT / "playbooks/reboot.yml", *arguments, **{**named, **variables})


def state(login: Host, name: str) -> str:
    return str(login.check_output(f"scontrol --oneliner show node {name} | grep -o ' State=[^ ]*'").strip()[6:])


@pytest.fixture
def firmware() -> Iterator[None]:
    """Start containers that reboot."""
    over = threading.Event()

    def watch() -> None:
        listing = [
            PODMAN,
            "ps",
            "--all",
            "--quiet",
            f"--filter=label=hal.virtual={SCENARIO.name}",
            "--filter=status=exited",
        ]
        while not over.is_set():
            stopped = subprocess.run(listing, capture_output=True, text=True, check=False).stdout.split()
            if stopped:
                subprocess.run([PODMAN, "start", *stopped], capture_output=True, check=False)
            time.sleep(0.5)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(watch)
        yield
        over.set()


def test_the_plan_is_shown_and_nothing_is_done(login: Host, submit: Callable[..., str]) -> None:
    job = submit("--nodelist=hal01 --partition=cpu")
    done = reboot("hal[01-02]", "--check")
    assert done.status == 0, done.explain()
    assert "hal01: drain, reboot after 1 jobs, give back (job " + job in done.words
    assert state(login, "hal01") == "MIXED"
    assert state(login, "hal02") == "IDLE"


@pytest.mark.slow
def test_it_waits_for_a_job_reboots_and_gives_the_node_back(
    node: Node, login: Host, submit: Callable[..., str], firmware: None
) -> None:
    node("hal01").check_output("touch /run/before-the-reboot")
    job = submit("--nodelist=hal01 --partition=cpu")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(reboot, "hal01")
        wait_for("drain", lambda: state(login, "hal01"), lambda text: "DRAIN" in text, 60)
        time.sleep(5)
        assert job_state(login, job) == "RUNNING"  # nobody hurt it
        assert node("hal01").file("/run/before-the-reboot").exists
        assert "hal-reboot: playbooks/reboot.yml" in login.check_output("scontrol show node hal01")
        login.check_output(f"scancel {job}")
        done = running.result()
    assert done.status == 0, done.explain()
    assert "hal01: rebooted, takes jobs again" in done.words
    assert not node("hal01").file("/run/before-the-reboot").exists
    assert state(login, "hal01") == "IDLE"


@pytest.mark.slow
def test_a_node_that_an_administrator_drained_is_rebooted_and_stays_drained(
    node: Node, login: Host, firmware: None
) -> None:
    login.check_output("scontrol update NodeName=hal02 State=DRAIN Reason='broken fan'")
    node("hal02").check_output("touch /run/before-the-reboot")
    try:
        done = reboot("hal02")
        assert done.status == 0, done.explain()
        assert "hal02: rebooted, stays drained: broken fan" in done.words
        assert not node("hal02").file("/run/before-the-reboot").exists
        assert "DRAIN" in state(login, "hal02")
        assert "Reason=broken fan [root@" in login.check_output("scontrol --oneliner show node hal02")
    finally:
        login.check_output("scontrol update NodeName=hal02 State=RESUME")


def test_a_node_whose_jobs_do_not_end_is_not_rebooted_and_the_next_run_continues(
    node: Node, login: Host, submit: Callable[..., str], firmware: None
) -> None:
    job = submit("--nodelist=hal01 --partition=cpu")
    node("hal01").check_output("touch /run/before-the-reboot")
    done = reboot("hal01", reboot_wait_seconds=4)
    assert done.status != 0
    assert f"hal01 was not rebooted: waited 0.1 min for job {job} of " in done.words
    assert "It stays drained" in done.words
    assert node("hal01").file("/run/before-the-reboot").exists
    assert "DRAIN" in state(login, "hal01")
    login.check_output(f"scancel {job}")
    # Broken, so that it may not be given back: the promise is seen to be asked.
    node("hal01").check_output("chmod 666 /etc/slurm/slurm.conf")
    done = reboot("hal01")
    assert done.status != 0
    assert "slurm.conf cannot be changed by users" in done.words
    assert "DRAIN" in state(login, "hal01")
    node("hal01").check_output("chmod 644 /etc/slurm/slurm.conf")
    done = reboot("hal01")
    assert done.status == 0, done.explain()
    assert "drained by an earlier run" in done.words
    assert state(login, "hal01") == "IDLE"


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("all", "not permitted: hal-login,hal-mgmt1"),
        ("hal[01-02] or hal-login or hal-mgmt1", "not permitted: hal-login,hal-mgmt1"),
        ("hal-login", "not permitted: hal-login; reboot_roles_ok has to name their role. Nothing was changed."),
        ("", "an empty expression"),
        ("hal77", 'unknown name "hal77"'),
        ("gpu and login", "reboot_nodes names no node"),
    ],
)
def test_what_nobody_can_have_meant_is_refused(login: Host, nodes: str, message: str) -> None:
    done = reboot(nodes)
    assert done.status != 0
    assert message in done.words
    assert {state(login, name) for name in ("hal01", "hal02")} == {"IDLE"}


def test_so_many_nodes_stay_for_jobs(login: Host) -> None:
    done = reboot("hal[01-02]", reboot_max_parallel=2)
    assert done.status != 0
    assert "not drained: 0 nodes would be left for jobs, at least 1 have to stay; 0 of 2 are away already" in done.words
    assert {state(login, name) for name in ("hal01", "hal02")} == {"IDLE"}
