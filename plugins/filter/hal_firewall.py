"""Filters of the role firewall."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules.firewall import shares, there


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_firewall_files": shares.files,
                "hal_firewall_losses": there.losses,
                "hal_firewall_unread": there.unread,
                "hal_firewall_seen": there.section,
                "hal_firewall_said": there.said,
            }
        )
