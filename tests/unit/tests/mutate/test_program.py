"""What make mutate promises, tried in a tiny project: a fault is seen or it is not, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.tests.mutate.conftest import Tiny


def test_a_fault_that_a_test_sees_and_one_that_none_sees(tiny: Tiny) -> None:
    done = tiny.mutate("--all", "--report")
    assert done.returncode == 0, done.stdout + done.stderr
    report = (tiny.root / "docs/mutations.md").read_text()
    survivors = report.partition("## Survivors")[2]
    told = done.stdout.splitlines()
    assert [line.split()[1] for line in told if "hal_tiny/sums.py:2 " in line] == ["seen"]
    assert [line.split()[1] for line in told if "hal_tiny/others.py:2 " in line] == ["SURVIVED"]
    hunk = "-    return not number\n+    return  number\n"
    assert f"```diff\n# hal_tiny/others.py:2: ReplaceUnaryOperator_Delete_Not\n{hunk}```" in survivors
    assert "hal_tiny/sums.py" not in survivors
    assert (tiny.root / "hal_tiny/sums.py").read_text().endswith("return not number\n"), (
        "the tree itself is not touched"
    )
    assert not tiny.copies.exists()


def test_without_green_tests_nothing_is_measured(tiny: Tiny) -> None:
    """Every fault would seem seen."""
    tiny.write(
        "tests/unit/tiny/test_sums.py", "from hal_tiny import sums\n\ndef test_it():\n    assert sums.nothing(0) == 5\n"
    )
    done = tiny.mutate("--sample", "1", "--seed", "1", "--report")
    assert done.returncode == 1
    assert "red without a fault: tests/unit/tiny/test_sums.py::test_it" in done.stderr
    assert "0 of 0 seen, 1 of the sample not tried" in done.stdout
    assert not (tiny.root / "docs/mutations.md").exists()
    assert not tiny.copies.exists()


def test_without_tests_that_can_be_collected_nothing_is_measured(tiny: Tiny) -> None:
    tiny.write("tests/unit/tiny/test_sums.py", "from hal_tiny import sums, nothing\n")
    done = tiny.mutate("--sample", "1", "--seed", "1")
    assert done.returncode == 1
    assert "red without a fault: tests/unit/tiny/test_sums.py" in done.stderr


def test_what_there_was_no_time_for_is_said(tiny: Tiny) -> None:
    done = tiny.mutate("--sample", "2", "--seed", "1", "--minutes", "0")
    assert done.returncode == 1, "nothing tried, nothing proven"
    assert "0 of 0 seen, 2 of the sample not tried" in done.stdout


def test_what_somebody_found_equivalent_is_left_out(tiny: Tiny) -> None:
    hunk = "-    return not number\n    +    return  number"
    entry = f"- file: hal_tiny/others.py\n  hunk: |\n    {hunk}\n  why: a test of this test\n"
    tiny.write("tests/mutate/equivalent.yml", entry)
    done = tiny.mutate("--all", "--area", "tiny", "--minutes", "0")
    said = (tiny.root / ".state/mutate/report.md").read_text()
    assert "1 left out as" in said, done.stdout + done.stderr


WAITS = """
    import subprocess
    from pathlib import Path

    from hal_tiny import others, sums

    def test_it():
        script = "exec 9<>{lock}; flock 9; touch {begun}; sleep 3600"
        subprocess.run(["setsid", "--wait", "sh", "-c", script])
    """


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_one_that_is_stopped_leaves_nothing_that_runs(tiny: Tiny, tmp_path: Path, number: int) -> None:
    lock, begun = tmp_path / "lock", tmp_path / "begun"
    tiny.write("tests/unit/tiny/test_sums.py", WAITS.format(lock=lock, begun=begun))
    process = subprocess.Popen(tiny.command("--all"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not begun.exists():
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(number)
    assert process.wait(600) == (-9 if number == signal.SIGKILL else 128 + number)
    subprocess.run(["flock", "--timeout", "600", str(lock), "true"], check=True)
    if number == signal.SIGKILL:  # who was killed could not; the next one does
        tiny.mutate("--sample", "1", "--minutes", "0")
    assert not tiny.copies.exists()


def test_a_second_one_in_the_same_tree_is_refused(tiny: Tiny) -> None:
    (tiny.root / ".state/mutate").mkdir(parents=True)
    held = ["flock", str(tiny.root / ".state/mutate/lock"), *tiny.command("--all")]
    done = subprocess.run(held, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 1
    assert done.stderr == "make mutate: another one runs in this tree\n"


SAMPLE = """
import sys
from pathlib import Path
sys.path.insert(0, {project!r})
from tests.mutate.choose import Tree, sample
for language in ("python", "yaml"):
    for one in sample(Tree.of(Path({root!r})), language, 6, {seed}):
        print(one.where, one.kind, one.hunk)
"""


def sampled(root: Path, seed: int, hashes: str) -> str:
    from tests.unit.tests.mutate.conftest import PROJECT

    script = SAMPLE.format(project=str(PROJECT), root=str(root), seed=seed)
    environment = {**os.environ, "PYTHONHASHSEED": hashes}
    return subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, env=environment, timeout=600
    ).stdout


def test_the_same_seed_and_tree_give_the_same_sample(tiny: Tiny) -> None:
    tiny.write(
        "roles/time/tasks/main.yml", "".join(f"- name: Do {n}\n  a.b.c: {{x: {n}}}\n  when: y{n}\n" for n in range(9))
    )
    first = sampled(tiny.root, 1, "1")
    assert len(first.splitlines()) > 12
    assert sampled(tiny.root, 1, "2") == first
    assert sampled(tiny.root, 2, "1") != first
