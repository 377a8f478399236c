"""The program hal-inventory as a user runs it: its tests have the models and captures of those of hal_inventory."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

# Fixtures.
from tests.unit.hal_inventory.capture.conftest import captured as captured
from tests.unit.hal_inventory.capture.conftest import machine as machine
from tests.unit.hal_inventory.capture.conftest import write as write
from tests.unit.hal_inventory.conftest import _own_cache as _own_cache
from tests.unit.hal_inventory.conftest import cache_of_tests as cache_of_tests
from tests.unit.hal_inventory.conftest import folder as folder
from tests.unit.hal_inventory.conftest import hal_inventory as hal_inventory
from tests.unit.hal_inventory.conftest import root as root
from tests.unit.hal_inventory.conftest import small as small
