"""Filters of playbooks/power.yml and playbooks/bmc.yml: what many BMCs said, as a few lines, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def hal_power_table(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of hal_cluster.bmc.report.power_table."""
    from hal_cluster.bmc.report import power_table

    return power_table(results)


def hal_bmc_table(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of hal_cluster.bmc.report.inventory_table."""
    from hal_cluster.bmc.report import inventory_table

    return inventory_table(results)


def hal_power_refusal(nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what hal_cluster.bmc.permission.power_refusal says."""
    from hal_cluster.bmc.permission import power_refusal

    return power_refusal(nodes)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_power_table": hal_power_table,
            "hal_bmc_table": hal_bmc_table,
            "hal_power_refusal": hal_power_refusal,
        }
