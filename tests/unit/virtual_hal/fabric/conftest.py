"""Each test has a relay of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.unit.virtual_hal.fabric.world import World


@pytest.fixture(autouse=True)
def on_one_processor() -> Iterator[None]:
    """There, on the loopback device, a packet does not overtake another."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    yield
    os.sched_setaffinity(0, every)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.close()
