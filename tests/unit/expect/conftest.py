"""Let tests import what is shipped to nodes under the name it has there, ansible.module_utils.hal_expect_*.

And the controller's package from this checkout, whatever is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import ansible.module_utils
import pytest

PROJECT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(PROJECT))
SHIPPED = str(PROJECT / "plugins" / "module_utils")
if SHIPPED not in ansible.module_utils.__path__:
    ansible.module_utils.__path__.append(SHIPPED)


@pytest.fixture
def captures() -> Path:
    """The folder of captured output."""
    return Path(__file__).parent / "captures"
