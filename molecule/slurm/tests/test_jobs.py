"""What users get, and what is refused."""

from __future__ import annotations

import pytest
from slurm_cluster import as_user
from testinfra.host import Host
from waiting import wait_for

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


def test_who_has_no_account_cannot_submit(login: Host) -> None:
    done = as_user(login, "nobody", "sbatch --output=/dev/null --wrap true")
    assert done.rc != 0
    assert "Invalid account" in done.stderr
