"""A node, as the audit's tests have it."""

from __future__ import annotations

from tests.unit.hal_node.audit.conftest import hal as hal
