"""Filters of the role slurm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules.slurm import foretold, live, partitions, problems, settings


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_slurm_settings": settings.settings,
                "hal_slurm_cgroup_settings": settings.cgroup_settings,
                "hal_slurm_shown": settings.shown_by_scontrol,
                "hal_slurm_setting_problems": problems.variable_problems,
                "hal_slurm_partition_problems": problems.partition_problems,
                "hal_slurm_model_problems": problems.model_problems,
                "hal_slurm_partition_settings": partitions.partition_settings,
                "hal_slurm_qos_first": partitions.qos_first,
                "hal_slurm_qos_declared": partitions.qos_declared,
                "hal_slurm_qos_problems": partitions.qos_problems,
                "hal_slurm_gpu_problems": partitions.gpu_problems,
                "hal_slurm_partition_limits": live.partition_limits,
                "hal_slurm_node_gres": live.node_gres,
                "hal_slurm_node_live": live.node_live,
                "hal_slurm_administrators": live.administrators,
                "hal_slurm_coordinators": live.coordinators,
                "hal_slurm_foretold": foretold.foretold,
            }
        )
