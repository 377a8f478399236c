"""The error of this package."""

from __future__ import annotations


class ExpectationsError(Exception):
    """Expectations cannot be loaded at all: the message says which file or role, and why."""
