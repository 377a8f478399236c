"""What is shipped to nodes is imported under the name it has there, and answers under their Pythons, too (alike.py)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.alike import alike
from tests.unit.hal_node.slurm.machine import Machine

alike(
    "hal_node.munge_key",
    "hal_node.slurm.accounting",
    "hal_node.slurm.change",
    "hal_node.slurm.conf",
    "hal_node.slurm.nodes",
    "hal_node.slurm.private",
    "hal_node.slurm.reservations",
    "hal_node.slurm.said",
    "hal_node.slurm.found",
    "hal_node.slurm.shown",
)


@pytest.fixture
def captures() -> Path:
    """The folder of captured output."""
    return Path(__file__).parent / "captures"


@pytest.fixture
def patched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[tuple[pytest.MonkeyPatch, pytest.CaptureFixture[str]]]:
    before = os.umask(0o022)
    yield monkeypatch, capsys
    os.umask(before)


@pytest.fixture
def slurmd(tmp_path: Path, patched: tuple[Any, Any]) -> Machine:
    return Machine(tmp_path, "slurmd", *patched)


@pytest.fixture
def slurmctld(tmp_path: Path, patched: tuple[Any, Any]) -> Machine:
    return Machine(tmp_path, "slurmctld", *patched)


@pytest.fixture
def slurmdbd(tmp_path: Path, patched: tuple[Any, Any]) -> Machine:
    return Machine(tmp_path, "slurmdbd", *patched)
