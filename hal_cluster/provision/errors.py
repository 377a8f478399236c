"""What can be wrong with what a node is to boot or install."""

from __future__ import annotations

from hal_inventory.errors import HalError


class ProvisionError(HalError):
    """The message says what is wrong, where, and what would be right. It never has a token in it."""
