"""Fixtures of the scenario slurm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from shlex import quote

import pytest
from testinfra.host import Host
from testing.slurm_cluster import Node, as_user, job_state
from testing.waiting import wait_for


@pytest.fixture
def login(node: Node) -> Host:
    """The login node, which has slurmctld and where users submit."""
    return node("hal-login")


@pytest.fixture
def submit(login: Host) -> Iterator[Callable[..., str]]:
    """Return a function: options of sbatch -> the id of alice's job, once it runs. All are cancelled at the end."""
    jobs: list[str] = []

    def start(options: str = "") -> str:
        done = as_user(login, "alice", f"sbatch --parsable --output=/dev/null {options} --wrap 'sleep 600'")
        assert done.rc == 0, done.stderr
        jobs.append(done.stdout.strip())
        wait_for("job", lambda: job_state(login, jobs[-1]), lambda state: bool(state == "RUNNING"))
        return jobs[-1]

    yield start
    for job in jobs:
        login.run(f"scancel {job}")
    wait_for("jobs at the end", lambda: login.check_output("squeue --noheader --all"), lambda text: not text)


@pytest.fixture
def squeue_that_says(login: Host) -> Iterator[Callable[[str, str], None]]:
    """Return a function that puts a squeue before the real one on slurmctld's node: what it prints first, and later."""
    path, memory = "/usr/local/bin/squeue", "/run/squeue-was-asked"

    def plant(first: str, later: str) -> None:
        lines = ["#!/bin/sh", f"if [ -e {memory} ]; then echo {later}; else touch {memory}; echo {first}; fi"]
        login.check_output(f"rm -f {memory}; printf '%s\\n' {' '.join(map(quote, lines))} >{path}; chmod 755 {path}")

    yield plant
    login.check_output(f"rm -f {path} {memory}")
