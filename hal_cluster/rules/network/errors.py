"""What can be wrong with the interfaces that a node is declared to have."""

from __future__ import annotations

from hal_cluster.rules.errors import RuleError


class NetworkError(RuleError):
    """The message says what does not fit together."""
