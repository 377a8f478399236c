"""What a change of the configuration needs, and what is done about it.

Expected values are from the manual pages of the releases, quoted in the tests' names and comments, not from the code.
"""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.change import RULES, classify, decide, describe, needed, stops_first
from hypothesis import given
from hypothesis import strategies as st

NODES = (
    "NodeName=hal[01-02] NodeAddr=10.64.0.[101-102] CPUs=160 Sockets=2 CoresPerSocket=20 ThreadsPerCore=4"
    " RealMemory=240000 Gres=gpu:v100:4 State=UNKNOWN\n"
)
PARTITIONS = "PartitionName=gpu Nodes=hal[01-02] Default=YES MaxTime=24:00:00\nPartitionName=cpu Nodes=hal[01-02]\n"
PLAIN = "ClusterName=hal\nSlurmctldTimeout=120\nSelectType=select/cons_tres\n" + NODES + PARTITIONS


def conf(text: str) -> dict[str, str]:
    return {"slurm.conf": text}


def needs(old: str, new: str, version: str = "22.05.8", node: str | None = None) -> tuple[str, str, set[str]]:
    changes = classify(conf(old), conf(new), version, node)
    return (
        needed(changes, "slurmctld"),
        needed(changes, "slurmd"),
        {daemon for change in changes for daemon in change.unsafe},
    )


@pytest.mark.parametrize(
    "other",
    [
        PLAIN.replace("SlurmctldTimeout", "slurmctldtimeout"),
        "# new comment\n\n" + PLAIN,
        PARTITIONS + NODES + "SelectType=select/cons_tres\nSlurmctldTimeout=120\nClusterName=hal\n",
        PLAIN.replace(" CPUs=160", "\\\n   CPUs=160"),
        PLAIN.replace("Default=YES", "Default=yes"),
        PLAIN.replace("NodeName=hal[01-02]", "NodeName=hal01,hal02"),
    ],
)
def test_the_same_in_other_words_needs_nothing(other: str) -> None:
    assert classify(conf(PLAIN), conf(other), "22.05.8") == []


# (parameter, version, slurmctld, slurmd, unsafe) as slurm.conf(5) of that version has it.
TABLE = [
    ("SlurmctldTimeout", "22.05.8", "reconfigure", "reconfigure", set()),
    ("KillWait", "19.05.8", "reconfigure", "reconfigure", set()),
    ("Prolog", "22.05.8", "reconfigure", "reconfigure", set()),
    # "A restart of slurmctld is required for changes to this parameter to take effect."
    ("AccountingStorageEnforce", "22.05.8", "restart", "nothing", set()),
    ("AccountingStorageEnforce", "20.02.7", "restart", "nothing", set()),
    ("SchedulerType", "22.05.8", "restart", "nothing", set()),
    ("MaxJobCount", "20.02.7", "restart", "nothing", set()),
    # 20.02: "The slurmctld daemon must be restarted"; 22.05: "slurmctld and the slurmd daemons".
    ("GresTypes", "20.02.7", "restart", "nothing", set()),
    ("GresTypes", "22.05.8", "restart", "restart", set()),
    # 20.02: "The slurmd daemon must be restarted for a change in CoreSpecPlugin"
    ("CoreSpecPlugin", "20.02.7", "reconfigure", "restart", set()),
    # "all job information (running and pending) will be lost"
    ("SelectType", "22.05.8", "restart", "restart", {"slurmctld", "slurmd"}),
    # "records of all jobs in any state may be lost"
    ("SwitchType", "22.05.8", "restart", "restart", {"slurmctld", "slurmd"}),
    # "Only change this configuration parameter when there are no running job steps."
    ("JobAcctGatherType", "20.02.7", "restart", "restart", {"slurmctld", "slurmd"}),
    ("StateSaveLocation", "22.05.8", "restart", "nothing", {"slurmctld"}),
    ("SlurmdSpoolDir", "22.05.8", "reconfigure", "restart", {"slurmctld", "slurmd"}),
    ("ProctrackType", "20.02.7", "restart", "restart", {"slurmd"}),
    # Nothing is said of it: a plugin, so the most is assumed.
    ("TaskPlugin", "22.05.8", "restart", "restart", set()),
    ("JobSubmitPlugins", "22.05.8", "restart", "restart", set()),
]


