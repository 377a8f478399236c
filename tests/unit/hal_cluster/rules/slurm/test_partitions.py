"""What partitions have beside the model's limits, and which of them could not refuse GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.slurm import partitions

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


def test_a_gpu_brings_its_share_and_a_partition_without_refuses() -> None:
    assert partitions.partition_settings([GPU, CPU], {}) == {
        "gpu": {"DefCpuPerGPU": 40, "DefMemPerGPU": 60000, "State": "UP"},
        "cpu": {"QOS": "no-gpus", "State": "UP"},
    }


def test_the_site_wins_in_any_case_and_null_withdraws() -> None:
    more: dict[str, dict[str, Any]] = {
        "gpu": {"defcpupergpu": None, "DEFMEMPERGPU": 1, "LLN": "YES", "state": "DOWN"},
        "cpu": {"qos": "own", "STATE": None},
        "other": {"LLN": "NO"},
    }
    assert partitions.partition_settings([GPU, CPU], more) == {
        "gpu": {"DefMemPerGPU": 1, "LLN": "YES", "State": "DOWN"},
        "cpu": {"QOS": "own"},
    }


def test_the_qos_that_refuses_is_added_where_a_partition_has_it_and_nobody_declares_it() -> None:
    named = {"cpu": {"QOS": "no-gpus"}, "debug": {"QOS": "debug"}, "more": {"QOS": "debug"}, "gpu": {}}
    debug, own = {"name": "debug"}, {"name": "no-gpus", "priority": 1}
    gone = {"name": "more", "state": "absent"}
    assert partitions.qos_first([NO_GPUS, {"name": "other"}, gone], {**named, "x": {"QOS": "more"}}) == [
        {"name": "no-gpus"}
    ]
    assert partitions.qos_declared([debug], named) == [NO_GPUS, debug]
    assert partitions.qos_declared([debug, own], named) == [debug, own]
    assert partitions.qos_declared([debug], {"debug": {"QOS": "debug"}}) == [debug]


@pytest.mark.parametrize("name", ["debug", "Debug", "DEBUG"])
def test_a_qos_has_one_name_in_any_case(name: str) -> None:
    settings = {"debug": {"QOS": "dEbug"}, "gpu": {"State": "UP"}}
    assert partitions.qos_first([{"name": name}], settings) == [{"name": name}]
    assert partitions.qos_problems([{"name": name}], settings) == []
    own = [{"name": "No-GPUs"}]
    assert partitions.qos_declared(own, {"cpu": {"QOS": "no-gpus"}}) == own
    assert partitions.qos_declared([], {"cpu": {"QOS": "NO-GPUS"}}) == [NO_GPUS]
    refusing = {"cpu": {"QOS": "NO-gpus"}}
    assert partitions.gpu_problems([CPU], refusing, [{**NO_GPUS, "name": "No-GPUs"}], CLUSTER) == []


@pytest.mark.parametrize(
    "declared", [[], [{"name": "debgu"}], [{"name": "debug", "state": "absent"}], [{"name": "debug-2"}, {"name": None}]]
)
def test_a_qos_that_would_end_slurmctld_is_named(declared: list[dict[str, Any]]) -> None:
    settings = {"debug": {"QOS": "debug"}, "gpu": {"QOS": ""}, "cpu": {}}
    (said,) = partitions.qos_problems(declared, settings)
    assert said.startswith("partition debug has the QOS debug, which is not in slurm_qos, or is absent there")
    assert "{name: debug}" in said


def test_what_refuses_gpus_has_no_problem() -> None:
    settings = partitions.partition_settings([GPU, CPU], {})
    assert partitions.gpu_problems([GPU, CPU], settings, [NO_GPUS], CLUSTER) == []
    assert partitions.gpu_problems([GPU], settings, [], []) == []


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
def test_a_qos_that_does_not_refuse_is_named(qos: dict[str, Any]) -> None:
    settings = partitions.partition_settings([CPU], {})
    (said,) = partitions.gpu_problems([CPU], settings, [{**NO_GPUS, **qos}], CLUSTER)
    assert said.startswith("partition cpu has gpus: false, and its QOS no-gpus of slurm_qos does not refuse them")
