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
        "gpu": {"DefCpuPerGPU": 40, "DefMemPerGPU": 60000, "State": "UP"},
        "cpu": {"QOS": "no-gpus", "State": "UP"},
    }


def test_the_site_wins_in_any_case_and_null_withdraws(partitions: ModuleType) -> None:
    more = {
        "gpu": {"defcpupergpu": None, "DEFMEMPERGPU": 1, "LLN": "YES", "state": "DOWN"},
        "cpu": {"qos": "own", "STATE": None},
        "other": {"LLN": "NO"},
    }
    assert partitions.hal_slurm_partition_settings([GPU, CPU], more) == {
        "gpu": {"DefMemPerGPU": 1, "LLN": "YES", "State": "DOWN"},
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


@pytest.mark.parametrize("name", ["debug", "Debug", "DEBUG"])
def test_a_qos_has_one_name_in_any_case(partitions: ModuleType, name: str) -> None:
    settings = {"debug": {"QOS": "dEbug"}, "gpu": {"State": "UP"}}
    assert partitions.hal_slurm_qos_first([{"name": name}], settings) == [{"name": name}]
    assert partitions.hal_slurm_qos_problems([{"name": name}], settings) == []
    own = [{"name": "No-GPUs"}]
    assert partitions.hal_slurm_qos_declared(own, {"cpu": {"QOS": "no-gpus"}}) == own
    assert partitions.hal_slurm_qos_declared([], {"cpu": {"QOS": "NO-GPUS"}}) == [NO_GPUS]
    refusing = {"cpu": {"QOS": "NO-gpus"}}
    assert partitions.hal_slurm_gpu_problems([CPU], refusing, [{**NO_GPUS, "name": "No-GPUs"}], CLUSTER) == []


@pytest.mark.parametrize(
    "declared", [[], [{"name": "debgu"}], [{"name": "debug", "state": "absent"}], [{"name": "debug-2"}, {"name": None}]]
)
def test_a_qos_that_would_end_slurmctld_is_named(partitions: ModuleType, declared: list[dict[str, Any]]) -> None:
    settings = {"debug": {"QOS": "debug"}, "gpu": {"QOS": ""}, "cpu": {}}
    (said,) = partitions.hal_slurm_qos_problems(declared, settings)
    assert said.startswith("partition debug has the QOS debug, which is not in slurm_qos, or is absent there")
    assert "{name: debug}" in said


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