@pytest.mark.parametrize(("parameter", "version", "slurmctld", "slurmd", "unsafe"), TABLE)
@pytest.mark.parametrize(("old", "new"), [("a", "b"), (None, "b"), ("a", None)])
def test_parameters(
    parameter: str, version: str, slurmctld: str, slurmd: str, unsafe: set[str], old: str | None, new: str | None
) -> None:
    before = PLAIN.replace("SelectType=select/cons_tres\n", "") + (f"{parameter}={old}\n" if old else "")
    after = PLAIN.replace("SelectType=select/cons_tres\n", "") + (f"{parameter}={new}\n" if new else "")
    assert needs(before, after, version) == (slurmctld, slurmd, unsafe)


def test_every_rule_says_why_and_where_from() -> None:
    for rules in RULES.values():
        assert [first for first, _rule in rules] == sorted(first for first, _rule in rules)
        for _first, rule in rules:
            assert rule.reason
            assert rule.source


def test_an_added_node_restarts_everything_and_hurts_no_job() -> None:
    grown = PLAIN.replace("hal[01-02]", "hal[01-03]").replace("[101-102]", "[101-103]")
    assert needs(PLAIN, grown, node="hal01") == ("restart", "restart", set())
    change = classify(conf(PLAIN), conf(grown), "22.05.8", "hal01")[0]
    assert (change.subject, change.new) == ("nodes added", "hal03")


def test_a_removed_node_is_unsafe() -> None:
    assert needs(PLAIN, PLAIN.replace("hal[01-02]", "hal01").replace("[101-102]", "101"))[2] == {"slurmctld"}


def test_a_node_with_another_size_concerns_its_own_slurmd_only() -> None:
    smaller = PLAIN.replace(NODES, "").rstrip() + "\n"
    first = NODES.replace("hal[01-02]", "hal01").replace("10.64.0.[101-102]", "10.64.0.101")
    smaller += first.replace("240000", "2000")
    smaller += NODES.replace("hal[01-02]", "hal02").replace("10.64.0.[101-102]", "10.64.0.102")
    assert needs(PLAIN, smaller, node="hal01") == ("restart", "restart", set())
    assert needs(PLAIN, smaller, node="hal02") == ("restart", "reconfigure", set())
    assert stops_first(classify(conf(PLAIN), conf(smaller), "20.02.7", "hal01"))
    assert not stops_first(classify(conf(PLAIN), conf(smaller), "20.02.7", "hal02"))


def test_an_address_concerns_every_slurmd() -> None:
    """Each slurmd forwards messages to the others."""
    moved = PLAIN.replace("10.64.0.[101-102]", "10.64.0.[101,202]")
    assert needs(PLAIN, moved, node="hal01")[:2] == ("restart", "restart")


@pytest.mark.parametrize(("word", "other"), [("CoresPerSocket=20", "CoresPerSocket=18"), ("v100:4", "v100:3")])
def test_fewer_cores_or_gpus_under_jobs_are_unsafe(word: str, other: str) -> None:
    """slurmctld: "Aborting job due to change in socket/core configuration", "... invalid GRES configuration"."""
    assert needs(PLAIN, PLAIN.replace(word, other))[2] == {"slurmctld"}


def test_features_are_taken_at_a_reconfigure() -> None:
    assert needs(PLAIN, PLAIN.replace(" State=", " Feature=ac922 State="))[:2] == ("reconfigure", "reconfigure")


def test_a_partition_limit_is_a_reconfigure_and_a_deleted_partition_is_unsafe() -> None:
    assert needs(PLAIN, PLAIN.replace("24:00:00", "12:00:00")) == ("reconfigure", "nothing", set())
    gone = PLAIN.replace("PartitionName=cpu Nodes=hal[01-02]\n", "")
    assert needs(PLAIN, gone) == ("reconfigure", "nothing", {"slurmctld"})


