"""Which runs leave a proof in the tree."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from running.stages import Outcome

from tests import run
from tests.register.depends import Tree
from tests.register.proofs import Register


@pytest.fixture
def prover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> run.Prover:
    """Of a checkout with one scenario, which rolls one of two roles out."""
    for path, text in {
        "molecule/a/molecule.yml": "",
        "molecule/a/converge.yml": "roles: [r]\n",
        "roles/r/defaults/main.yml": "",
        "roles/s/defaults/main.yml": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(run, "PROJECT", tmp_path)
    monkeypatch.setattr(run, "REPORTS", tmp_path / ".git" / "reports")
    monkeypatch.setattr(run, "debian_versions", lambda: {"podman": "4.3.1"})
    run.REPORTS.mkdir()
    return run.Prover(Register(Tree(tmp_path)), ["a"])


def outcome(prover: run.Prover, read: str = "roles/r/defaults/main.yml") -> Outcome:
    """The scenario was green, and read this."""
    stage = prover.stages["a"]
    assert stage.report
    stage.report.write_text('<testsuite tests="1" failures="0" errors="0" skipped="0"/>')
    run.notes_of("a").write_text(f"{run.PROJECT}/{read}\n")
    return Outcome(stage, 0, 61.7, run.PROJECT / "log")


def stands(prover: run.Prover) -> bool:
    """Whether somebody who comes later finds it proven."""
    return Register(Tree(run.PROJECT)).stands("a") and prover.register.stands("a")


def test_what_was_green_at_once_is_proven(prover: run.Prover) -> None:
    prover.ended(outcome(prover))
    assert stands(prover)
    text = (run.PROJECT / "tests/proofs/a.yml").read_text()
    assert text.startswith("# Written by tests/run.py")
    assert "seconds: 61\n" in text
    assert "podman: 4.3.1" in text


@pytest.mark.parametrize("before", [True, False], ids=["proven before", "not proven before"])
@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (lambda good: replace(good, status=1), "it failed"),
        (lambda good: replace(good, first=replace(good, status=1)), "it is flaky"),
        (lambda good: replace(good, stage=replace(good.stage, report=run.REPORTS / "none.xml")), "it failed"),
    ],
    ids=["failed", "flaky", "silent"],
)
def test_what_was_not_is_not(prover: run.Prover, spoilt: Callable[[Outcome], Outcome], why: str, before: bool) -> None:
    if before:
        prover.ended(outcome(prover))
    prover.ended(spoilt(outcome(prover)))
    assert not stands(prover)
    assert prover.refused == [f"a: {why}"]


def test_another_stage_proves_nothing(prover: run.Prover) -> None:
    good = outcome(prover)
    prover.ended(replace(good, stage=replace(good.stage, name="mini rollout")))
    assert (stands(prover), prover.refused) == (False, [])


def test_a_run_without_tests_proves_nothing(prover: run.Prover) -> None:
    good = outcome(prover)
    assert good.stage.report
    good.stage.report.write_text('<testsuite tests="3" failures="0" errors="0" skipped="3"/>')
    prover.ended(good)
    assert (stands(prover), prover.refused) == (False, ["a: no test ran"])


def test_what_nobody_watched_proves_nothing(prover: run.Prover) -> None:
    good = outcome(prover)
    run.notes_of("a").unlink()
    prover.ended(good)
    assert not stands(prover)
    assert "it cannot be told what it proves: FileNotFoundError" in prover.refused[0]


def test_a_run_during_which_something_changed_proves_nothing(prover: run.Prover) -> None:
    good = outcome(prover)
    (run.PROJECT / "roles/r/defaults/main.yml").write_text("changed: true\n")
    prover.ended(good)
    assert not stands(prover)
    assert prover.refused == ["a: files changed while it ran"]


def test_a_run_that_read_what_does_not_count_proves_nothing(prover: run.Prover) -> None:
    prover.ended(outcome(prover, read="roles/s/defaults/main.yml"))
    assert not stands(prover)
    assert prover.refused == ["a: it read roles/s/defaults/main.yml, which its digest does not count"]
