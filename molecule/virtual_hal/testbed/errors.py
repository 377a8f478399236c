"""The one error root of this package."""

from __future__ import annotations


class VirtualNodesError(Exception):
    """Something that a person can act on: its text is one line that says what and where, then perhaps a log's tail."""
