"""A node that is not well is drained, and sinfo -R says why. Faults are planted on hal01, and hal02 is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from running.ansible_run import of_scenario
from testinfra.host import Host
from testing.promises import Rollout
from testing.slurm_cluster import as_user, job_state
from testing.waiting import wait_for

Node = Callable[[str], Host]
SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", Path(__file__).parents[1]))
PROJECT = SCENARIO.parents[1]
CHECK = "/usr/libexec/hal-node-health/check"
CLOCK_AGAIN = "systemctl restart chronyd && chronyc -n waitsync 150 0.1 0 1"
LONG_SECONDS = 180  # slurmd looks every 30 s; a machine that is busy with others' tests takes its time


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
    argv = [str(PROJECT / "molecule/virtual_hal/podman"), *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def fabric(*words: str) -> None:
    """Break or mend the emulated fabric."""
    program = PROJECT / "molecule/virtual_hal/setup"
    subprocess.run(
        [sys.executable, str(program), "fabric", "--instance", "node_health", *words], check=True, timeout=60
    )


def state(node: Node, name: str = "hal01") -> str:
    """What sinfo calls a node, without the mark of one that has not answered yet."""
    sinfo = f"sinfo --noheader --Node --nodes={name} --partition=gpu --format=%t"
    return str(node("hal-login").check_output(sinfo)).rstrip("*")


def reason(node: Node, name: str = "hal01") -> str:
    """The whole reason of a node, as sinfo -R has it."""
    sinfo = f"sinfo --noheader --list-reasons --nodes={name} --partition=gpu --format=%E"
    return str(node("hal-login").check_output(sinfo))


def check(host: Host) -> str:
    """Run what Slurm runs; it must come to a verdict of its own."""
    while True:
        ran = host.run(CHECK)
        assert ran.rc in (0, 1), ran
        # slurmd's saw half of a fault; or the machine is busy, and what it shows has to be seen twice.
        unclear = ("another check has told Slurm since this one began", "the next check looks once more")
        if not any(words in ran.stdout for words in unclear):
            return str(ran.stdout)


def as_alice(command: str) -> str:
    """Return a command that alice runs without a job."""
    return f"setpriv --reuid=5001 --regid=5000 --clear-groups {command}"


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
    assert "ok   time           chronyd runs" in seen.stdout
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
        wait_for("hal01", lambda: state(node), lambda now: now == "drain", LONG_SECONDS)
        assert reason(node) == "health: disk full: /dev/shm (space is left (/dev/shm): is 13, declared at least 32)"
        assert state(node, "hal02") == "idle"
    wait_for("hal01", lambda: state(node), lambda now: now == "idle", LONG_SECONDS)


def test_who_fills_a_disk_is_named(node: Node, hal01: Host) -> None:
    with planted(hal01, as_alice("dd if=/dev/zero of=/dev/shm/full bs=1M count=50 2>&1"), "rm /dev/shm/full"):
        check(hal01)
        words = "space is left (/dev/shm): is 13, declared at least 32; uid 5001 (alice) has 50 MB"
        assert reason(node) == f"health: disk full: /dev/shm ({words})"
    check(hal01)
    assert state(node) == "idle"


def test_a_missing_mount_drains(node: Node, hal01: Host) -> None:
    podman("exec", "--privileged", "node_health-hal01", "umount", "/home")
    try:
        check(hal01)  # or slurmd's was there before
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
    # Its next measurement would put it right: it makes none, until it is started again.
    tell = f"chronyc offline && chronyc makestep 1000000 1 && chronyc manual on && chronyc settime {other} && sleep 1"
    with planted(hal01, tell, CLOCK_AGAIN):
        check(hal01)
        assert reason(node).startswith("health: wrong clock (clock is close to its server: is ")


def test_a_dead_daemon_drains(node: Node, hal01: Host) -> None:
    with planted(hal01, "systemctl kill --signal=KILL chronyd", CLOCK_AGAIN):
        check(hal01)
        assert reason(node).startswith("health: chronyd is dead")
        assert state(node, "hal02") == "idle"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (("slow", "hal01", "--gbps=56"), "slow InfiniBand link"),
        pytest.param(("down", "hal01"), "InfiniBand link down", marks=pytest.mark.slow),
    ],
)
def test_a_link_that_is_not_as_declared_drains(node: Node, hal01: Host, fault: tuple[str, ...], words: str) -> None:
    try:
        fabric(*fault)
        said = check(hal01)
        assert words in reason(node).partition(" (")[0], said
        assert state(node, "hal02") == "idle"
    finally:
        fabric("restore")
        wait_for("link", lambda: hal01.run("ibstat mlx5_0 1").stdout, lambda text: "State: Active" in text)


# ---------------------------------------------------------------- no answer, and too many
def test_a_daemon_that_is_there_and_does_not_answer_drains_nothing_and_the_audit_says_so(
    node: Node, hal01: Host, rollout: Rollout
) -> None:
    stands = "no alarm of the health check stands"
    assert rollout.promises("node_health", "hal01")[stands]["status"] == "pass"
    alarm = "cat /run/hal-node-health.alarm 2>/dev/null || true"
    with planted(hal01, "systemctl kill --signal=STOP chronyd", "systemctl kill --signal=CONT chronyd"):
        for _ in range(3):
            assert "?    time" in hal01.run(CHECK).stdout
        assert hal01.check_output(alarm).startswith("wrong clock? (clock is close to its server: cannot be read: ")
        assert rollout.promises("node_health", "hal01")[stands]["status"] == "fail"
        assert (state(node), reason(node)) == ("idle", "")
    wait_for("alarm", lambda: (hal01.run(CHECK), hal01.check_output(alarm))[1], lambda text: text == "")
    assert rollout.promises("node_health", "hal01")[stands]["status"] == "pass"


def test_no_more_nodes_than_permitted_are_taken_out(node: Node, hal01: Host) -> None:
    """Of two nodes one may be out; hal02 is."""
    login = node("hal-login")
    login.check_output("scontrol update NodeName=hal02 State=DRAIN Reason='health: planted'")
    try:
        with planted(hal01, "virtual-gpu lose 2", "virtual-gpu repair"):
            assert "not drained for GPU lost: 1 of 2 nodes of partition " in hal01.run(CHECK).stdout
            assert state(node) == "idle"
            login.check_output("scontrol update NodeName=hal02 State=RESUME")
            check(hal01)
            assert reason(node).startswith("health: GPU lost (")
    finally:
        login.run("scontrol update NodeName=hal02 State=RESUME")


def test_a_node_is_only_observed_at_first(node: Node, hal01: Host, rollout: Rollout) -> None:
    """Nothing is drained, jobs begin, and what would have been is told; after the days it is drained."""
    login, kept = node("hal-login"), "/var/lib/hal-node-health/observed.json"
    observed = rollout.converge("--limit", "hal01", node_health_observe_days=14)
    assert observed.status == 0, observed.explain()
    try:
        with planted(hal01, "virtual-gpu lose 2", "virtual-gpu repair"):
            seen = hal01.run(CHECK)
            assert (seen.rc, state(node), reason(node)) == (3, "idle", "")
            assert "not drained for GPU lost: only observed until " in seen.stdout
            job = as_user(login, "alice", "srun --nodelist=hal01 --gres=gpu:v100:1 --time=5 hostname -s")
            assert (job.rc, job.stdout.strip()) == (0, "hal01"), job.stderr
            assert ": health: GPU lost (" in hal01.check_output("hal-node-health --observed")
            stands = "no alarm of the health check stands"
            assert rollout.promises("node_health", "hal01")[stands]["status"] == "fail"

            hal01.check_output(f'sed -i -E \'s/"began": ([0-9.]+)/"began": 1/\' {kept}')
            check(hal01)
            assert reason(node).startswith("health: GPU lost (")
    finally:
        hal01.check_output(f"rm -f {kept}")
        back = rollout.converge("--limit", "hal01")
        assert back.status == 0, back.explain()


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


# ---------------------------------------------------------------- GPUs
def test_a_lost_gpu_drains_its_node_until_an_administrator_has_looked(
    node: Node, hal01: Host, rollout: Rollout
) -> None:
    waits = "no drain of the health check waits for an administrator"
    assert rollout.promises("node_health", "hal01")[waits]["status"] == "pass"
    with planted(hal01, "virtual-gpu lose 2", "virtual-gpu repair"):
        check(hal01)
        assert reason(node).startswith("health: GPU lost (")
        assert state(node, "hal02") == "idle"
        assert rollout.promises("node_health", "hal01")[waits]["status"] == "fail"
    assert "stays drained for an administrator" in check(hal01)
    assert state(node) == "drain"
    given = of_scenario(SCENARIO).playbook(PROJECT / "playbooks/resume.yml", resume_nodes="hal01")
    assert given.status == 0, given.explain()
    assert "hal01: takes jobs again; it was away for: health: GPU lost" in given.words
    check(hal01)
    assert rollout.promises("node_health", "hal01")[waits]["status"] == "pass"


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        ("virtual-gpu hot 1 --celsius 95", "GPU too hot"),
        pytest.param("virtual-gpu ecc 0 --errors 2", "GPU memory errors", marks=pytest.mark.slow),
        pytest.param("systemctl stop nvidia-persistenced", "GPU persistence daemon down", marks=pytest.mark.slow),
    ],
)
def test_a_gpu_that_is_not_well_drains(node: Node, hal01: Host, plant: str, words: str) -> None:
    with planted(hal01, plant, "virtual-gpu repair; systemctl start nvidia-persistenced"):
        check(hal01)
        assert reason(node).startswith("health: ")
        assert words in reason(node).partition(" (")[0]


def test_a_job_does_not_begin_on_a_node_that_lost_a_gpu(node: Node, hal01: Host) -> None:
    login = node("hal-login")
    with planted(hal01, "virtual-gpu lose 0", "virtual-gpu repair"):
        job = as_user(
            login, "alice", "sbatch --parsable --nodelist=hal01 --gres=gpu:v100:1 --output=/dev/null --wrap true"
        ).stdout.strip()
        wait_for("reason of hal01", lambda: reason(node), lambda why: why.startswith("health: GPU lost"), LONG_SECONDS)
        # The reason stands before the job has left the node: CONFIGURING, COMPLETING and only then queued again.
        left = ("CONFIGURING", "RUNNING", "COMPLETING")
        queued = wait_for("job", lambda: job_state(login, job), lambda now: now not in left)
        assert queued == "PENDING", "it ran, or was not queued again"
        login.check_output(f"scancel {job}")


@pytest.mark.slow
def test_after_a_job_its_gpus_have_the_site_s_settings_again(node: Node, hal01: Host) -> None:
    """Somebody changes the compute mode under the job; Slurm's epilog puts it right, on the job's GPUs."""
    login = node("hal-login")
    asked = "nvidia-smi --query-gpu=index,compute_mode --format=csv,noheader"
    job = as_user(
        login, "alice", "sbatch --parsable --nodelist=hal01 --gres=gpu:v100:2 --output=/dev/null --wrap 'sleep 4'"
    ).stdout.strip()
    wait_for("job", lambda: job_state(login, job), lambda now: now == "RUNNING")
    hal01.check_output("nvidia-smi --compute-mode=EXCLUSIVE_PROCESS --id=1,3")
    assert "1, Exclusive_Process" in hal01.check_output(asked)
    wait_for("GPU 1", lambda: hal01.check_output(asked), lambda text: "1, Default" in text)
    assert "3, Exclusive_Process" in hal01.check_output(asked), "a GPU of another job was touched"
    hal01.check_output("nvidia-smi --compute-mode=DEFAULT")


def test_a_process_of_the_system_that_stays_on_a_gpu_after_a_job_drains_and_is_named(node: Node, hal01: Host) -> None:
    pid = hal01.check_output("setsid sleep 120 >/dev/null 2>&1 & echo $!")
    with planted(hal01, f"virtual-gpu use 1 {pid}", f"kill {pid}; virtual-gpu repair"):
        assert hal01.run("SLURM_JOB_GPUS=0-1 /usr/libexec/hal-node-health/job-end").rc == 0
        left = "health: process left on a GPU (no process is left on the GPUs: process"
        assert reason(node) == f"{left} {pid}, sleep, on GPU 1)"


@pytest.fixture
def process(hal01: Host) -> Iterator[str]:
    """A process of alice's that no job has started."""
    pid = hal01.check_output(f"setsid {as_alice('sleep 3600')} >/dev/null 2>&1 </dev/null & echo $!").strip()
    wait_for("alice's", lambda: hal01.run(f"ps -o user= -p {pid}").stdout.strip(), lambda who: who == "alice")
    yield pid
    hal01.run(f"kill {pid}; virtual-gpu repair")


