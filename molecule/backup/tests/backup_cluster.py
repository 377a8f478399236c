"""What the tests of this scenario share: the job, the store, jobs of Slurm, a restore, and a node that is made anew."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from running.ansible_run import PROJECT, Run, of_scenario
from testinfra.backend.base import CommandResult
from testinfra.host import Host

Node = Callable[[str], Host]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[1]))
STORE = "/srv/hal-backup"
JOB = "python3 -B /usr/libexec/hal-backup/backup_job.py /etc/hal-backup/job.json"
KEEP = "runuser -u hal-backup -- python3 -B /usr/libexec/hal-backup/backup_store.py /etc/hal-backup/store.json"
CODE = re.compile(r"restore_confirm=([0-9a-f]{8})")


def play(path: str | Path, *arguments: str, **variables: Any) -> Run:
    """Run a playbook on the scenario's nodes."""
    return of_scenario(SCENARIO).playbook(path, *arguments, **variables)


def restore(node: str, *arguments: str, **variables: Any) -> Run:
    """Run playbooks/restore.yml on one node."""
    return play(PROJECT / "playbooks/restore.yml", *arguments, restore_node=node, **variables)


def code_of(run: Run) -> str:
    """Return the code that a first call printed."""
    found = CODE.search(run.words)
    assert found, run.explain()
    return found.group(1)


def store(server: Host) -> dict[str, Any]:
    """Return what the store says of itself."""
    state: dict[str, Any] = json.loads(server.check_output(f"{KEEP} status"))
    return state


def newest(server: Host, node: str) -> str:
    """Return the name of a node's newest archive."""
    return str(store(server)["nodes"][node]["newest"])


def save(host: Host) -> CommandResult:
    """Do what the timer does; systemd would refuse the sixth start within ten seconds."""
    return host.run("systemctl reset-failed hal-backup.service; systemctl start hal-backup.service")


def status(host: Host) -> dict[str, Any]:
    """Return what the node says of its backup."""
    state: dict[str, Any] = json.loads(host.check_output(f"{JOB} status"))
    return state


def submit(login: Host, options: str, seconds: int = 600) -> str:
    """Submit a job of alice's; return its number."""
    done = login.run(
        f"cd /tmp && runuser -u alice -- sbatch --parsable --output=/dev/null {options} --wrap 'sleep {seconds}'"
    )
    assert done.rc == 0, done.stderr
    return str(done.stdout.strip())


def job(login: Host, number: str) -> dict[str, str]:
    """Return a job as slurmctld has it; nothing when it does not know it."""
    words = login.run(f"scontrol --oneliner show job {number}").stdout.split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def accounted(login: Host, *fields: str) -> list[str]:
    """Return all jobs that accounting has, sorted."""
    rows = login.check_output(f"sacct --allusers -X -n -P --starttime=2020-01-01 -o {','.join(fields)}")
    return sorted(rows.splitlines())


def made_anew(name: str) -> None:
    """Destroy a node's container and make an empty one of the same name."""
    subprocess.run(
        [str(PROJECT / "molecule/virtual_hal/podman"), "rm", "--force", "--time=0", f"{SCENARIO.name}-{name}"],
        check=True,
        capture_output=True,
    )
    made = play(PROJECT / "molecule/virtual_hal/create.yml")
    assert made.status == 0, made.explain()
