"""What the tests of this scenario share: commands as a user, jobs, and a further rollout over the running cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testinfra.backend.base import CommandResult
from testinfra.host import Host

Node = Callable[[str], Host]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[1]))
PROJECT = SCENARIO.parents[1]


def wait_for(what: str, read: Callable[[], Any], wanted: Callable[[Any], bool], seconds: float = 30) -> Any:
    """Return what is read once it is as wanted; fail with the last value when it never is."""
    end = time.monotonic() + seconds
    while True:
        value = read()
        if wanted(value):
            return value
        assert time.monotonic() < end, f"{what}: after {seconds:.0f} s still {value!r}"
        time.sleep(0.5)


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


@dataclass(frozen=True)
class Run:
    """A finished ansible-playbook."""

    status: int
    output: str

    def changed(self, host: str) -> int:
        """Return how many tasks changed something on a host."""
        line = next(line for line in self.output.splitlines() if line.startswith(f"{host} ") and "changed=" in line)
        return int(line.split("changed=")[1].split()[0])


def playbook(path: Path, *arguments: str, source: str = "hal.yml", variables: Mapping[str, Any] | None = None) -> Run:
    """Run a playbook against the cluster, with variables over those of the scenario."""
    command = [str(Path(sys.executable).with_name("ansible-playbook"))]
    for inventory in ("inventory/hal/hal.yml", "inventory/virtual/hal.yml", f"molecule/{SCENARIO.name}/{source}"):
        command += ["-i", str(PROJECT / inventory)]
    command += ["-e", json.dumps({"virtual_name": SCENARIO.name, **(variables or {})}), str(path), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_CONFIG": str(PROJECT / "ansible.cfg"), "ANSIBLE_FORCE_COLOR": "0"}
    done = subprocess.run(command, cwd=PROJECT, env=environment, text=True, capture_output=True, check=False)
    return Run(done.returncode, done.stdout + done.stderr)


def roll_out(*arguments: str, source: str = "hal.yml", **variables: Any) -> Run:
    """Roll the role out again."""
    return playbook(SCENARIO / "tests" / "slurm.yml", *arguments, source=source, variables=variables)
