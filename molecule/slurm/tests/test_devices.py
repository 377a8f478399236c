"""A job opens the GPUs that it was given and no other: production's ConstrainDevices, where a container can enforce it.

The scenario's own slurmd cannot: it has no CAP_SYS_ADMIN, and its cgroups are read-only. So hal02 gets another one for
a moment, started from outside with all capabilities, with the rolled-out configuration and production's two settings.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from testinfra.host import Host
from testing.slurm_cluster import Node, as_user
from testing.waiting import wait_for

PODMAN = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[1])).parent / "virtual_hal/podman"
CONTAINER = "slurm-hal02"
DEVICES = "/sys/fs/cgroup/devices"
CONFINED = "/run/confined"
PREPARE = f"""
set -e
mount -o remount,bind,rw {DEVICES}
mkdir -p {CONFINED}
cp /etc/slurm/*.conf {CONFINED}
sed -i 's#^TaskPlugin=.*#TaskPlugin=task/cgroup#' {CONFINED}/slurm.conf
printf 'CgroupPlugin=cgroup/v1\\nCgroupMountpoint=/sys/fs/cgroup\\nConstrainDevices=yes\\n' >{CONFINED}/cgroup.conf
systemctl stop slurmd
"""
RESTORE = f"""
pkill -x slurmd
while pgrep -x slurmd; do sleep 0.1; done
find {DEVICES}/slurm_hal02 -depth -type d -exec rmdir {{}} +
mount -o remount,bind,ro {DEVICES}
rm -r {CONFINED}
systemctl start slurmd
"""


def privileged(*argv: str, check: bool = True, detach: bool = False) -> subprocess.CompletedProcess[str]:
    """Run a program in hal02's container with every capability."""
    option = ["--detach"] if detach else []
    command = [str(PODMAN), "exec", "--privileged", *option, CONTAINER, *argv]
    return subprocess.run(command, check=check, capture_output=True, text=True)


@pytest.fixture(scope="module")
def confining(node: Node) -> Iterator[Host]:
    """The login node, while hal02 confines jobs to their devices."""
    if not node("hal02").file(f"{DEVICES}/devices.list").exists:
        pytest.skip(
            "not checked here: this machine has no devices controller of cgroup v1, and Slurm's v2 wants systemd's"
        )
    login = node("hal-login")
    wait_for("jobs", lambda: login.check_output("squeue --noheader --nodelist=hal02"), lambda text: not text)
    try:
        prepared = privileged("sh", "-c", PREPARE, check=False)
        if prepared.returncode and "denied" in prepared.stderr + prepared.stdout:
            pytest.skip(f"not checked here: {prepared.stderr.strip()}")
        assert prepared.returncode == 0, prepared.stderr
        privileged("slurmd", "-D", "-f", f"{CONFINED}/slurm.conf", detach=True)
        wait_for(
            "slurmd",
            lambda: login.run("scontrol ping").rc + privileged("pgrep", "-x", "slurmd", check=False).returncode,
            lambda rc: rc == 0,
        )
        yield login
    finally:
        privileged("sh", "-c", RESTORE, check=False)


def opened(login: Host, gpus: int) -> tuple[str, list[str]]:
    """Return CUDA_VISIBLE_DEVICES of a job with so many GPUs on hal02, and what opening each device said.

    Behind the devices there is no driver: what may be opened is "No such device or address".
    """
    each = 'for i in 0 1 2 3; do head -c1 /dev/nvidia$i 2>&1 | sed "s/.*: //"; done'
    done = as_user(
        login, "alice", f"srun --nodelist=hal02 --gres=gpu:v100:{gpus} sh -c 'echo $CUDA_VISIBLE_DEVICES; {each}'"
    )
    assert done.rc == 0, done.stderr
    first, *rest = done.stdout.splitlines()
    return first, rest


MAY, MAY_NOT = "No such device or address", "Operation not permitted"


def test_without_the_constraint_a_job_opens_all(login: Host) -> None:
    """What the virtual HAL's own setting leaves open, and why production has the constraint."""
    assert opened(login, 1) == ("0", [MAY] * 4)


@pytest.mark.parametrize("gpus", [1, 3])
def test_a_job_opens_its_own_gpus_and_no_other(confining: Host, gpus: int) -> None:
    given = ",".join(map(str, range(gpus)))
    assert opened(confining, gpus) == (given, [MAY] * gpus + [MAY_NOT] * (4 - gpus))
