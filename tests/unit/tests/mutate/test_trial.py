"""What hangs is seen, and ends with all that it began."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.unit.tests.mutate.conftest import PROJECT, Tiny  # isort: skip  # makes the others importable
from tests.mutate import keeper
from tests.mutate.choose import Tree
from tests.mutate.copies import Copy
from tests.mutate.mutant import Mutant
from tests.mutate.questions import Question
from tests.mutate.trial import Bench, RedError

LOOP = "from hal_tiny.loop import WAITS\nprint('here', flush=True)\nwhile WAITS:\n    pass\n"
QUESTION = Question("loop", ("python", "loop.py"), quiet_seconds=20)


@pytest.fixture
def bench(tiny: Tiny, tmp_path: Path) -> Bench:
    """A copy whose one question is whether loop.py ends."""
    tiny.write("hal_tiny/loop.py", "WAITS = False\n")
    tiny.write("loop.py", LOOP)
    copy = Copy(Tree.of(tiny.root), tiny.copies / "1")
    return Bench(copy, lambda _: [QUESTION], tmp_path, threading.Event())


def test_a_fault_that_hangs_is_seen(bench: Bench) -> None:
    verdict = bench.judge(Mutant("hal_tiny/loop.py", 1, "any", "WAITS = False\n", "WAITS = True\n"))
    assert verdict.by == "hung"


def test_what_hangs_without_a_fault_is_red(bench: Bench) -> None:
    with pytest.raises(RedError, match="red without a fault: loop"):
        bench.judge(Mutant("hal_tiny/loop.py", 1, "any", "WAITS = True\n", "WAITS = 1\n"))


def test_one_that_somebody_ended_has_seen_nothing(bench: Bench) -> None:
    ends = "import os, signal; os.kill(os.getppid(), signal.SIGTERM); WAITS = True\n"
    with pytest.raises(RedError, match="somebody ended python"):
        bench.judge(Mutant("hal_tiny/loop.py", 1, "any", "WAITS = False\n", ends))


def test_two_texts_of_one_size_in_one_second_are_both_run(bench: Bench) -> None:
    """Python would take what it compiled of the other."""
    for _ in range(2):
        assert bench.judge(Mutant("hal_tiny/loop.py", 1, "any", "WAITS = 0\n", "WAITS = ''\n")).by == ""
        assert bench.judge(Mutant("hal_tiny/loop.py", 1, "any", "WAITS = 00\n", "1 / 0 # 12\n")).by == "loop"


def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    lock, begun = tmp_path / "lock", tmp_path / "begun"
    hangs = f"exec 9<>{lock}; flock 9; touch {begun}; sleep 3600"
    leaves = f"setsid sh -c '{hangs}' & until test -e {begun}; do sleep 0.1; done"
    words = [sys.executable, keeper.__file__, str(tmp_path / "log"), "120", "sh", "-c", leaves]
    assert subprocess.run(words, check=False, timeout=600).returncode == 0
    subprocess.run(["flock", "--nonblock", str(lock), "true"], check=True)


def test_what_ends_is_gone_also_when_who_began_it_is_not_there(tmp_path: Path) -> None:
    """A test that looks whether a process is over would wait for ever."""
    orphan = f"sh -c 'true & echo $! >{tmp_path}/pid'; until ! test -e /proc/$(cat {tmp_path}/pid); do sleep 0.1; done"
    words = [sys.executable, keeper.__file__, str(tmp_path / "log"), "20", "sh", "-c", orphan]
    assert subprocess.run(words, check=False, timeout=600).returncode == 0


def test_the_copy_is_a_project_of_its_own(tiny: Tiny) -> None:
    copy = Copy(Tree.of(PROJECT), tiny.copies / "1")
    ask = "import hal_inventory, sys; print(hal_inventory.__file__, sys.prefix)"
    for words in (["python", "-c", ask], ["sh", "-c", f"exec python -c '{ask}'"]):
        path = {"PATH": f"{copy.root}/.venv/bin:/usr/bin:/bin"}
        said = subprocess.run(words, cwd="/", env=path, check=True, capture_output=True, text=True).stdout
        assert said.strip() == f"{copy.root}/hal_inventory/__init__.py {copy.root}/.venv"
    top = ["git", "rev-parse", "--show-toplevel"]
    assert subprocess.run(top, cwd=copy.root, check=True, capture_output=True, text=True).stdout.strip() == str(
        copy.root
    )
