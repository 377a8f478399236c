"""The lab at a tenth of its speed: what is slow may take longer, and nothing else may happen.

Loops keep each processor busy, so that what we run gets about one share of ten. Hours: a rollout of minutes takes ten
times as long.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import strategy

PROJECT = Path(__file__).resolve().parents[2]
LOOPS_A_CORE = 9
# It ends with us, also when we are killed.
LOOP = "while kill -0 $PPID; do :; done 2>/dev/null"
SCENARIO = ("molecule", "-c", "molecule/base.yml", "test", "-s")
RUNS = {
    "mini rollout": ("pytest", "tests/rollout/test_site.py", "-m", "not slow"),
    "molecule/time": (*SCENARIO, "time"),
    "molecule/slurm": (*SCENARIO, "slurm"),
}


@pytest.fixture(autouse=True)
def busy() -> Iterator[None]:
    """Keep every processor busy, to the end."""
    # Each in a session of its own: the kernel's autogroups would give all of one session no more than one node gets.
    count = LOOPS_A_CORE * (os.cpu_count() or 1)
    loops = [subprocess.Popen(["sh", "-c", LOOP], start_new_session=True) for _ in range(count)]
    try:
        yield
        assert [loop.poll() for loop in loops] == [None] * len(loops), "not busy to the end"
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_nothing_fails_for_want_of_time(name: str, tmp_path: Path) -> None:
    program, *words = RUNS[name]
    log = tmp_path / "log"
    marks = {} if name == "mini rollout" else {**strategy.environment(), "PYTEST_ADDOPTS": "-m 'not slow'"}
    with log.open("wb") as output:
        done = subprocess.run(
            [str(Path(sys.executable).with_name(program)), *words],
            cwd=PROJECT,
            env={**os.environ, **marks},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    assert done.returncode == 0, log.read_text(errors="replace")[-6000:]
