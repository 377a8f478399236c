"""What partitions have beside the model's limits, and how those without GPUs refuse them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

NO_GPUS = "no-gpus"
"""The QOS of partitions whose jobs get no GPU, where the site names none."""
GPU = "gres/gpu"
LIMITS = ("limits", "safe", "all")
"""Words of AccountingStorageEnforce with which limits hold (slurm.conf(5); ``safe`` implies limits)."""


def partition_settings(
    partitions: Iterable[Mapping[str, Any]], more: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return {partition: {name: value}} for the end of each PartitionName= line.

    What the model gives is a GPU's share of its node, in CPUs and MB, and the QOS that refuses GPUs; a partition is up.
    ``more`` are the site's settings, which win; names compare without case, and a null withdraws.
    ``partitions``: the model's slice slurm.partitions. ``more`` is by partition, with slurm.conf's names.
    """
    by_name = {}
    for partition in partitions:
        name = str(partition["name"])
        settings: dict[str, Any] = {
            "DefCpuPerGPU": partition.get("cpus_per_gpu"),
            "DefMemPerGPU": partition.get("memory_per_gpu_mb"),
            "QOS": NO_GPUS if partition.get("refuses_gpus") else None,
            "State": "UP",
        }
        spelling = {key.lower(): key for key in settings}
        for key, value in (more.get(name) or {}).items():
            settings[spelling.setdefault(key.lower(), key)] = value
        by_name[name] = {key: value for key, value in settings.items() if value is not None}
    return by_name


def qos_first(declared: Sequence[Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return [{name}] of the declared QOS that partitions name: what slurmctld needs to find when it starts.

    No limits: a database does not know gres/gpu before slurmctld has started once (AccountingStorageTRES). Names of QOS
    compare without case, as in Slurm (assoc_mgr.c, assoc_mgr_fill_in_qos).
    ``declared``: of `qos_declared`. ``settings``: of `partition_settings`.
    """
    named = _named(settings)
    return [{"name": str(qos["name"])} for qos in _present(declared) if str(qos["name"]).lower() in named]


def qos_declared(
    declared: Sequence[Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the site's QOS, and the one that refuses GPUs if a partition has it and the site did not declare it.

    ``declared``: slurm_qos. ``settings``: of `partition_settings`. Module hal_slurm_account takes the result.
    """
    names = {str(qos.get("name")).lower() for qos in declared}
    if NO_GPUS in names or NO_GPUS not in _named(settings):
        return list(declared)
    ours = {"description": "jobs without GPUs", "flags": ["DenyOnLimit"], "max_tres_per_job": {GPU: 0}}
    return [{"name": NO_GPUS, **ours}, *declared]


def qos_problems(declared: Iterable[Mapping[str, Any]], settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each partition whose QOS the site does not declare as present.

    slurmctld ends at such a partition (read_config.c, "has an invalid qos"), and only QOS that are declared are made
    before it starts. ``declared`` and ``settings`` are what the other functions here return.
    Names compare without case.
    """
    there = {str(qos.get("name")).lower() for qos in _present(declared)}
    return [
        f"partition {name} has the QOS {row['QOS']}, which is not in slurm_qos, or is absent there; slurmctld would "
        f"not start. Declare it in slurm_qos, as {{name: {row['QOS']}}} at least."
        for name, row in settings.items()
        if row.get("QOS") and str(row["QOS"]).lower() not in there
    ]


def gpu_problems(
    partitions: Iterable[Mapping[str, Any]],
    settings: Mapping[str, Mapping[str, Any]],
    qos: Iterable[Mapping[str, Any]],
    cluster: Sequence[Mapping[str, str]],
) -> list[str]:
    """Return a line for each reason why a partition without GPUs would give some all the same.

    ``qos`` and ``settings`` are what the other functions here return, ``cluster`` what `settings.settings` does.
    Slurm needs limits that hold, GPUs that are counted, and a QOS that refuses them. ``partitions``: the model's slice
    slurm.partitions.
    """
    refusing = [str(partition["name"]) for partition in partitions if partition.get("refuses_gpus")]
    if not refusing:
        return []
    wide = {setting["key"].lower(): setting["value"].lower().replace(" ", "").split(",") for setting in cluster}
    problems = []
    if not set(wide.get("accountingstorageenforce", [])) & set(LIMITS):
        problems.append(
            f"AccountingStorageEnforce has no limits, so nothing refuses GPUs in {', '.join(refusing)}: add limits, or "
            "take gpus: false from cluster.yml."
        )
    if GPU not in wide.get("accountingstoragetres", []):
        problems.append(
            f"AccountingStorageTRES has no {GPU}, so Slurm does not count GPUs in {', '.join(refusing)}: add it."
        )
    known = {str(row.get("name")).lower(): row for row in _present(qos)}
    for name in refusing:
        used = settings[name].get("QOS")
        if used is None:
            problems.append(
                f"partition {name} has gpus: false and no QOS that refuses them: leave QOS out, or name one."
            )
        elif not _refuses(known.get(str(used).lower(), {})):
            problems.append(
                f"partition {name} has gpus: false, and its QOS {used} of slurm_qos does not refuse them: it needs "
                f"max_tres_per_job: {{{GPU}: 0}} and the flag DenyOnLimit."
            )
    return problems


def _named(settings: Mapping[str, Mapping[str, Any]]) -> set[str]:
    return {str(partition["QOS"]).lower() for partition in settings.values() if partition.get("QOS")}


def _present(qos: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in qos if row.get("state", "present") == "present"]


def _refuses(qos: Mapping[str, Any]) -> bool:
    limits = qos.get("max_tres_per_job")
    flags = qos.get("flags")
    return (
        isinstance(limits, Mapping)
        and str(limits.get(GPU)) == "0"
        and isinstance(flags, (list, tuple))
        and "denyonlimit" in {str(flag).lower() for flag in flags}
    )
