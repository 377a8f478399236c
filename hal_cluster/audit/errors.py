"""The errors of this package."""

from __future__ import annotations


class AuditError(Exception):
    """Something of an audit or a record cannot be used: the message says what and where."""
