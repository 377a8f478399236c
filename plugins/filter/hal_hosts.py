"""Filters of the role hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import hosts


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_host_suffixes": hosts.suffixes_of,
                "hal_network_names": hosts.network_names,
                "hal_hosts_foreign": hosts.foreign,
                "hal_hosts_said": hosts.said,
            }
        )
