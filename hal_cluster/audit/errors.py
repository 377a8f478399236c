"""The errors of this package."""

from __future__ import annotations

from hal_inventory.errors import HalError


class AuditError(HalError):
    """Something of an audit or a record cannot be used: the message says what and where."""
