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
    mini.play("molecule/shared/destroy.yml")
    created = mini.play("molecule/shared/create.yml")
    assert created.status == 0, created.output[-6000:]
    yield mini
    mini.play("molecule/shared/destroy.yml")
