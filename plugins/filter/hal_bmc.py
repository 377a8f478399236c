"""Filters of playbooks/power.yml and playbooks/bmc.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.bmc import permission, report
from hal_cluster.filters import worded


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_power_table": report.power_table,
                "hal_bmc_table": report.inventory_table,
                "hal_power_refusal": permission.power_refusal,
            }
        )
