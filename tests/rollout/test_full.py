"""The README's command: all of HAL, and what a stranger has of it. Slow: 22 nodes, then 6."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def demo_is_removed() -> Iterator[None]:
    """Remove the demo's nodes afterwards; somebody's that stood before stay."""
    setup = [sys.executable, "molecule/virtual_hal/setup", "nodes"]
    standing = subprocess.run([*setup, "instances"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    yield
    if "virtual" not in standing.split():
        subprocess.run([*setup, "destroy", "--instance", "virtual"], cwd=PROJECT, check=True)


def run(*argv: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **settings}
    return subprocess.run(argv, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False)


def volumes() -> set[str]:
    """Return podman's volumes that no container has, of whatever checkout."""
    done = run("molecule/virtual_hal/podman", "volume", "ls", "--quiet", "--filter=dangling=true")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.slow
def test_the_demo_ends_with_a_job_on_64_gpus_and_can_be_run_again() -> None:
    for _ in range(2):
        done = run(sys.executable, "molecule/virtual_hal/demo/run.py")
        assert done.returncode == 0, done.stdout[-4000:]
        assert "22 servers" in done.stdout
        assert "hal[01-16]   GPUs 0,1,2,3: 16 nodes x 4" in done.stdout
        assert "gres/gpu=64" in done.stdout


@pytest.mark.slow
def test_a_stranger_has_the_demo_whatever_the_own_settings_are() -> None:
    """As a user with sudo, in a path with a blank, with settings under which nothing would work."""
    changed = run("git", "diff", "--stat", "HEAD", "--", ".", ":!tests/proofs")
    assert (changed.returncode, changed.stdout) == (0, ""), ".ci/run clones HEAD: commit first"
    left = volumes()
    done = run(".ci/run", "demo", "NODES=mini", HAL_GATE_HOME="hostile")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "6 servers" in done.stdout
    assert "hal[01-02]   GPUs 0,1,2,3: 2 nodes x 4" in done.stdout
    assert volumes() <= left, "the gate left volumes of the nodes that it removed"
