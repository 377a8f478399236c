"""Filters of the role slurm: what a site sets, judged by the parameters that its release of Slurm has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

# Names that hal_slurm_settings and hal_slurm_cgroup_settings give older releases under another name, or leave out.
TRANSLATED = {"slurm.conf": ("SlurmdParameters", "AccountingStoreFlags"), "cgroup.conf": ("CgroupPlugin",)}


def _judge(name: str) -> Callable[..., Any]:
    """A function of hal_inventory.slurm_settings, loaded when called: each of Ansible's workers loads every plugin."""
    return getattr(import_module("hal_inventory.slurm_settings"), name)  # type: ignore[no-any-return]


def hal_slurm_setting_problems(
    variables: Mapping[str, Mapping[str, Any]], version: str, section: str = "slurm.conf"
) -> list[str]:
    """Return a line for each setting of {variable: {parameter: value}} that the release does not take.

    Names and values are judged by the tables with which Slurm's releases read `section`, slurm.conf or cgroup.conf;
    names compare without case. `version`: as 20.02.7; of a release without a table nothing is said. A value of None
    withdraws, and only its name is judged.
    """
    judge = _judge("settings_problems")
    return [
        problem
        for variable, settings in variables.items()
        for problem in judge(variable, settings, version, section=section, translated=TRANSLATED[section])
    ]


def hal_slurm_partition_problems(
    settings: Mapping[str, Mapping[str, Any]], partitions: Sequence[Mapping[str, Any]], version: str
) -> list[str]:
    """Return a line for each fault of slurm_partition_settings; `partitions` are the model's.

    `settings`: parameters by partition, judged by the table with which Slurm's releases read a line of PartitionName.
    `version`: as hal_slurm_setting_problems has it.
    """
    names = [partition["name"] for partition in partitions]
    return list(_judge("partition_problems")("slurm_partition_settings", settings, names, version))


def hal_slurm_model_problems(
    nodes: Sequence[Mapping[str, Any]], partitions: Sequence[Mapping[str, Any]], version: str
) -> list[str]:
    """Return a line for each number or time of the site model that slurm.conf cannot hold.

    `nodes`, `partitions`: lookup('hal', 'slurm.nodes') and lookup('hal', 'slurm.partitions'). They are judged by the
    types of the parameters that they become. `version`: as hal_slurm_setting_problems has it.
    """
    return list(_judge("model_problems")(nodes, partitions, version))


class FilterModule:
    """What Ansible loads."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_slurm_setting_problems": hal_slurm_setting_problems,
            "hal_slurm_partition_problems": hal_slurm_partition_problems,
            "hal_slurm_model_problems": hal_slurm_model_problems,
        }