def test_gpus_of_a_node_concern_its_slurmd_and_slurmctld() -> None:
    four = "NodeName=hal[01-02] Name=gpu Type=v100 File=/dev/nvidia[0-3]\n"
    three = four.replace("hal[01-02]", "hal01") + "NodeName=hal02 Name=gpu Type=v100 File=/dev/nvidia[0-2]\n"
    on_02 = classify({"gres.conf": four}, {"gres.conf": three}, "22.05.8", "hal02")
    assert (needed(on_02, "slurmctld"), needed(on_02, "slurmd")) == ("restart", "restart")
    assert "hal02" in on_02[0].subject
    assert "hal01" not in on_02[0].subject
    on_01 = classify({"gres.conf": four}, {"gres.conf": three}, "22.05.8", "hal01")
    assert needed(on_01, "slurmd") == "reconfigure"


def test_gpus_where_there_were_none_are_safe_and_others_are_not() -> None:
    """A new node's GPUs, while jobs hold those of the others."""
    two = "NodeName=hal[01-02] Name=gpu Type=v100 File=/dev/nvidia[0-3]\n"
    three = two.replace("hal[01-02]", "hal[01-03]")
    assert classify({"gres.conf": two}, {"gres.conf": three}, "22.05.8", "hal01")[0].unsafe == ()
    assert classify({"gres.conf": three}, {"gres.conf": two}, "22.05.8", "hal01")[0].unsafe == ("slurmctld",)
    bare = PLAIN.replace(" Gres=gpu:v100:4", "")
    assert needs(bare, PLAIN)[2] == set()
    assert needs(PLAIN, bare)[2] == {"slurmctld"}


def test_cores_of_gpus_alone_are_safe() -> None:
    """gres.conf(5): "A restart of the slurmctld is needed for changes to the Cores option"."""
    old, new = (f"NodeName=hal01 Name=gpu File=/dev/nvidia0 Cores={cores}\n" for cores in ("0-79", "0-19"))
    change = classify({"gres.conf": old}, {"gres.conf": new}, "22.05.8", "hal01")[0]
    assert (change.slurmctld, change.unsafe, change.stop_first) == ("restart", (), False)


def test_cgroup_and_topology_are_taken_at_a_reconfigure() -> None:
    for name, old, new in (
        ("cgroup.conf", "ConstrainCores=no", "ConstrainCores=yes"),
        ("topology.conf", "SwitchName=a Nodes=hal[01-02]", "SwitchName=b Nodes=hal[01-02]"),
    ):
        changes = classify({name: old}, {name: new}, "22.05.8")
        assert (needed(changes, "slurmctld"), needed(changes, "slurmd")) == ("reconfigure", "reconfigure")


def test_what_cannot_be_read_needs_the_most() -> None:
    assert needs(PLAIN, PLAIN + "nonsense here\n") == ("restart", "restart", {"slurmctld", "slurmd"})


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is not year\.month\.patch"):
        classify(conf("KillWait=1"), conf("KillWait=2"), "latest")


@given(st.text(max_size=200))
def test_any_text_against_itself_is_no_change_and_none_crashes(text: str) -> None:
    assert classify(conf(text), conf(text), "22.05.8") == []
    classify(conf(PLAIN), conf(text), "22.05.8")


def test_a_change_is_one_line_with_its_source() -> None:
    change = classify(conf("MaxJobCount=1"), conf("MaxJobCount=2"), "22.05.8")[0]
    assert describe(change) == (
        "slurm.conf MaxJobCount: 1 -> 2 (read by slurmctld only when it starts; slurm.conf(5) MaxJobCount)"
    )


# ---------------------------------------------------------------- decide


def changes(old: str, new: str) -> list[Any]:
    return list(classify(conf(old), conf(new), "22.05.8", "hal01"))


SAFE = changes("MaxJobCount=1", "MaxJobCount=2")
SOFT = changes("KillWait=1", "KillWait=2")
UNSAFE = changes("StateSaveLocation=/a", "StateSaveLocation=/b")
SPOOL = changes("SlurmdSpoolDir=/a", "SlurmdSpoolDir=/b")


