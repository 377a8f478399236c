"""What a user has after a rollout: modules in every shell, alike on login and compute nodes, and in jobs."""

from __future__ import annotations

import re
from shlex import quote

import pytest
from demo.mini import Mini

from tests.rollout.login_user import User

TAGGED = "wmlce/1.7.0-py3.7"
LOGIN = "hal-login"
COMPUTES = ("hal01", "hal02")
# The declared Python and packages, as the program itself says them.
VERSIONS = "python -c 'import sys, tensorflow; print(sys.version.split()[0], tensorflow.__version__)'"


@pytest.fixture(scope="module")
def alice(mini: Mini, tmp_path_factory: pytest.TempPathFactory) -> User:
    """Alice, on nodes that are rolled out."""
    if not mini.rolled_out:
        play = mini.site()
        assert play.status == 0, play.explain()
    return User(mini.cluster, "alice", tmp_path_factory.mktemp("alice"))


def test_module_avail_is_readable_in_a_terminal_of_80_columns(alice: User) -> None:
    shown = alice.says(LOGIN, "COLUMNS=80 bash -lc 'module avail' 2>&1")
    assert re.search(rf"{re.escape(TAGGED)} +\((?:\w+,)*D", shown), f"the default is not marked:\n{shown}"
    assert max(map(len, shown.splitlines())) <= 80, shown


@pytest.mark.parametrize("shell", ["bash -lc", "bash -c", "zsh -lc", "tcsh -c"])
def test_a_module_is_loaded_in_every_shell(alice: User, shell: str) -> None:
    script = f"module load {TAGGED}; {VERSIONS}"
    said = {alice.says(node, f"{shell} {quote(script)}").strip() for node in (LOGIN, *COMPUTES)}
    assert len(said) == 1, f"login and compute differ: {said}"
    assert re.fullmatch(r"3\.7\.\d+ 2\.1\.\d+", said.pop())


def test_a_second_environment_says_what_it_replaces(alice: User) -> None:
    done = alice.ssh(LOGIN, f"bash -lc 'module load {TAGGED} && module load wmlce/1.7.0-py3.6; module list' 2>&1")
    assert "replaced" in done.stdout or "reloaded" in done.stdout, done.stdout
    listed = done.stdout[done.stdout.index("Currently Loaded") :]
    assert "wmlce/1.7.0-py3.6" in listed
    assert TAGGED not in listed


def test_an_unknown_version_says_what_there_is(alice: User) -> None:
    done = alice.ssh(LOGIN, "bash -lc 'module load wmlce/9.9' 2>&1")
    assert done.returncode != 0
    assert "wmlce/9.9" in done.stdout
    assert "Traceback" not in done.stdout
    assert "lua:" not in done.stdout


@pytest.mark.parametrize("export", ["ALL", "NONE"])
def test_a_job_script_that_loads_a_module_runs_on_four_gpus_of_every_node(alice: User, export: str) -> None:
    program = VERSIONS.replace("'", '"')
    each = f"echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES $({program})"
    script = f"#!/bin/bash\nmodule load {TAGGED}\nsrun --export=ALL sh -c '{each}'\n"
    alice.says(LOGIN, f"printf %s {quote(script)} >job.sh && rm -f job.out")
    words = f"--partition=gpu --nodes={len(COMPUTES)} --ntasks-per-node=4 --gres=gpu:v100:4 --time=2 --output=job.out"
    # A node that is out of service would keep the job waiting for ever.
    alice.says(LOGIN, f"timeout 120 sbatch --wait --export={export} {words} job.sh || {{ sinfo -R; squeue; exit 1; }}")
    lines = sorted(alice.says(LOGIN, "cat job.out").splitlines())
    assert len(lines) == 4 * len(COMPUTES), lines
    for line, node in zip(lines, sorted(COMPUTES * 4), strict=True):
        assert re.fullmatch(rf"{node} 0,1,2,3 3\.7\.\d+ 2\.1\.\d+", line), lines
