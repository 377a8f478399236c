"""What can be wrong with drives that are to be used."""

from __future__ import annotations

from hal_cluster.rules.errors import RuleError


class StorageError(RuleError):
    """The message says what does not fit together."""
