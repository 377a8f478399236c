"""Makes `tests.contract` importable, whatever folder pytest was started in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
# A planted violation that was not found shows both lists.
pytest.register_assert_rewrite("tests.contract.planting")
