"""Let tests import what is shipped to nodes under the name it has there, ansible.module_utils.hal_network_*."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import ansible.module_utils
import pytest

SHIPPED = str(Path(__file__).resolve().parents[3] / "plugins" / "module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)


@pytest.fixture
def captures() -> Path:
    """The folder of captured output."""
    return Path(__file__).parent / "captures"


@pytest.fixture
def hal_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, whose folders are below `root` of a test's own."""
    path = Path(SHIPPED).parent / "modules" / "hal_network.py"
    spec = importlib.util.spec_from_file_location("hal_network_module", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    for name, value in vars(loaded).items():
        if isinstance(value, str) and value.startswith(("/run/hal/network", "/var/lib/hal/network", "/etc/sysconfig/")):
            monkeypatch.setattr(loaded, name, f"{tmp_path}/root{value}")
    return loaded
