"""What can go wrong, in words for an administrator."""

from __future__ import annotations

from hal_cluster.rules.errors import RuleError
from hal_inventory.errors import FindingsError


class HalCudaError(RuleError):
    """Anything that keeps the table from being used. No traceback is needed."""


class VersionError(HalCudaError):
    """A text that is no version; the message says what one looks like."""


class TableError(FindingsError, HalCudaError):
    """A table that cannot be used: file, line and field of every fault."""
