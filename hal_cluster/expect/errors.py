"""The error of this package."""

from __future__ import annotations

from hal_inventory.errors import HalError


class ExpectationsError(HalError):
    """Expectations cannot be loaded at all: the message says which file or role, and why."""
