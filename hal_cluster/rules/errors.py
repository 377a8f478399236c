"""What a rule refuses to answer, in words for an administrator."""

from __future__ import annotations


class RuleError(Exception):
    """A rule cannot answer; the message says why. No traceback is needed."""
