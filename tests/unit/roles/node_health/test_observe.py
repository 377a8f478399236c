"""At first a node is only observed: what it would have been drained for is written, and it stays in service."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.unit.interpreters import EVERY, interpreter
from tests.unit.roles.node_health.conftest import Installed, file_is, smi

HEALTHY, NOT_HEALTHY, HELD = 0, 1, 3
DAY = 86400


@pytest.fixture
def observed(driver: Installed) -> Installed:
    """A node with a lost GPU and a full disk that has its first check."""
    driver.observe_days = 14
    (driver.folder / "gpu").write_text("lost\n")
    (driver.folder / "disk").write_text("full\n")
    driver.checks += [{**file_is(driver.folder / "disk", "disk full"), "why": "jobs fail", "role": "base"}]
    return driver


def updates(node: Installed) -> list[list[str]]:
    return [call for call in node.node["calls"] if call[0] == "update"]


def kept(node: Installed) -> Path:
    return node.folder / "observed.json"


def began(node: Installed, days: float) -> None:
    """Let the first check have been so many days ago."""
    kept(node).write_text(json.dumps({**json.loads(kept(node).read_text()), "began": time.time() - days * DAY}))


@pytest.mark.parametrize("version", EVERY)
def test_nothing_is_drained_and_everything_is_told(observed: Installed, version: str) -> None:
    python = interpreter(version)
    for _ in range(2):
        done = observed.run("--act", python=python)
        assert done.returncode == HELD
        assert "not drained for GPU lost; disk full: only observed until " in done.stdout
    assert updates(observed) == []
    assert (
        (observed.folder / "alarm").read_text().startswith("not drained for GPU lost; disk full: only observed until")
    )
    told = observed.run("--observed", python=python)
    assert told.returncode == HEALTHY
    assert ", in 2 runs: health: GPU lost; disk full (" in told.stdout
    assert len(told.stdout.splitlines()) == 1


def test_jobs_begin_and_end_on_it(observed: Installed) -> None:
    smi(observed, settings="echo busy; exit 1")
    assert observed.run("--job-begin", SLURM_JOB_GPUS="1").returncode == HEALTHY
    assert observed.run("--job-end", SLURM_JOB_GPUS="1").returncode == HEALTHY
    assert updates(observed) == []
    said = observed.run("--observed").stdout
    assert "in 1 run: health: GPU lost (" in said
    assert "GPU settings not reset" in said


def test_after_the_declared_days_it_drains_and_only_for_what_is_so_now(observed: Installed) -> None:
    smi(observed, settings="echo busy; exit 1")
    observed.run("--job-end", SLURM_JOB_GPUS="1")
    began(observed, 13.9)
    assert observed.run("--act").returncode == HELD
    began(observed, 14.1)
    assert observed.run("--act").returncode == NOT_HEALTHY
    (drain,) = updates(observed)
    assert drain[-1].startswith("Reason=health: GPU lost; disk full (")
    assert "GPU settings" not in drain[-1], "what an epilog saw while nothing was drained"
    assert "GPU settings not reset" in observed.run("--observed").stdout, "what was observed stays to be read"


def test_a_site_that_observes_nothing_drains_at_once(observed: Installed) -> None:
    observed.observe_days = 0
    observed.run("--act")
    assert len(updates(observed)) == 1
    assert not kept(observed).exists()
    assert observed.run("--observed").stdout == ""


def test_since_when_it_is_observed_has_to_be_known(observed: Installed) -> None:
    kept(observed).with_suffix(".json.new").mkdir()
    done = observed.run("--act")
    assert done.returncode == HELD
    assert f"since when it is observed cannot be kept in {kept(observed)}" in done.stdout
    kept(observed).with_suffix(".json.new").rmdir()
    for text in ("", "[]", '{"began": "x"}', json.dumps({"began": time.time() + 9 * DAY})):
        kept(observed).write_text(text)
        assert observed.run("--act").returncode == HELD, text
        now = json.loads(kept(observed).read_text())["began"]
        assert now <= time.time(), "a clock that was wrong makes no longer time"


def test_who_only_looks_begins_nothing(observed: Installed) -> None:
    observed.run()
    observed.run("--json")
    assert not kept(observed).exists()
