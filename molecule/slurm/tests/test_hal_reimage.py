"""hal_cluster.reimage's commands at a running Slurm: drains, test jobs, and a drain that outlives a reboot."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

import pytest
from testinfra.host import Host
from testing.slurm_cluster import Node, as_user, job_state
from testing.waiting import wait_for

from hal_cluster.reimage.remote import Done
from hal_cluster.reimage.slurm import SlurmCommands, TestJob

REASON = "hal-reimage: new image"
MARKER = "/run/hal-node-reboot-ran"


def state(login: Host, name: str) -> str:
    return str(login.check_output(f"scontrol --oneliner show node {name} | grep -o ' State=[^ ]*'").strip()[6:])


def started(login: Host, name: str) -> str:
    """Return when the slurmd that registered last was started."""
    return str(login.check_output(f"scontrol --oneliner show node {name} | grep -o 'SlurmdStartTime=[^ ]*'"))


def reason(login: Host, name: str) -> str:
    return str(login.check_output(f"sinfo --noheader --nodes {name} --format %E | head -n 1"))


@pytest.fixture
def slurm(login: Host) -> Iterator[SlurmCommands]:
    """Return the commands, as the engine has them. At the end both nodes serve."""

    def run(argv: Sequence[str], stdin: bytes = b"", /) -> Done:
        done = login.run(shlex.join(argv))
        return Done(int(done.rc), str(done.stdout), str(done.stderr))

    command = "ls /dev/nvidia0 /dev/nvidia1 /dev/nvidia2 /dev/nvidia3 && test $CUDA_VISIBLE_DEVICES = 0,1,2,3"
    gres = dict.fromkeys(("hal01", "hal02"), "gpu:v100:4")
    commands = SlurmCommands(run, job=TestJob(command, "alice", gres, seconds=60))
    yield commands
    for name in gres:
        commands.end_proof(name, "")
    for name in ("hal01", "hal02"):
        if state(login, name) != "IDLE":
            login.run(f"scontrol update NodeName={name} State=RESUME")
    wait_for("nodes", lambda: {state(login, name) for name in ("hal01", "hal02")}, lambda found: found == {"IDLE"})


def test_one_node_is_drained_and_the_last_one_stays(slurm: SlurmCommands, login: Host) -> None:
    assert slurm.drain("hal01", REASON) == ""
    assert state(login, "hal01") == "IDLE+DRAIN"
    assert slurm.drain("hal02", REASON) == "gpu would have 0 nodes for jobs, at least 1 has to stay"
    assert slurm.reboot("hal02", REASON, "RESUME") == "gpu would have 0 nodes for jobs, at least 1 has to stay"
    assert state(login, "hal02") == "IDLE"
    seen = slurm.see("hal01")
    assert (seen.known, seen.drained, seen.ours, seen.usable, seen.reason, seen.by) == (
        *(True, True, True, False),
        *(REASON, "root"),
    )
    assert not slurm.see("hal77").known


def test_a_test_job_runs_with_all_gpus_and_nobody_else_comes(slurm: SlurmCommands, login: Host) -> None:
    slurm.drain("hal01", REASON)
    done = as_user(login, "alice", "sbatch --parsable --output=/dev/null --nodelist=hal01 --partition=cpu --wrap true")
    other = done.stdout.strip()
    job = slurm.prove("hal01")
    assert slurm.prove("hal01") == job
    ended = wait_for("test job", lambda: slurm.proven("hal01", job), lambda told: told is not None, 60)
    assert ended == ""
    assert job_state(login, other) == "PENDING"
    # slurmctld says so from its next look at reservations on; it keeps others away from the beginning.
    wait_for("its reservation", lambda: state(login, "hal01"), lambda now: "MAINT" in now, 60)
    slurm.end_proof("hal01", "")
    assert login.run("scontrol show reservation hal-reimage-hal01").rc != 0
    wait_for("alice's job", lambda: job_state(login, other), lambda now: now == "COMPLETED", 60)


def test_a_test_job_that_fails_leaves_a_drained_node(slurm: SlurmCommands, login: Host, node: Node) -> None:
    slurm.drain("hal01", REASON)
    node("hal01").check_output("mv /dev/nvidia3 /dev/away")
    try:
        job = slurm.prove("hal01")
        ended = wait_for("test job", lambda: slurm.proven("hal01", job), lambda told: told is not None, 60)
    finally:
        node("hal01").check_output("mv /dev/away /dev/nvidia3")
    assert ended == f"test job {job} ended as FAILED, exit status 2:0, NonZeroExitCode"  # ls
    slurm.end_proof("hal01", "hal-reimage: its test job failed")
    assert state(login, "hal01") == "IDLE+DRAIN"
    assert reason(login, "hal01") == "hal-reimage: its test job failed"


@pytest.fixture
def quiet_reboot(node: Node) -> Iterator[Callable[[], None]]:
    """Have hal01's RebootProgram write a file; return a function that has its slurmd register as after a boot."""
    host = node("hal01")
    host.check_output(f"cp -p /usr/sbin/hal-node-reboot /run/kept; printf '#!/bin/sh\\ntouch {MARKER}\\n' >/run/new")
    host.check_output("chmod 755 /run/new && mv /run/new /usr/sbin/hal-node-reboot")
    drop_in = "/run/systemd/system/slurmd.service.d/boot.conf"

    def boot() -> None:
        """slurmd -b says that the machine was booted now."""
        host.check_output(f"mkdir -p {drop_in.rsplit('/', 1)[0]}")
        host.check_output(f"printf '[Service]\\nEnvironment=SLURMD_OPTIONS=-b\\n' >{drop_in}")
        host.check_output("systemctl daemon-reload && systemctl restart slurmd")

    yield boot
    host.check_output(f"mv /run/kept /usr/sbin/hal-node-reboot; rm -rf {MARKER} {drop_in}")
    host.check_output("systemctl daemon-reload && systemctl restart slurmd")


