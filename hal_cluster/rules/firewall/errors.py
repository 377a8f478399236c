"""What can be wrong with a firewall.yml or with what a zone is made from."""

from __future__ import annotations

from hal_cluster.rules.errors import RuleError


class FirewallError(RuleError):
    """The message says where and what."""
