"""Filters of playbooks/power.yml and playbooks/bmc.yml: what many BMCs said, as a few lines, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def hal_power_table(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of hal_cluster.bmc.report.power_table.

    `results`: those of module hal_bmc, by node. The first lines are the power states, then come the ways in which BMCs
    failed; each line has its nodes as a range.
    """
    from hal_cluster.bmc.report import power_table

    return power_table(results)


def hal_bmc_table(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the lines of hal_cluster.bmc.report.inventory_table.

    `results`: those of module hal_bmc with action=inventory, by node. A line has firmware, one-time boot, a clock or an
    unwell sensor, and its nodes as a range.
    """
    from hal_cluster.bmc.report import inventory_table

    return inventory_table(results)


def hal_power_refusal(nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return what hal_cluster.bmc.permission.power_refusal says.

    `nodes`: as module hal_slurm_node returns them. The text has the reason and what to do; it is empty where no job
    runs and none may start.
    """
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
