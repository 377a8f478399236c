"""HAL_PYTHON, the one thing that a user of prepare-controller chooses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]


def prepare(python: str) -> subprocess.CompletedProcess[str]:
    """Run the script as on a machine that has its system packages."""
    return subprocess.run(
        [PROJECT / "tools/prepare-controller"],
        env={**os.environ, "HAL_SKIP_PACKAGES": "1", "HAL_PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("python", ["python3.9 -I", "/nowhere/python3.12", "/bin/true", "/tmp"])
def test_a_python_that_does_not_suit_is_refused_in_one_line(python: str) -> None:
    done = prepare(python)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"prepare-controller: HAL_PYTHON={python} is not a Python 3.10, 3.11 or 3.12 with venv"
        " (docs/dependencies.md says why not newer)\n"
    )


def test_one_that_suits_is_taken_and_nothing_is_left_to_do() -> None:
    # Where something is left to do, the script would clear the environment that this test runs in.
    wanted = subprocess.check_output(["sha256sum", "requirements.lock", "pyproject.toml"], cwd=PROJECT, text=True)
    assert (PROJECT / ".venv/locked").read_text() == wanted.rstrip("\n"), "make setup first"
    done = prepare(sys.executable)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
