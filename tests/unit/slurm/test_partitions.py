"""What partitions have beside the model's limits, and which of them could not refuse GPUs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[3]
GPU: dict[str, Any] = {"name": "gpu", "cpus_per_gpu": 40, "memory_per_gpu_mb": 60000, "refuses_gpus": False}
CPU: dict[str, Any] = {"name": "cpu", "cpus_per_gpu": None, "memory_per_gpu_mb": None, "refuses_gpus": True}
CLUSTER = [
    {"key": "AccountingStorageEnforce", "value": "associations,limits"},
    {"key": "AccountingStorageTRES", "value": "gres/gpu"},
]
NO_GPUS = {
    "name": "no-gpus",
    "description": "jobs without GPUs",
    "flags": ["DenyOnLimit"],
    "max_tres_per_job": {"gres/gpu": 0},
}


@pytest.fixture(scope="module")
def partitions() -> ModuleType:
    """The filter plugin, loaded as Ansible does: by its path."""
    path = PROJECT / "plugins" / "filter" / "hal_slurm_partitions.py"
    spec = importlib.util.spec_from_file_location("hal_slurm_partitions_filter", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_gpu_brings_its_share_and_a_partition_without_refuses(partitions: ModuleType) -> None:
    assert partitions.hal_slurm_partition_settings([GPU, CPU], {}) == {
        "gpu": {"DefCpuPerGPU": 40, "DefMemPerGPU": 60000},
        "cpu": {"QOS": "no-gpus"},
    }


def test_the_site_wins_in_any_case_and_null_withdraws(partitions: ModuleType) -> None:
    more = {
        "gpu": {"defcpupergpu": None, "DEFMEMPERGPU": 1, "LLN": "YES"},
        "cpu": {"qos": "own"},
        "other": {"LLN": "NO"},
    }
    assert partitions.hal_slurm_partition_settings([GPU, CPU], more) == {
        "gpu": {"DefMemPerGPU": 1, "LLN": "YES"},
        "cpu": {"QOS": "own"},
    }


def test_the_qos_that_refuses_is_added_where_a_partition_has_it_and_nobody_declares_it(partitions: ModuleType) -> None:
    named = {"cpu": {"QOS": "no-gpus"}, "debug": {"QOS": "debug"}, "more": {"QOS": "debug"}, "gpu": {}}
    debug, own = {"name": "debug"}, {"name": "no-gpus", "priority": 1}
    gone = {"name": "more", "state": "absent"}
    assert partitions.hal_slurm_qos_first([NO_GPUS, {"name": "other"}, gone], {**named, "x": {"QOS": "more"}}) == [
        {"name": "no-gpus"}
    ]
    assert partitions.hal_slurm_qos_declared([debug], named) == [NO_GPUS, debug]
    assert partitions.hal_slurm_qos_declared([debug, own], named) == [debug, own]
    assert partitions.hal_slurm_qos_declared([debug], {"debug": {"QOS": "debug"}}) == [debug]


def test_what_refuses_gpus_has_no_problem(partitions: ModuleType) -> None:
    settings = partitions.hal_slurm_partition_settings([GPU, CPU], {})
    assert partitions.hal_slurm_gpu_problems([GPU, CPU], settings, [NO_GPUS], CLUSTER) == []
    assert partitions.hal_slurm_gpu_problems([GPU], settings, [], []) == []


@pytest.mark.parametrize(
    "qos",
    [
        {"state": "absent"},
        {"flags": None},
        {"flags": ["PartitionTimeLimit"]},
        {"max_tres_per_job": None},
        {"max_tres_per_job": {"gres/gpu": "00"}},
        {"flags": "DenyOnLimit"},
        {"name": "other"},
    ],
)
def test_a_qos_that_does_not_refuse_is_named(partitions: ModuleType, qos: dict[str, Any]) -> None:
    settings = partitions.hal_slurm_partition_settings([CPU], {})
    (said,) = partitions.hal_slurm_gpu_problems([CPU], settings, [{**NO_GPUS, **qos}], CLUSTER)
    assert said.startswith("partition cpu has gpus: false, and its QOS no-gpus of slurm_qos does not refuse them")