@pytest.fixture
def foreign(hal01: Host, process: str) -> str:
    """The same, on GPU 1."""
    hal01.check_output(f"virtual-gpu use 1 {process}")
    return process


@pytest.mark.parametrize("when", ["SLURM_JOB_GPUS=1 /usr/libexec/hal-node-health/job-end", CHECK])
def test_a_user_s_process_without_a_job_is_named_and_keeps_the_node_until_it_is_gone(
    node: Node, hal01: Host, foreign: str, when: str
) -> None:
    hal01.run(when)
    said = f"uid 5001 (alice) runs {foreign} sleep on GPU 1 without a job"
    why = f"health: GPU in use without a job (no GPU is used without a job: {said})"
    # On a busy machine slurmd's next checks have to see it, too.
    wait_for("reason of hal01", lambda: reason(node), lambda now: now == why, LONG_SECONDS)
    check(hal01)
    assert state(node) == "drain", "it was given back to jobs"
    hal01.check_output(f"kill {foreign}")
    wait_for("hal01", lambda: (check(hal01), state(node))[1], lambda now: now == "idle")


def test_on_a_gpu_that_a_job_has_any_process_may_be_the_job_s(node: Node, hal01: Host, process: str) -> None:
    login = node("hal-login")
    submit = "sbatch --parsable --nodelist=hal01 --gres=gpu:v100:4 --output=/dev/null --wrap 'sleep 600'"
    job = as_user(login, "alice", submit).stdout.strip()
    wait_for("job", lambda: job_state(login, job), lambda now: now == "RUNNING")
    hal01.check_output(f"virtual-gpu use 1 {process}")
    seen = hal01.run("hal-node-health --foreign-processes")
    hal01.check_output(f"kill {process}")
    login.check_output(f"scancel {job}")
    assert (seen.rc, seen.stdout) == (0, "")


