"""What the tests of the scenario slurm share: commands as a user, jobs, a further rollout over the running cluster."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from running import strategy
from running.ansible_run import Run, of_scenario
from testinfra.backend.base import CommandResult
from testinfra.host import Host

Node = Callable[[str], Host]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[2] / "slurm"))
PROJECT = SCENARIO.parents[1]


def as_user(host: Host, user: str, command: str) -> CommandResult:
    """Run a command as a user would after a login, from a directory that every node has."""
    return host.run(f"cd /tmp && runuser -u {user} -- {command}")


def job_state(host: Host, job: str) -> str:
    """Return a job's state as slurmctld has it."""
    return str(host.run(f"scontrol --oneliner show job {job} | grep -o 'JobState=[A-Z_]*'").stdout.strip()[9:])


def pid(host: Host, unit: str) -> str:
    """Return the process id of a unit."""
    return str(host.check_output("systemctl show --property MainPID %s", unit))


def setting(host: Host, name: str) -> str:
    """Return what the running slurmctld works with."""
    return str(host.check_output(f"scontrol show config | sed -n 's/^{name} *= *//p'"))


def playbook(path: Path, *arguments: str, source: str = "hal.yml", mitogen: bool = False, **variables: Any) -> Run:
    """Run a playbook against the cluster, with variables over those of the scenario."""
    return of_scenario(SCENARIO, source).playbook(path, *arguments, mitogen=mitogen, **variables)


def roll_out(*arguments: str, source: str = "hal.yml", **variables: Any) -> Run:
    """Roll the role out again."""
    play = SCENARIO / "tests" / "slurm.yml"
    return playbook(play, *arguments, source=source, mitogen=strategy.chosen(), **variables)
