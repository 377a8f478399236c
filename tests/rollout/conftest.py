"""The small virtual HAL of these tests: made once, always removed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "molecule" / "shared"))

from mini import Mini


@pytest.fixture(scope="session")
def mini() -> Iterator[Mini]:
    """Fresh nodes, nothing rolled out."""
    mini = Mini()
    mini.destroy()
    created = mini.create()
    assert created.status == 0, created.explain()
    yield mini
    mini.destroy()
