"""Emulated BMCs on addresses of this machine's loopback, and an authority that signs for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "molecule" / "shared"))

from tests.unit.bmc.emulated import Emulated, Emulation  # the line above makes it findable


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an authority for servers."""
    from tests.unit.operator.test_tls import make

    folder = tmp_path_factory.mktemp("authority")
    make(folder)
    return folder


@pytest.fixture
def emulation(tmp_path: Path, authority: Path) -> Iterator[Emulation]:
    """What makes emulated BMCs, and ends them."""
    with ExitStack() as stack:
        yield Emulation(tmp_path / "bmcs", authority, stack)


@pytest.fixture
def openbmc(emulation: Emulation) -> Emulated:
    """The BMC of an AC922."""
    return emulation.make("hal05", "openbmc")
