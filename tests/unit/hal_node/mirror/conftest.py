"""What is shipped to nodes answers under their Pythons, too (alike.py)."""

from __future__ import annotations

from tests.unit.alike import alike

alike("hal_node.mirror.keys")
