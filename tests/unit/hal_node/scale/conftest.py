"""What is shipped to nodes is imported under the name it has there, and answers under their Pythons, too (alike.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.alike import alike

alike("hal_node.scale.plan", "hal_node.scale.rules", "hal_node.scale.text", "hal_node.scale.values")


@pytest.fixture
def captures() -> Path:
    """The folder of captured output."""
    return Path(__file__).parent / "captures"
