"""Let tests import what is shipped to nodes under the name it has there, ansible.module_utils.hal_scale_*."""

from __future__ import annotations

from pathlib import Path

import ansible.module_utils
import pytest

SHIPPED = str(Path(__file__).resolve().parents[3] / "plugins" / "module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)


@pytest.fixture
def captures() -> Path:
    """The folder of captured output."""
    return Path(__file__).parent / "captures"
