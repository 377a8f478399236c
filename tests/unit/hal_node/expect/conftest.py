"""What is shipped to nodes is imported under the name it has there, and answers under their Pythons, too (alike.py).

And the controller's package from this checkout, whatever is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(PROJECT))

from tests.unit.alike import alike  # noqa: E402  found through the line above

alike(
    "hal_node.expect.commands",
    "hal_node.expect.evaluate",
    "hal_node.expect.files",
    "hal_node.expect.kernel",
    "hal_node.expect.matchers",
    "hal_node.expect.mounts",
    "hal_node.expect.packages",
    "hal_node.expect.ports",
    "hal_node.expect.services",
    "hal_node.expect.values",
    but=["read_commands"],  # runs commands, and how often is tested
)

from ansible.module_utils.hal_node.expect.values import Reading, Unreadable  # noqa: E402  found through the lines above


@pytest.fixture
def captures() -> Path:
    """The folder of captured output."""
    return Path(__file__).parent / "captures"


def refusal(reading: Any) -> tuple[str, str]:
    """Why nothing is known, with what may quote content."""
    assert isinstance(reading, Unreadable)
    assert str(reading) == reading.reason
    return reading.reason, reading.detail


def whole(reading: Any) -> dict[str, Any]:
    """All that a reading says beyond the usual."""
    usual = Reading().as_dict()
    return {name: value for name, value in reading.as_dict().items() if value != usual[name]}