def test_a_process_without_a_job_is_ended_by_hand(hal01: Host, foreign: str) -> None:
    ended = hal01.run("hal-node-health --end-foreign-processes")
    assert ended.stdout == f"uid 5001 (alice) runs {foreign} sleep on GPU 1 without a job\n"
    wait_for("process", lambda: hal01.run(f"kill -0 {foreign}").rc, lambda status: status != 0)
    assert f"killed: uid 5001 (alice) runs {foreign}" in hal01.check_output("journalctl -t hal-node-health --no-pager")


# ---------------------------------------------------------------- boot, last: what stands for the file system goes away
def test_a_node_that_is_not_well_after_a_boot_is_drained_before_slurmd_runs(node: Node) -> None:
    podman("restart", "--time", "0", "node_health-hal02")  # a tmpfs does not survive
    lost = "health: not mounted: /home"
    wait_for("reason of hal02", lambda: reason(node, "hal02"), lambda why: why.startswith(lost), LONG_SECONDS)
    stamps = lambda: (stamp("hal-node-health", "ExecMainExit"), stamp("slurmd", "ExecMainStart"))  # noqa: E731
    ended, began = wait_for("slurmd of hal02", stamps, all, LONG_SECONDS)  # what tells Slurm why has not ended then
    assert ended <= began, "slurmd ran before the node was checked"
    assert state(node) == "idle", "the other node was touched"


def stamp(unit: str, event: str) -> int:
    """When a unit of hal02 did this, in microseconds of its machine. Not by SSH: that went away with the node."""
    show = ("systemctl", "show", f"--property={event}TimestampMonotonic", unit)
    return int(podman("exec", "node_health-hal02", *show).partition("=")[2])