@pytest.mark.parametrize(
    ("found", "restart_ok", "jobs", "action", "pending"),
    [
        (SAFE, False, 0, "restart", "nothing"),
        (SAFE, False, 3, "nothing", "restart"),
        (SAFE, True, 3, "restart", "nothing"),
        (SAFE, False, None, "nothing", "restart"),
        (SAFE, True, None, "restart", "nothing"),
        (SOFT, False, 3, "reconfigure", "nothing"),
        (SOFT, False, None, "reconfigure", "nothing"),
        (SOFT + SAFE, False, 3, "nothing", "restart"),
        (UNSAFE, True, 3, "nothing", "restart"),
        (UNSAFE, True, None, "nothing", "restart"),
        (UNSAFE, False, 0, "restart", "nothing"),
        # slurmctld only has to be told, but it tells every slurmd.
        (SPOOL, True, 1, "nothing", "reconfigure"),
        ([], False, 3, "nothing", "nothing"),
    ],
)
def test_slurmctld(found: list[Any], restart_ok: bool, jobs: int | None, action: str, pending: str) -> None:
    plan = decide("slurmctld", True, found, [], restart_ok, jobs_in_cluster=jobs, jobs_queued=0)
    assert (plan.action, plan.pending) == (action, pending)
    assert bool(plan.blocked) == (pending != "nothing")


def test_a_stopped_daemon_is_always_started() -> None:
    plan = decide("slurmd", False, UNSAFE, [], False, None, None)
    assert (plan.action, plan.pending) == ("start", "nothing")


def test_slurmd_counts_the_jobs_of_its_node_only() -> None:
    found = changes("CoreSpecPlugin=a", "CoreSpecPlugin=b")
    assert decide("slurmd", True, found, [], False, jobs_on_node=0, jobs_in_cluster=9).action == "restart"
    refused = decide("slurmd", True, found, [], False, jobs_on_node=1, jobs_in_cluster=9)
    assert refused.blocked == "1 job runs there; slurm_restart_ok=true permits it, or repeat when none runs"


def test_slurmd_waits_for_slurmctld() -> None:
    found = changes("CoreSpecPlugin=a", "CoreSpecPlugin=b")
    plan = decide("slurmd", True, found, [], True, 0, 0, out_of_order="slurmctld has to restart first")
    assert (plan.action, plan.pending, plan.blocked) == ("nothing", "restart", "slurmctld has to restart first")


def test_a_replaced_program_is_a_reason_of_its_own() -> None:
    plan = decide("slurmd", True, [], ["/usr/sbin/slurmd was replaced"], False, 0, 0)
    assert (plan.action, plan.why) == ("restart", ["/usr/sbin/slurmd was replaced"])


def test_slurmctld_restarts_as_announced_whatever_jobs_began_or_ended_since() -> None:
    """Nodes have stopped their slurmd, or gone on with it, by what was announced."""

    def later(announced: str, found: list[Any], jobs: int | None) -> tuple[str, str]:
        plan = decide("slurmctld", True, found, [], False, jobs_in_cluster=jobs, announced=announced)
        return plan.action, plan.pending

    assert later("restart", SAFE, 3) == ("restart", "nothing")
    assert later("restart", SAFE, None) == ("restart", "nothing")
    assert later("nothing", SAFE, 0) == ("nothing", "restart")
    assert later("nothing", SOFT, 0) == ("reconfigure", "nothing")
    assert later("restart", UNSAFE, 1) == ("nothing", "restart"), "a job that began since is not lost all the same"
    plan = decide("slurmctld", True, SAFE, [], True, jobs_in_cluster=0, announced="nothing")
    assert plan.blocked == "this run decided before, when jobs ran or were not known, that it does not: repeat"


def test_slurmd_stops_as_announced_unless_its_jobs_would_be_lost() -> None:
    smaller = changes("NodeName=hal01 RealMemory=240000\n", "NodeName=hal01 RealMemory=2000\n")
    assert stops_first(smaller)
    assert decide("slurmd", True, smaller, [], False, 1, 1, announced="restart").action == "restart"
    assert decide("slurmd", True, smaller, [], False, 1, 1).action == "nothing"
    assert decide("slurmd", True, smaller + SPOOL, [], False, 1, 1, announced="restart").action == "nothing"
