"""A run fails for a test that skips and may not, and for one that may and does not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]
TESTS = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_some(number):
    if number == 2:
        pytest.skip("there is no [gas] here")

@pytest.mark.skipif(True, reason="nobody is root")
def test_root():
    pass

@pytest.mark.xfail(reason="known")
def test_known():
    raise ValueError

def test_fine():
    pass
"""
CONFTEST = """
from pathlib import Path
from tests import skips

skips.PROJECT = Path({project!r})

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(skips.Skips(skips.load(skips.PROJECT / "skips.yml")), "skips")
"""
Run = Callable[..., tuple[int, list[str]]]
SOME = "- {test: test_x.py::test_some, reason: 'there is no [gas]*'}"
ROOT = "- {test: test_x.py::test_root, reason: nobody is root}"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function: the list of allowed skips, options of pytest -> exit status and what is said of skips."""
    (tmp_path / "conftest.py").write_text(CONFTEST.format(project=str(tmp_path)))
    (tmp_path / "test_x.py").write_text(TESTS)

    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def call(*allowed: str, options: Sequence[str] = ()) -> tuple[int, list[str]]:
        (tmp_path / "skips.yml").write_text("\n".join(["---", *allowed]))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(tmp_path)],
            capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
        )  # fmt: skip
        lines = done.stdout.splitlines()
        return done.returncode, [line for line in lines if line.startswith("test_x.py::")]

    return call


def test_what_may_skip_is_told_and_fails_nothing(run: Run) -> None:
    told = ["test_x.py::test_root: nobody is root", "test_x.py::test_some: there is no [gas] here"]
    assert run(SOME, ROOT) == (0, told)


@pytest.mark.parametrize("options", [(), ("-pxdist", "-n2")], ids=["one process", "two"])
def test_what_may_not_skip_fails_the_run(run: Run, options: Sequence[str]) -> None:
    status, said = run(SOME, options=options)
    assert (status, said[-1]) == (1, "test_x.py::test_root skips, and skips.yml does not allow that: nobody is root")


def test_another_reason_is_not_allowed(run: Run) -> None:
    status, said = run(SOME.replace("gas", "water"), ROOT)
    assert status == 1
    assert "test_x.py::test_some skips, and skips.yml does not allow that: there is no [gas] here" in said


@pytest.mark.parametrize("name", ["test_fine", "test_known"])
def test_what_no_longer_skips_leaves_the_list(run: Run, name: str) -> None:
    entry = f"- {{test: 'test_x.py::{name}', reason: x}}"
    status, said = run(SOME, ROOT, entry)
    assert (status, said[-1]) == (1, f"test_x.py::{name} no longer skips: take it out of skips.yml")
    assert run(SOME, ROOT, entry.replace("}", ", sometimes: true}"))[0] == 0


def test_what_is_not_a_test_any_more_leaves_the_list(run: Run) -> None:
    status, said = run(SOME, ROOT, "- {test: 'test_x.py::test_gone', reason: x, sometimes: true}")
    assert (status, said[-1]) == (1, "test_x.py::test_gone is not a test: take it out of skips.yml")


def test_what_did_not_run_says_nothing_of_the_list(run: Run) -> None:
    assert run(SOME, ROOT, options=["-k", "test_fine"]) == (0, [])
