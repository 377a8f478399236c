"""The module in a folder of the test; what it imports answers under the Pythons of nodes, too."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import tests.unit.hal_node.network.conftest  # noqa: F401  asks each call under them
from tests.unit.alike import SHIPPED


@pytest.fixture
def hal_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, whose folders are below `root` of a test's own."""
    path = SHIPPED.parent / "modules" / "hal_network.py"
    spec = importlib.util.spec_from_file_location("hal_network_module", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    for name, value in vars(loaded).items():
        if isinstance(value, str) and value.startswith(("/run/hal/network", "/var/lib/hal/network", "/etc/sysconfig/")):
            monkeypatch.setattr(loaded, name, f"{tmp_path}/root{value}")
    return loaded
