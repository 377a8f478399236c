"""The module that reads /etc/subuid."""

from __future__ import annotations

from tests.unit.hal_node.conftest import lines as lines
