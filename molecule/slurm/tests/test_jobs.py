"""What users get, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from testinfra.host import Host
from testing.slurm_cluster import as_user
from testing.waiting import wait_for

# A GPU job of swsuite's size that leaves room for others: it says how many threads a GPU is to bring.
SMALL = "--nodelist=hal01 --ntasks-per-node=16 --gres=gpu:v100:1 --cpus-per-gpu=16 --mem-per-cpu=1200"
GONE = "Requested node configuration is not available"
TIME = "Requested time limit is invalid"


def test_a_job_over_all_nodes_sees_all_gpus_and_is_accounted_for(login: Host) -> None:
    show = "sh -c 'echo $SLURM_JOB_ID $(hostname -s) $CUDA_VISIBLE_DEVICES'"
    done = as_user(login, "alice", f"srun --nodes=2 --ntasks-per-node=1 --gres=gpu:v100:4 {show}")
    assert done.rc == 0, done.stderr
    lines = sorted(line.split() for line in done.stdout.splitlines())
    job = lines[0][0]
    assert lines == [[job, "hal01", "0,1,2,3"], [job, "hal02", "0,1,2,3"]]
    row = wait_for(
        "accounting",
        lambda: login.check_output(f"sacct --jobs {job} -X -n -P -o User,Account,Partition,State,NNodes,AllocTRES"),
        lambda text: "|gpu|COMPLETED|" in text,
    ).split("|")
    assert row[:5] == ["alice", "isl", "gpu", "COMPLETED", "2"], row
    assert "gres/gpu=8" in row[5].split(",")


def test_two_jobs_share_a_node_and_get_different_gpus(login: Host) -> None:
    """swsuite counts on shared nodes: one GPU job and one processor job on one node."""
    show = "sh -c 'echo $CUDA_VISIBLE_DEVICES; sleep 3'"
    both = as_user(
        login,
        "alice",
        f"""sh -c "srun -w hal01 --gres=gpu:v100:1 {show} & srun -w hal01 --gres=gpu:v100:1 {show} & wait" """.replace(
            "$", "\\$"
        ),
    )
    given = both.stdout.split()
    assert len(given) == 2, both.stderr
    assert len(set(given)) == 2
    assert set(given) <= {"0", "1", "2", "3"}


def allocated(login: Host, job: str) -> str:
    """Return what a running job has been given: "cpu=40,mem=60000M,gres/gpu=1"."""
    tres = re.findall(r" TRES=(\S+)", login.check_output(f"scontrol --oneliner show job {job}"))[0].split(",")
    return ",".join(one for one in tres if not one.startswith(("node=", "billing=")))


def in_use(login: Host) -> str:
    """Return what hal01 has given away."""
    found = re.search(r" AllocTRES=(\S*)", login.check_output("scontrol --oneliner show node hal01"))
    return found[1] if found else "?"


@pytest.mark.parametrize("partition", ["gpu", "debug"])
def test_a_gpu_brings_a_quarter_of_the_node_and_four_fill_it(
    login: Host, submit: Callable[..., str], partition: str
) -> None:
    jobs = [submit(f"--nodelist=hal01 --partition={partition} --gres=gpu:v100:1") for _ in range(4)]
    assert {allocated(login, job) for job in jobs} == {"cpu=40,mem=60000M,gres/gpu=1"}
    assert in_use(login) == "cpu=160,mem=240000M,gres/gpu=4"


def test_the_first_job_of_the_users_guide_gets_a_whole_node(login: Host, submit: Callable[..., str]) -> None:
    job = submit("--partition=gpu --gres=gpu:v100:4 --nodes=1 --ntasks-per-node=4 --time=00:30:00")
    assert allocated(login, job) == "cpu=160,mem=240000M,gres/gpu=4"


def test_what_a_job_says_itself_wins_over_the_share(login: Host, submit: Callable[..., str]) -> None:
    job = submit("--partition=gpu --gpus=v100:1 --cpus-per-gpu=8 --mem=4000")
    assert allocated(login, job) == "cpu=8,mem=4000M,gres/gpu=1"


def test_a_job_without_gpus_gets_1200_mb_a_cpu_in_every_partition(login: Host, submit: Callable[..., str]) -> None:
    for partition in ("cpu", "gpu", "debug"):
        job = submit(f"--partition={partition} --ntasks=1 --cpus-per-task=8")
        assert allocated(login, job) == "cpu=8,mem=9600M"


def test_a_processor_job_and_four_small_gpu_jobs_fill_a_node(login: Host, submit: Callable[..., str]) -> None:
    """96 threads and 4 x 16, 115200 MB and 4 x 19200: swsuite's sizes."""
    submit("--nodelist=hal01 --partition=cpu --ntasks=1 --cpus-per-task=96")
    for _ in range(4):
        submit(SMALL)
    assert in_use(login) == "cpu=160,mem=187.50G,gres/gpu=4"


