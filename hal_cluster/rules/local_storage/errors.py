"""What can be wrong with drives that are to be used."""

from __future__ import annotations


class StorageError(Exception):
    """The message says what does not fit together."""
