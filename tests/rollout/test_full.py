"""The whole of HAL, by the README's command. Slow: 22 nodes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_demo_ends_with_a_job_on_64_gpus_and_can_be_run_again() -> None:
    setup = [sys.executable, "molecule/shared/setup", "nodes"]
    standing = subprocess.run([*setup, "instances"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    try:
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "molecule/shared/demo.py"], cwd=PROJECT, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stdout[-4000:]
            assert "22 servers" in done.stdout
            assert "hal[01-16]   GPUs 0,1,2,3: 16 nodes x 4" in done.stdout
            assert "gres/gpu=64" in done.stdout
    finally:
        if "virtual" not in standing.split():  # somebody's demo stays
            subprocess.run([*setup, "destroy", "--instance", "virtual"], cwd=PROJECT, check=True)
