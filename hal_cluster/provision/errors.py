"""What can be wrong with what a node is to boot or install."""

from __future__ import annotations


class ProvisionError(Exception):
    """The message says what is wrong, where, and what would be right. It never has a token in it."""