def test_a_drain_outlives_a_reboot_that_was_to_end_it(
    slurm: SlurmCommands, login: Host, node: Node, quiet_reboot: Callable[[], None]
) -> None:
    """slurmctld gives a node back that registers after "reboot ASAP nextstate=RESUME", drained or not."""
    assert slurm.reboot("hal01", REASON, "RESUME") == ""
    wait_for("reboot", lambda: node("hal01").file(MARKER).exists, bool, 60)
    seen = slurm.see("hal01")
    assert (seen.reboot, seen.next_state, seen.drained, seen.ours) == ("issued", "RESUME", True, True)
    login.check_output("scontrol update NodeName=hal02 State=DRAIN Reason='so that the job below waits for hal01'")
    job = as_user(login, "alice", "sbatch --parsable --output=/dev/null --wrap true").stdout.strip()
    slurm.keep_drained("hal01", "hal-reimage: no GPU")
    before = started(login, "hal01")
    quiet_reboot()
    wait_for("registration", lambda: started(login, "hal01"), lambda text: text != before, 60)
    # A boot that slurmctld knows nothing of makes a node DOWN beside its drain, unless it answered in that second.
    assert state(login, "hal01") in ("DOWN+DRAIN", "IDLE+DRAIN")
    assert reason(login, "hal01") == "hal-reimage: no GPU"
    assert job_state(login, job) == "PENDING"
    login.check_output(f"scancel {job}")


def test_a_reboot_that_waits_for_a_job_is_taken_back(
    slurm: SlurmCommands, login: Host, node: Node, quiet_reboot: Callable[[], None], submit: Callable[..., str]
) -> None:
    job = submit("--nodelist=hal01 --gres=gpu:v100:1")
    assert slurm.reboot("hal01", REASON, "DOWN") == ""
    seen = slurm.see("hal01")
    assert (seen.reboot, seen.next_state) == ("asked", "DOWN")
    assert [(one.id, one.user) for one in seen.jobs] == [(job, "alice")]
    slurm.keep_drained("hal01", "hal-reimage: aborted")
    assert job_state(login, job) == "RUNNING"
    login.check_output(f"scancel {job}")
    wait_for("drain", lambda: state(login, "hal01"), lambda text: text == "IDLE+DRAIN", 60)
    assert not node("hal01").file(MARKER).exists


def test_the_program_of_a_reboot_is_slurm_s(login: Host, node: Node) -> None:
    assert "RebootProgram           = /usr/sbin/hal-node-reboot" in login.check_output("scontrol show config")
    program = node("hal01").file("/usr/sbin/hal-node-reboot")
    assert (program.user, program.mode) == ("root", 0o755)
    # This scenario's hal-mgmt1 is the provisioning server of the model, and serves nothing.
    assert "url=http://10.65.7.11:8480/node/hal01/reboot\n" in program.content_string
    assert not login.file("/usr/sbin/hal-node-reboot").exists
