"""What a rule refuses to answer, in words for an administrator."""

from __future__ import annotations

from hal_inventory.errors import HalError


class RuleError(HalError):
    """A rule cannot answer; the message says why. No traceback is needed."""