@pytest.mark.parametrize(
    "options",
    [
        *("--gres=gpu:1", "--gres=gpu", "--gres=gpu:v100:1", "--gpus=1", "--gpus=v100:1", "--gpus-per-node=1"),
        *("--gpus-per-task=1 --ntasks=1", "--gpus-per-socket=1 --sockets-per-node=1"),
    ],
)
def test_gpus_are_refused_in_partition_cpu(login: Host, options: str) -> None:
    for partition in ("cpu", "cpu,gpu", "gpu,cpu"):
        done = as_user(login, "alice", f"sbatch --output=/dev/null --partition={partition} {options} --wrap true")
        assert done.rc != 0, partition
        assert "QOSMaxGRESPerJob" in done.stderr, partition


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--nodes=1 --gres=gpu:v100:5", GONE),
        ("--partition=cpu --nodes=1 --ntasks=1 --cpus-per-task=97", GONE),
        ("--partition=gpu --time=24:01:00", TIME),
        ("--partition=debug --time=4:01:00", TIME),
        ("--qos=prolonged --time=7-00:01:00", "QOSMaxWallDurationPerJobLimit"),
    ],
)
def test_what_can_never_run_is_refused_at_once(login: Host, options: str, why: str) -> None:
    done = as_user(login, "alice", f"sbatch --output=/dev/null {options} --wrap true")
    assert done.rc != 0
    assert why in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        "--partition=cpu --nodes=1 --ntasks=1 --cpus-per-task=96",
        "--partition=gpu --time=24:00:00",
        "--qos=prolonged --time=7-00:00:00",
    ],
)
def test_the_limit_itself_is_allowed(login: Host, options: str) -> None:
    done = as_user(login, "alice", f"sbatch --output=/dev/null {options} --wrap true")
    assert done.rc == 0, done.stderr


def test_nobody_fills_partition_debug(login: Host, submit: Callable[..., str]) -> None:
    """HAL's limit is four nodes, and here are two: what it does is seen with a lower one."""
    declared = "cpu=640,gres/gpu=16"
    shown = login.check_output("sacctmgr --noheader --parsable2 show qos where name=debug format=Flags,MaxTRESPU")
    assert shown == f"DenyOnLimit|{declared}"
    modify = "sacctmgr --immediate --quiet modify qos where name=debug set MaxTRESPU="
    try:
        login.check_output(f"{modify}cpu=160,gres/gpu=4")
        for options, why in (("--gres=gpu:v100:4", "QOSMaxGRESPerUser"), ("--ntasks=200", "QOSMaxCpuPerUserLimit")):
            command = f"sbatch --output=/dev/null --partition=debug --nodes=2 {options} --wrap true"
            done = as_user(login, "alice", command)
            assert done.rc != 0, options
            assert why in done.stderr
        submit("--partition=debug --gres=gpu:v100:4")
        waiting = as_user(login, "alice", "sbatch --parsable --output=/dev/null -p debug --gres=gpu:1 --wrap true")
        assert waiting.rc == 0, waiting.stderr
        job = waiting.stdout.strip()
        wait_for(
            "a job that waits for the user's others",
            lambda: login.check_output(f"scontrol --oneliner show job {job}"),
            lambda text: "JobState=PENDING Reason=QOSMax" in text,
        )
        login.check_output(f"scancel {job}")
    finally:
        login.check_output(f"{modify}{declared}")


def test_who_has_no_account_cannot_submit(login: Host) -> None:
    done = as_user(login, "nobody", "sbatch --output=/dev/null --wrap true")
    assert done.rc != 0
    assert "Invalid account" in done.stderr
