"""What was changed while slurmctld and slurmdbd run is found: the role's own promises, asked of what Slurm prints.

Nodes and partitions are captures of Slurm 22.05.8 (of tests/unit/hal_node/slurm and tests/unit/hal_cluster/reimage),
and what differs is made of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from ansible.module_utils.hal_node.expect.evaluate import evaluate

from hal_cluster.rules.errors import RuleError
from hal_cluster.rules.slurm import live

PROJECT = Path(__file__).resolve().parents[5]
ENTRIES = {one["id"]: one for one in yaml.safe_load((PROJECT / "roles/slurm/expect.yml").read_text())}
NODE = PROJECT / "tests/unit/hal_cluster/reimage/captures/node_proving.txt"
CAPTURES = PROJECT / "tests/unit/hal_node/slurm/captures"
GPU: dict[str, Any] = {
    **{"name": "gpu", "nodes": "hal[01-16]", "default": True, "max_time": "24:00:00", "default_time": "04:00:00"},
    **{"max_cpus_per_node": None, "priority": 1, "hidden": False},
}
CPU = {**GPU, "name": "cpu", "default": False, "max_cpus_per_node": 96}
DEBUG = {**GPU, "name": "debug", "default": False, "max_time": "04:00:00", "priority": 2}
TEST = {**GPU, "name": "test", "nodes": "hal-test", "default": False, "hidden": True}
HAL = (GPU, CPU, DEBUG, TEST)
# What of them a site may say besides.
SETTINGS: dict[str, dict[str, Any]] = {
    "gpu": {
        **{"OverSubscribe": "force", "AllowAccounts": ["vision", "isl"], "DenyQos": "normal", "GraceTime": 30},
        **{"PreemptMode": "off"},
    },
    "cpu": {
        **{"OverSubscribe": "yes", "QOS": "normal", "LLN": "yes", "DefMemPerCPU": 1200, "MaxMemPerCPU": 2400},
        **{"OverTimeLimit": 10, "MinNodes": 1, "MaxNodes": 4, "TRESBillingWeights": "CPU=1.0,Mem=0.25G"},
    },
    "debug": {
        **{"OverSubscribe": "FORCE:1", "AllowGroups": "root,slurm", "ExclusiveUser": "yes", "RootOnly": False},
        **{"ReqResv": "yes", "AllocNodes": "hal01", "DenyAccounts": "x", "PriorityJobFactor": 3},
    },
    "test": {"OverSubscribe": "exclusive", "DefMemPerNode": 100, "Alternate": "gpu"},
}
WIDE = [{"key": "DisableRootJobs", "value": "YES"}, {"key": "OverTimeLimit", "value": "5"}]
PARTITIONS = (CAPTURES / "partition.txt").read_text()


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make Slurm's programs say something."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def say(program: str, text: str) -> None:
        (tmp_path / f"{program}.txt").write_text(text)
        (tmp_path / program).write_text(f"#!/bin/sh\ncat '{tmp_path}/{program}.txt'\n")
        (tmp_path / program).chmod(0o755)

    return say


def rendered(value: Any, variables: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return jinja2.Template(value).render(**variables)
    if isinstance(value, dict):
        return {key: rendered(one, variables) for key, one in value.items()}
    return [rendered(one, variables) for one in value] if isinstance(value, list) else value


def broken(entry: str, items: list[dict[str, str]] | None = None, **variables: Any) -> dict[str, Any]:
    """What of a promise does not hold: {item's id, or the promise's: what was seen}."""
    asked = []
    for item in items or [{"id": entry}]:
        given = {**variables, "item": item, "hal_node": {"name": "hal01"}}
        fields = {key: ENTRIES[entry][key] for key in ("command", "equal", "absent") if key in ENTRIES[entry]}
        asked.append({"id": item["id"], **rendered(fields, given)})
    results = evaluate(asked)
    assert all(one["status"] in ("pass", "fail") for one in results), results
    return {one["id"]: seen["observed"] for one, seen in zip(asked, results, strict=True) if seen["status"] == "fail"}


def limits(**more: Any) -> list[dict[str, str]]:
    found: list[dict[str, str]] = live.partition_limits(HAL, more)
    return found


# ---------------------------------------------------------------- partitions
def test_partitions_as_slurm_shows_them_keep_the_promise(says: Any) -> None:
    says("scontrol", PARTITIONS)
    assert len(limits()) == 4 * 25
    assert broken("partition is as declared", limits()) == {}


def test_settings_as_slurm_shows_them_keep_the_promise(says: Any) -> None:
    says("scontrol", (CAPTURES / "partition_settings.txt").read_text())
    asked = live.partition_limits(HAL, SETTINGS, WIDE)
    assert broken("partition is as declared", asked) == {}
    named = {one["key"].lower() for one in asked}
    assert {key.lower() for one in SETTINGS.values() for key in one} - named == {"alternate"}
    says("scontrol", PARTITIONS)
    assert broken("partition is as declared", asked).keys() >= {"gpu DenyQos", "cpu QoS", "test OverSubscribe"}


def test_what_a_gpu_brings_is_shown_in_slurms_order(says: Any) -> None:
    """Seen of Slurm 22.05.8."""
    says("scontrol", PARTITIONS.replace("JobDefaults=(null)", "JobDefaults=DefCpuPerGPU=40,DefMemPerGPU=60000", 1))
    asked = limits(gpu={"DefMemPerGPU": 60000, "defcpupergpu": 40})
    assert broken("partition is as declared", asked) == {}


@pytest.mark.parametrize(
    ("was", "is_now", "named"),
    [
        ("MaxTime=1-00:00:00", "MaxTime=UNLIMITED", {"gpu MaxTime": "UNLIMITED"}),
        ("AllowGroups=ALL", "AllowGroups=mallory", {"gpu AllowGroups": "mallory"}),
        ("PriorityTier=1", "PriorityTier=900", {"gpu PriorityTier": "900"}),
        ("MaxNodes=UNLIMITED", "MaxNodes=1", {"gpu MaxNodes": "1"}),
        ("TotalNodes=16", "TotalNodes=4", {"gpu TotalNodes": "4"}),
        ("AllowQos=ALL", "DenyQos=normal", {"gpu AllowQos": None}),
        ("DefMemPerNode=UNLIMITED", "DefMemPerCPU=1", {"gpu DefMemPerNode": None}),
        ("MaxMemPerNode=UNLIMITED", "MaxMemPerNode=1", {"gpu MaxMemPerNode": "1"}),
        ("JobDefaults=(null)", "JobDefaults=DefMemPerGPU=1", {"gpu JobDefaults": "DefMemPerGPU=1"}),
        ("State=UP", "State=DOWN", {}),  # an administrator's
    ],
)
def test_a_limit_that_was_changed_live_is_named(says: Any, was: str, is_now: str, named: dict[str, Any]) -> None:
    assert was in PARTITIONS
    says("scontrol", PARTITIONS.replace(was, is_now, 1))
    assert broken("partition is as declared", limits()) == named


def test_a_partition_that_was_made_live_is_named_and_one_that_is_gone(says: Any) -> None:
    says("scontrol", PARTITIONS + PARTITIONS.replace("PartitionName=gpu ", "PartitionName=gpu2 "))
    promise = "no partition that nobody declared"
    assert broken(promise, __slurm_partitions=HAL) == {promise: "gpu2"}
    says("scontrol", PARTITIONS)
    assert broken(promise, __slurm_partitions=HAL) == {}
    says("scontrol", PARTITIONS[: PARTITIONS.index("PartitionName=test ")])
    assert len(broken("partition is as declared", limits())) == 25


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [
        ("MaxTime", "24:00:00", "1-00:00:00"),
        ("MaxTime", "90", "01:30:00"),
        ("MaxTime", "infinite", "UNLIMITED"),
        ("DefaultTime", "none", "NONE"),
        ("Hidden", True, "YES"),
        ("LLN", "yes", "YES"),
        ("OverSubscribe", "force", "FORCE:4"),
        ("OverSubscribe", "FORCE:1", "FORCE:1"),
        ("OverSubscribe", "yes", "YES:4"),
        ("OverSubscribe", "exclusive", "EXCLUSIVE"),
        ("PreemptMode", "off", "OFF"),
        ("AllowAccounts", ["a", "b"], "a,b"),
        ("GraceTime", 30, "30"),
    ],
)
def test_values_are_as_scontrol_prints_them(key: str, value: Any, shown: str) -> None:
    (one,) = [each for each in limits(gpu={key: value}) if each["id"] == f"gpu {key}"]
    assert one["value"] == shown


def test_names_of_settings_may_be_spelled_as_slurm_conf_allows() -> None:
    given = {"QOS": "long", "denyaccounts": "x", "Alternate": "y", "defmempercpu": 7}
    found = {one["id"]: one["value"] for one in limits(gpu=given)}
    assert (found["gpu QoS"], found["gpu DenyAccounts"], found["cpu QoS"]) == ("long", "x", "N/A")
    assert not {"gpu AllowAccounts", "gpu Alternate", "gpu DefMemPerNode"} & set(found)
    wide = live.partition_limits([GPU], {}, [{"key": "DisableRootJobs", "value": "YES"}])
    assert not any(one["key"] == "DisableRootJobs" for one in wide), "the cluster's setting is each partition's"


def test_a_time_that_is_none_and_a_range_that_is_none_are_named() -> None:
    with pytest.raises(RuleError, match=r"^partition gpu: MaxTime: 'soon' is not a time"):
        limits(gpu={"MaxTime": "soon"})
    with pytest.raises(RuleError, match=r"host list 'hal\[x\]'"):
        live.node_live([{"names": "hal[x]"}], [], "hal01")


# ---------------------------------------------------------------- nodes
LINES = [
    {"names": "hal[01-16]", "features": ["ac922", "ppc64le", "v100"], "gres": "gpu:v100:4"},
    {"names": "hal-test,hal[20-21]", "features": [], "gres": ""},
]
LIVE = [
    {"id": "AvailableFeatures", "value": "ac922,ppc64le,v100"},
    {"id": "ActiveFeatures", "value": "ac922,ppc64le,v100"},
    {"id": "Weight", "value": "1"},
    {"id": "Partitions", "value": "gpu,cpu,debug"},
]
PROMISE = "slurmctld has of the node what is declared"


def test_a_node_as_the_model_has_it_keeps_the_promise(says: Any) -> None:
    says("scontrol", NODE.read_text())
    assert live.node_live(LINES, HAL, "hal01") == LIVE
    assert broken(PROMISE, LIVE) == {}


def test_a_node_that_was_put_into_another_partition_is_named_though_their_number_is_as_it_was(says: Any) -> None:
    says("scontrol", NODE.read_text().replace("Partitions=gpu,cpu,debug ", "Partitions=gpu,cpu,test "))
    assert broken(PROMISE, LIVE) == {"Partitions": "gpu,cpu,test"}


def test_of_a_node_without_gpus_features_or_partitions() -> None:
    def shown(name: str) -> dict[str, str]:
        return {one["id"]: one["value"] for one in live.node_live(LINES, HAL, name)}

    none = {"AvailableFeatures": "(null)", "ActiveFeatures": "(null)", "Weight": "1", "Gres": "(null)"}
    assert shown("hal-test") == {**none, "Partitions": "test"}
    assert shown("hal20") == none


def test_gpus_of_a_node_are_those_of_its_line() -> None:
    assert live.node_gres(LINES, "hal01") == "gpu:v100:4"
    assert live.node_gres(LINES, "hal-test") == ""
    assert live.node_gres(LINES, "hal20") == ""


def test_features_gres_and_weight_that_were_changed_live_are_named(says: Any) -> None:
    text = NODE.read_text().replace("ActiveFeatures=ac922,ppc64le,v100", "ActiveFeatures=mine")
    says("scontrol", text.replace("Weight=1 ", "Weight=7 "))
    assert broken(PROMISE, LIVE) == {"ActiveFeatures": "mine", "Weight": "7"}
    none = [{"id": "Gres", "value": "(null)"}]
    assert broken(PROMISE, none) == {"Gres": "gpu:v100:4(S:0-1)"}
    says("scontrol", NODE.read_text().replace("Gres=gpu:v100:4(S:0-1)", "Gres=(null)"))
    assert broken(PROMISE, none) == {}


def test_what_somebody_wrote_as_a_reason_is_none_of_it(says: Any) -> None:
    says("scontrol", NODE.read_text().rstrip("\n") + " Reason=was Weight=7 [root@2026-11-26T08:00:00]\n")
    assert broken(PROMISE, LIVE) == {}


# ---------------------------------------------------------------- accounting
def administrators(*users: dict[str, Any]) -> dict[str, Any]:
    return broken("nobody else administers Slurm", __slurm_administrators=live.administrators(users))


def test_a_user_who_was_made_administrator_is_named(says: Any) -> None:
    says("sacctmgr", (CAPTURES / "administrators.txt").read_text())
    promise = "nobody else administers Slurm"
    assert administrators() == {promise: "carol|Operator"}
    assert administrators({"name": "carol", "admin_level": "Operator"}) == {}
    says("sacctmgr", "alice|None\nmallory|Administrator\nopera|Operator\nroot|Administrator\n")
    assert administrators() == {promise: ["mallory|Administrator", "opera|Operator"]}
    opera = {"name": "opera", "admin_level": "operator", "accounts": ["isl"]}
    assert administrators(opera) == {promise: "mallory|Administrator"}
    mallory = {"name": "mallory", "admin_level": "Operator"}
    assert administrators(opera, mallory) == {promise: "mallory|Administrator"}, "another level"
    assert administrators({**mallory, "admin_level": "Administrator", "state": "absent"}, opera) == {
        promise: "mallory|Administrator"
    }


def test_a_name_is_no_pattern_and_no_part_of_another(says: Any) -> None:
    says("sacctmgr", "op|Operator\nopera|Operator\nroot|Administrator\nxroot|Administrator\n")
    found = administrators({"name": "o.", "admin_level": "Operator"})
    assert found == {"nobody else administers Slurm": ["op|Operator", "opera|Operator", "xroot|Administrator"]}


def test_a_coordinator_whom_nobody_declared_is_named(says: Any) -> None:
    promise = "nobody else coordinates an account"

    def found(*accounts: dict[str, Any]) -> Any:
        return broken(promise, __slurm_coordinated=live.coordinators(accounts)).get(promise)

    shown = (CAPTURES / "coordinators.txt").read_text()
    assert shown == "cameras|alice,bob\nisl|\nlab|alice\nroot|\nvision|alice,alice,bob\n"
    says("sacctmgr", shown)
    alice, both = {"name": "lab", "coordinators": ["alice"]}, {"name": "vision", "coordinators": ["alice", "bob"]}
    assert found({"name": "isl"}) == ["cameras|alice,bob", "lab|alice", "vision|alice,alice,bob"]
    assert found(alice) == ["cameras|alice,bob", "vision|alice,alice,bob"]
    assert found(alice, {**both, "state": "absent"}) == ["cameras|alice,bob", "vision|alice,alice,bob"]
    assert found({"name": "lab", "coordinators": None}) == ["cameras|alice,bob", "vision|alice,alice,bob"]
    assert found(alice, both) is None, "of the accounts below theirs, too"
    says("sacctmgr", shown.replace("isl|", "isl|alicex"))
    assert found(alice, both) == "isl|alicex"
    says("sacctmgr", shown.replace("lab|alice", "lab|mallory"))
    assert found(alice, both) is None, "what an account declares itself the audit compares"
