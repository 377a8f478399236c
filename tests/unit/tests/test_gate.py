"""The gate: one on a machine, and no user can keep it from beginning."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.modules import PROJECT

# With a /run of its own, and a passwd that ends the gate when it has its lock: a real one may run beside this.
SCRIPT = """
mount -t tmpfs none /run && cd "$1" && export PATH="$2:$PATH"
{before}
.ci/run
echo "status $?"
stat --format '%a %U' /run/hal-gate.lock
"""
pytestmark = pytest.mark.root


def gate(folder: Path, before: str = "") -> tuple[list[str], str]:
    """What is printed and what is refused."""
    (folder / "getent").write_text("#!/bin/sh\necho hal-gate:x:4711:4711:somebody:/:/bin/sh\n")
    (folder / "getent").chmod(0o755)
    argv = ["unshare", "--mount", "bash", "-c", SCRIPT.format(before=before), "gate", str(PROJECT), str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.splitlines(), done.stderr


def test_its_lock_is_root_s_alone(tmp_path: Path) -> None:
    shown, said = gate(tmp_path)
    assert said.startswith(".ci/run: the user hal-gate is not of a gate: ")
    assert shown == ["status 1", "600 root"]


def test_the_one_that_runs_is_named(tmp_path: Path) -> None:
    held = "exec 8<>/run/hal-gate.lock; flock 8; echo process 7, of /elsewhere >/run/hal-gate.lock"
    assert gate(tmp_path, held)[1] == ".ci/run: another gate runs on this machine: process 7, of /elsewhere\n"
