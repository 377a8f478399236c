"""What is shipped to nodes is imported under the name it has there, and answers under their Pythons, too (alike.py)."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from tests.unit.alike import alike

alike("hal_node.subids")


@pytest.fixture(scope="session")
def lines() -> Any:
    """The module that reads and plans /etc/subuid."""
    return importlib.import_module("ansible.module_utils.hal_node.subids")
