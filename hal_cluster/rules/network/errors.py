"""What can be wrong with the interfaces that a node is declared to have."""

from __future__ import annotations


class NetworkError(Exception):
    """The message says what does not fit together."""
