"""Emulated BMCs on addresses of this machine's loopback, and an authority that signs for them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "molecule" / "virtual_hal"))

from bmc.spec import KINDS  # the line above makes it findable

from tests.unit.hal_cluster.bmc.emulated import Emulated, Emulation
from tests.unit.hal_cluster.bmc.site import Site


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an authority for servers."""
    from tests.unit.authority import make

    folder = tmp_path_factory.mktemp("authority")
    make(folder)
    return folder


@pytest.fixture(autouse=True)
def without_ipmi_where_nobody_asks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redfish alone asks these, and ipmi_sim takes longer to start than they do (tests/unit/virtual_hal/bmc)."""
    for kind in ("openbmc", "idrac"):
        monkeypatch.setitem(KINDS, kind, KINDS[kind].model_copy(update={"ipmi": False}))


@pytest.fixture
def emulation(tmp_path: Path, authority: Path) -> Iterator[Emulation]:
    """What makes emulated BMCs, and ends them."""
    with ExitStack() as stack:
        yield Emulation(tmp_path / "bmcs", authority, stack)


@pytest.fixture
def openbmc(emulation: Emulation) -> Emulated:
    """The BMC of an AC922."""
    return emulation.make("hal05", "openbmc")


@pytest.fixture
def site(tmp_path: Path, emulation: Emulation) -> Site:
    """A small site, whose BMCs serve when they are told to."""
    return Site(tmp_path / "site", emulation)
