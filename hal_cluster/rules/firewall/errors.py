"""What can be wrong with a firewall.yml or with what a zone is made from."""

from __future__ import annotations


class FirewallError(Exception):
    """The message says where and what."""
