"""What can go wrong, in words for an administrator."""

from __future__ import annotations

from hal_inventory.errors import FindingsError, HalError


class HalPackagesError(HalError):
    """Anything that keeps packages from being declared, locked or checked. No traceback is needed."""


class LockFileError(FindingsError, HalPackagesError):
    """A lock file that cannot be used: file, line and field of every fault."""
