"""Make the emulated BMCs importable, and serve some for a test: on loopback addresses, at free ports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

LAB = Path(__file__).resolve().parents[4] / "molecule/virtual_hal"
sys.path.insert(0, str(LAB))

from bmc.hardware import NoHardware  # noqa: E402  # the lines above make them findable
from bmc.serve import start  # noqa: E402
from bmc.spec import Fleet  # noqa: E402

from tests.unit.virtual_hal.bmc.emulated import Served, spec  # noqa: E402


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """sushy takes the environment's proxy, also for loopback addresses."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """An AC922's BMC, its neighbour's, one of each other kind."""
    fleet = Fleet(
        instance="test",
        state=tmp_path / "state",
        bmcs=(
            spec("hal01", "openbmc", 1),
            spec("hal02", "openbmc", 2),
            spec("hal-data", "supermicro", 3),
            spec("hal-mgmt2", "ipmi", 6),
            spec("dell", "idrac", 4),
            spec("other", "redfish", 5),
        ),
    )
    with ExitStack() as stack:
        running = start(fleet, NoHardware(), stack)
        with ExitStack() as clients:
            yield Served(fleet, running, clients)
