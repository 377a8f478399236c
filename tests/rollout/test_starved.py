"""The lab at a tenth of its speed: what is slow may take longer, and nothing else may happen.

What we run, and its nodes, get a tenth of the processors together (`starve.py`); where the machine has no such quota,
busy loops take the rest. Hours: a rollout of minutes takes ten times as long. The rollout has nodes and networks of its
own, so that another checkout can use the machine meanwhile.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from running import strategy
from testbed.run import as_root

from tests.rollout.starve import possible

PROJECT = Path(__file__).resolve().parents[2]
SHARE = 0.1
# It ends with us, also when we are killed.
LOOP = "while kill -0 $PPID; do :; done 2>/dev/null"
SCENARIO = ("molecule", "-c", "molecule/base.yml", "test", "-s")
RUNS = {
    "mini rollout": ("pytest", "tests/rollout/test_site.py", "-m", "not slow"),
    "molecule/time": (*SCENARIO, "time"),
    "molecule/slurm": (*SCENARIO, "slurm"),
}


@contextmanager
def by_quota() -> Iterator[None]:
    """Share the processors with nobody, and have a part of them."""
    starve = [sys.executable, str(Path(__file__).with_name("starve.py")), str(SHARE), str(os.getpid()), str(PROJECT)]
    with subprocess.Popen(as_root(starve), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starving:
        assert starving.stdout
        assert starving.stdout.readline() == "starving\n"
        yield
        felt, _nothing = starving.communicate()
    assert starving.returncode == 0, "not starved to the end"
    assert re.fullmatch(r"[1-9]\d* nodes, stopped [1-9]\d* times\n", felt), felt


@contextmanager
def by_loops() -> Iterator[None]:
    """Keep every processor busy."""
    # Each in a session of its own: the kernel's autogroups would give all of one session no more than one node gets.
    count = round((1 / SHARE - 1) * (os.cpu_count() or 1))
    loops = [subprocess.Popen(["sh", "-c", LOOP], start_new_session=True) for _ in range(count)]
    try:
        yield
        assert [loop.poll() for loop in loops] == [None] * len(loops), "not busy to the end"
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.fixture(autouse=True)
def starved() -> Iterator[None]:
    """Be slow, to the end."""
    with by_quota() if possible() else by_loops():
        yield


def beside() -> Path:
    """The site of test_site.py under another name, in other networks; in the checkout, as the lab wants it."""
    source = Path(__file__).with_name("site.yml")
    site = yaml.safe_load(source.read_text())
    site["base"] = str((source.parent / site["base"]).resolve())
    site["networks"] = {name: f"10.64.{12 + number}.0/24" for number, name in enumerate(site["networks"])}
    path = PROJECT / ".state" / "starved" / "hal.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(site))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_nothing_fails_for_want_of_time(name: str, tmp_path: Path) -> None:
    program, *words = RUNS[name]
    log = tmp_path / "log"
    if name == "mini rollout":
        marks = {"HAL_ROLLOUT_SITE": str(beside())}
    else:
        marks = {**strategy.environment(), "PYTEST_ADDOPTS": "-m 'not slow'"}
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
