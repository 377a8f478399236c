"""Each change of Slurm's configuration as a whole: what it needs of whom, what it would hurt, and its words."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.change import (
    RULES,
    classify,
    decide,
    describe,
    needed,
    release,
    rule_for,
    stops_first,
)


def found(old: str, new: str, node: str | None = "a1", name: str = "slurm.conf", at: str = "22.05.8") -> list[Any]:
    """Subject, values, needs of both daemons, whom it hurts, whether slurmd stops first."""
    changes = classify({name: old}, {name: new}, at, node)
    assert {change.file for change in changes} <= {name}
    return [tuple(change[1:8]) for change in changes]


NOTHING, SOFT, HARD = "nothing", "reconfigure", "restart"
CTLD, BOTH = ("slurmctld",), ("slurmctld", "slurmd")
NODES = "NodeName=a[1-2] CPUs=8 Gres=gpu:4 NodeAddr=10.0.0.[1-2] Port=7 Weight=1\n"


@pytest.mark.parametrize(
    ("version", "numbers"), [("22.05.8", (22, 5)), ("19.05", (19, 5)), ("20.11.0-rc1", (20, 11)), (22.05, (22, 5))]
)
def test_a_release_is_its_year_and_month(version: Any, numbers: tuple[int, int]) -> None:
    assert release(version) == numbers


@pytest.mark.parametrize("version", ["", "22", "v22.05", "x22.05", None])
def test_what_is_no_release_is_said(version: Any) -> None:
    with pytest.raises(ValueError, match=rf"^Slurm version '{version}' is not year\.month\.patch, such as 22\.05\.8$"):
        release(version)


@pytest.mark.parametrize("parameter", ["GresTypes", "JobContainerType"])
def test_a_rule_holds_from_its_release_on(parameter: str) -> None:
    rules = [rule_for(parameter, version)[:2] for version in ("19.05", "21.08", "22.04", "22.05", "22.06", "23.02")]
    before = (HARD, NOTHING) if parameter == "GresTypes" else (SOFT, HARD)
    assert rules == [before] * 3 + [(HARD, HARD)] * 3


def test_the_first_rule_of_a_parameter_holds_from_the_beginning() -> None:
    assert {rules[0][0] for rules in RULES.values()} == {(0,)}


@pytest.mark.parametrize("parameter", ["TaskPlugin", "PrepPlugins", "AcctGatherEnergyType", "TaskPluginParam"])
def test_a_plugin_is_known_by_its_name(parameter: str) -> None:
    both = (HARD, HARD) if parameter != "TaskPluginParam" else (SOFT, SOFT)
    assert rule_for(parameter, "22.05")[:3] == (*both, ())


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("yes", "1", True), ("TRUE", "up", True), ("no", "DOWN", True), ("false", "0", True), ("yes", "no", False),
        ("a", "A", False), ("1", "0", False), ("", "0", False),
    ],
)  # fmt: skip
def test_words_for_yes_and_no_mean_the_same(old: str, new: str, same: bool) -> None:
    changed = [] if same else [("PrivateData", old, new, SOFT, SOFT, (), False)]
    assert found(f"PrivateData={old}\n", f"PrivateData={new}\n") == changed


def test_parameters_that_come_and_go_are_named_as_they_are_written() -> None:
    assert found("KillWait=1\nMaxJobCount=5\n", "killwait=2\nStateSaveLocation=/a\n") == [
        ("killwait", "1", "2", SOFT, SOFT, (), False),
        ("MaxJobCount", "5", None, HARD, NOTHING, (), False),
        ("StateSaveLocation", None, "/a", HARD, NOTHING, CTLD, False),
    ]


# ---------------------------------------------------------------- nodes
@pytest.mark.parametrize(
    ("word", "other", "key", "values", "rest"),
    [
        ("CPUs=8", "CPUs=6", "cpus", ("8", "6"), (HARD, HARD, CTLD, True)),
        ("CPUs=8", "CPUs=8 Boards=1", "boards", (None, "1"), (HARD, HARD, CTLD, True)),
        ("Gres=gpu:4", "Gres=gpu:3", "gres", ("gpu:4", "gpu:3"), (HARD, HARD, CTLD, True)),
        ("Gres=gpu:4 ", "", "gres", ("gpu:4", None), (HARD, HARD, CTLD, True)),
        ("Port=7", "Port=8", "port", (None, None), (HARD, HARD, BOTH, False)),
        ("10.0.0.[1-2]", "10.0.0.[3-4]", "nodeaddr", (None, None), (HARD, HARD, (), False)),
        ("CPUs=8", "CPUs=8 RealMemory=5", "realmemory", (None, "5"), (HARD, HARD, (), True)),
        ("Weight=1", "Weight=2", "weight", ("1", "2"), (SOFT, SOFT, (), False)),
        ("Weight=1", "Weight=1 State=DRAIN", "state", (None, "DRAIN"), (SOFT, SOFT, (), False)),
    ],
)
def test_what_changes_of_nodes(word: str, other: str, key: str, values: Any, rest: Any) -> None:
    new = NODES.replace(word, other)
    assert found(NODES, new) == [(f"node a[1-2] {key}", *values, *rest)]
    address, soft = key in ("port", "nodeaddr"), key in ("weight", "state")
    elsewhere = (rest[0], HARD if address else SOFT, rest[2], False)
    assert found(NODES, new, "a3") == [(f"node a[1-2] {key}", *values, *(rest if soft else elsewhere))]
    assert found(NODES, new, None) == found(NODES, new), "any slurmd"


def test_gpus_that_a_node_gets_first_hurt_no_job() -> None:
    bare = NODES.replace("Gres=gpu:4 ", "")
    assert found(bare, NODES) == [("node a[1-2] gres", None, "gpu:4", HARD, HARD, (), True)]


def test_nodes_that_differ_in_the_same_way_are_one_change_and_others_another() -> None:
    one = "NodeName=a[1-3] CPUs=8\n"
    other = "NodeName=a[1,3] CPUs=6\nNodeName=a2 CPUs=4 Feature=x\n"
    assert found(one, other) == [
        ("node a[1,3] cpus", "8", "6", HARD, HARD, CTLD, True),
        ("node a2 cpus", "8", "4", HARD, SOFT, CTLD, False),
        ("node a2 feature", None, "x", SOFT, SOFT, (), False),
    ]


def test_nodes_come_and_go_with_words_for_each() -> None:
    changes = classify({"slurm.conf": "NodeName=a[1-3]\n"}, {"slurm.conf": "NodeName=a[3-5]\n"}, "20.02", "a3")
    assert [tuple(change[1:8]) for change in changes] == [
        ("nodes removed", "a[1-2]", None, HARD, HARD, CTLD, False),
        ("nodes added", None, "a[4-5]", HARD, HARD, (), False),
    ]
    assert [describe(change) for change in changes] == [
        "slurm.conf nodes removed: a[1-2] -> (not set) (daemons must restart; jobs on a removed node are killed;"
        " scontrol(1) reconfigure; slurm.conf(5) NODE CONFIGURATION)",
        "slurm.conf nodes added: (not set) -> a[4-5] (daemons must restart: each slurmd forwards messages to every"
        " node; scontrol(1) reconfigure; slurm.conf(5) NODE CONFIGURATION)",
    ]


def test_why_a_node_s_line_needs_what_it_needs() -> None:
    reasons = {}
    for word, other in (("CPUs=8", "CPUs=6"), ("gpu:4", "gpu:3"), ("Port=7", "Port=8"), ("10.0.0.[1-2]", "b[1-2]")):
        (change,) = classify({"slurm.conf": NODES}, {"slurm.conf": NODES.replace(word, other)}, "22.05", None)
        reasons[change.subject.split()[-1]] = (change.reason, "read_config.c" in change.source)
    assert reasons == {
        "cpus": ("slurmctld aborts jobs on a node whose sockets or cores changed", True),
        "gres": ("slurmctld aborts jobs whose GPUs no longer fit", True),
        "port": ("running steps look for slurmd at the old port", False),
        "nodeaddr": ("slurmctld and slurmd must agree on the node's line", False),
    }


# ---------------------------------------------------------------- partitions and the rest
def test_what_changes_of_partitions() -> None:
    old = "PartitionName=a Nodes=x Default=YES MaxTime=5\nPartitionName=b Nodes=y\nPartitionName=d State=UP\n"
    new = "PartitionName=a Nodes=z Default=yes Hidden=NO\nPartitionName=c Nodes=y\nPartitionName=d State=up\n"
    assert found(old, new) == [
        ("partition a hidden", None, "NO", SOFT, NOTHING, (), False),
        ("partition a maxtime", "5", None, SOFT, NOTHING, (), False),
        ("partition a nodes", "x", "z", SOFT, NOTHING, (), False),
        ("partition b", "there", None, SOFT, NOTHING, CTLD, False),
        ("partition c", None, "there", SOFT, NOTHING, (), False),
    ]


def test_other_lines_need_the_most() -> None:
    old, new = "DownNodes=a Reason=x\nNodeSet=s Nodes=a\n", "Include /b\n"
    assert found(old, new) == [
        ("other lines", "DownNodes=a Reason=x; NodeSet=s Nodes=a", "Include /b", HARD, HARD, BOTH, False)
    ]
    assert found("", new) == [("other lines", None, "Include /b", HARD, HARD, BOTH, False)]


FOUR = "NodeName=a[1-2] Name=gpu File=/dev/nvidia[0-3] Cores=0-3\n"


@pytest.mark.parametrize(
    ("old", "new", "node", "change"),
    [
        (FOUR, FOUR.replace("0-3]", "0-2]"), "a1", ("a[1-2]", HARD, CTLD, True)),
        (FOUR, FOUR.replace("0-3]", "0-2]"), "a9", ("a[1-2]", SOFT, CTLD, False)),
        (FOUR, FOUR.replace("0-3]", "0-2]"), None, ("a[1-2]", HARD, CTLD, True)),
        (FOUR, FOUR.replace("Cores=0-3", "CPUs=0-7"), "a1", ("a[1-2]", HARD, (), False)),
        (FOUR, FOUR.replace("a[1-2]", "a[1-3]"), "a1", ("a3", SOFT, (), False)),
        (FOUR, "", "a1", ("a[1-2]", HARD, CTLD, True)),
        ("", "Name=gpu\n", "a1", ("every node", HARD, (), True)),
        (FOUR, f"{FOUR}Name=mps\n", "a1", ("every node", HARD, (), True)),
    ],
)
def test_what_changes_of_devices(old: str, new: str, node: str | None, change: Any) -> None:
    names, slurmd, unsafe, first = change
    (one,) = found(old, new, node, "gres.conf")
    assert (one[0], one[3:]) == (f"devices of {names}", (HARD, slurmd, unsafe, first))


def test_devices_are_shown_by_what_differs() -> None:
    old = "NodeName=a[1-2] Name=gpu Count=4\nNodeName=a3 Name=gpu Count=1\n"
    new = "NodeName=a1 Name=gpu Count=4\nNodeName=a2 Name=gpu Count=3\nNodeName=a2 Name=mps\nNodeName=a3 Name=x\n"
    ((subject, before, after, *_),) = found(old, new, "a2", "gres.conf")
    assert (subject, before, after) == (
        "devices of a[2-3]", "count=1 name=gpu | count=4 name=gpu", "count=3 name=gpu; name=mps | name=x",
    )  # fmt: skip
    ((_, before, after, *_),) = found("", "Name=gpu\n", "a2", "gres.conf")
    assert (before, after) == (None, "name=gpu")
    ((_, before, after, *_),) = found("Name=gpu\n", "", "a2", "gres.conf")
    assert (before, after) == ("name=gpu", None)
    assert found("NodeName=a1 Name=gpu\n", "# x\nNodeName=a1 Name=gpu\n", "a1", "gres.conf") == []


def test_why_devices_need_what_they_need() -> None:
    reasons = []
    for new in (FOUR.replace("Cores=0-3", "Cores=0"), FOUR.replace("gpu", "mps")):
        (change,) = classify({"gres.conf": FOUR}, {"gres.conf": new}, "22.05", "a1")
        reasons.append((change.reason, change.source))
    assert reasons == [
        ("slurmctld takes Cores= only when it starts", "gres.conf(5) Cores"),
        (
            "slurmctld and slurmd must agree on type and number; jobs whose GPUs no longer fit are aborted",
            "gres.conf(5) Type; source slurmctld/read_config.c (invalid GRES configuration)",
        ),
    ]


def test_what_changes_of_cgroups_and_switches() -> None:
    assert found("CgroupPlugin=a\nA=no\n", "CgroupPlugin=b\nA=yes\n", name="cgroup.conf") == [
        ("A", "no", "yes", SOFT, SOFT, (), False),
        ("CgroupPlugin", "a", "b", HARD, HARD, ("slurmd",), False),
    ]
    lines = "SwitchName=a Nodes=x\nSwitchName=b Nodes=y\n"
    assert found(lines, "SwitchName=a Nodes=x\n", name="topology.conf") == [
        ("switches", "2 lines", "1 lines", SOFT, SOFT, (), False)
    ]
    assert found(lines, lines.replace("SwitchName=a Nodes=x", "NODES=x SwitchName=a"), name="topology.conf") == []


def test_files_without_rules_and_texts_that_cannot_be_read_need_the_most() -> None:
    changes = classify({"x.conf": "a", "slurm.conf": ""}, {"slurm.conf": "nonsense"}, "22.05", "a1")
    assert [(change.file, tuple(change[1:8])) for change in changes] == [
        ("slurm.conf", ("the whole file", None, None, HARD, HARD, BOTH, True)),
        ("x.conf", ("the whole file", None, None, HARD, HARD, BOTH, True)),
    ]
    assert [describe(change) for change in changes] == [
        "slurm.conf the whole file (cannot be compared: not Key=Value: 'nonsense'; none)",
        "x.conf the whole file (cannot be compared: no rules for this file; none)",
    ]
    assert stops_first(changes)


# ---------------------------------------------------------------- what is done about it
def made(old: str, new: str) -> list[Any]:
    return list(classify({"slurm.conf": old}, {"slurm.conf": new}, "22.05", "a1"))


SAFE, UNSAFE = made("MaxJobCount=1", "MaxJobCount=2"), made("StateSaveLocation=/a", "StateSaveLocation=/b")
TELLS, HOST = made("KillWait=1", "KillWait=2"), made("SlurmctldHost=a", "SlurmctldHost=b")
TWO_PARTITIONS, ONE_PARTITION = "PartitionName=a Nodes=x\nPartitionName=b Nodes=x\n", "PartitionName=a Nodes=x\n"


def test_of_all_changes_the_one_that_needs_the_most_counts() -> None:
    assert [needed(TELLS + SAFE, daemon) for daemon in BOTH] == [HARD, SOFT]
    assert [needed(SAFE + TELLS, daemon) for daemon in BOTH] == [HARD, SOFT]
    assert [needed([], daemon) for daemon in BOTH] == [NOTHING, NOTHING]


@pytest.mark.parametrize(
    ("changes", "jobs", "blocked"),
    [
        (UNSAFE, None, "it would lose jobs, and whether there are any is not known"),
        (UNSAFE, 1, "1 job runs in the cluster, and it would lose them: repeat when there is none, no permission"
                    " overrides this"),
        (UNSAFE, 2, "2 jobs run in the cluster, and it would lose them: repeat when there is none, no permission"
                    " overrides this"),
        (HOST, 2, "2 jobs run in the cluster, and it would lose them: repeat when none runs, no permission overrides"
                  " this"),
        (SAFE, None, "whether jobs run is not known (no answer from slurmctld); slurm_restart_ok=true permits it"),
        (SAFE, 1, "1 job runs there; slurm_restart_ok=true permits it, or repeat when none runs"),
        (SAFE, 3, "3 jobs run there; slurm_restart_ok=true permits it, or repeat when none runs"),
    ],
)  # fmt: skip
def test_why_it_is_not_done_now(changes: list[Any], jobs: int | None, blocked: str) -> None:
    plan = decide("slurmctld", True, changes, [], False, 0, jobs, jobs_queued=0)
    assert plan == (NOTHING, HARD, blocked, [describe(changes[0])])
    idle = decide("slurmctld", True, changes, [], False, 9, 0, jobs_queued=0)
    assert idle == (HARD, NOTHING, "", [describe(changes[0])])


@pytest.mark.parametrize(
    ("runs", "waits", "blocked"),
    [
        (0, 2041, "2041 jobs wait in the cluster, and it would lose them: repeat when there is none, no permission"
                  " overrides this"),
        (1, 1, "1 job runs and 1 job waits in the cluster, and it would lose them: repeat when there is none, no"
               " permission overrides this"),
        (0, None, "it would lose jobs, and whether there are any is not known"),
    ],
)  # fmt: skip
def test_jobs_that_wait_are_jobs(runs: int, waits: int | None, blocked: str) -> None:
    """slurm.conf(5), SelectType: "all job information (running and pending) will be lost"."""
    for permitted in (False, True):
        plan = decide("slurmctld", True, UNSAFE, [], permitted, 0, runs, jobs_queued=waits)
        assert (plan.action, plan.pending, plan.blocked) == (NOTHING, HARD, blocked)
    # What loses only those that run does not wait for a queue, which on a busy cluster is never empty.
    assert decide("slurmctld", True, HOST, [], False, 0, 0, jobs_queued=waits).action == HARD


QUEUED = ["clustername", "selecttype", "statesavelocation", "switchtype"]


def test_which_changes_lose_what_waits() -> None:
    assert sorted(name for name, rules in RULES.items() for _first, rule in rules if rule.queued) == QUEUED
    for old, new in ((TWO_PARTITIONS, ONE_PARTITION), ("", "Include /b\n"), ("", "nonsense here\n")):
        assert [one.queued for one in made(old, new)] == [True], new


def test_without_a_record_no_permission_restarts_over_a_job() -> None:
    said = "1 job runs there; it was started before the toolkit kept what it reads, so no permission overrides this"
    for permitted, announced in ((True, ""), (False, "restart"), (True, "restart")):
        plan = decide("slurmctld", True, SAFE, [], permitted, 0, 1, "", announced, recorded=False)
        assert (plan.action, plan.pending, plan.blocked) == (NOTHING, HARD, f"{said}: repeat when none runs")
    unknown = decide("slurmctld", True, [], ["newer"], True, 0, None, recorded=False)
    assert unknown.blocked.startswith("whether jobs run is not known (no answer from slurmctld); it was started before")
    assert decide("slurmctld", True, SAFE, [], False, 0, 0, recorded=False).action == HARD
    assert decide("slurmctld", True, TELLS, [], False, 9, 9, recorded=False).action == SOFT


def test_a_stopped_daemon_with_jobs_starts_with_the_files_that_it_had() -> None:
    kept = decide("slurmctld", False, UNSAFE, [], True, stake="/s/job_state has jobs that slurmctld saved")
    said = "/s/job_state has jobs that slurmctld saved: it starts with the files that it had"
    why = ["slurmctld does not run", describe(UNSAFE[0])]
    assert kept == ("start", HARD, said, why)
    new = ("start", NOTHING, "", ["slurmctld does not run"])
    assert decide("slurmctld", False, UNSAFE, [], False) == new
    assert decide("slurmctld", False, SAFE, [], False, stake="jobs") == new
    assert decide("slurmd", False, SAFE, [], False, out_of_order="slurmctld first").blocked == (
        "slurmctld first: it starts with the files that it had"
    )


def test_what_slurmctld_waits_for_slurmd_waits_for_too() -> None:
    """A slurmd at a new port hears nothing from a slurmctld at the old one."""
    port = made("SlurmctldPort=6817", "SlurmctldPort=6900")
    assert [decide(name, True, port, [], True, 0, 3).pending for name in BOTH] == [HARD, HARD]


def test_reasons_are_those_of_the_daemon_and_what_is_not_of_the_files_comes_first() -> None:
    plan = decide("slurmd", True, SAFE + TELLS, ["replaced", "newer"], True, 0, 0)
    assert plan == (HARD, NOTHING, "", ["replaced", "newer", describe(TELLS[0])])
    assert decide("slurmd", True, SAFE, [], False, None, None) == (NOTHING, NOTHING, "", [])
    assert decide("slurmd", False, SAFE, ["x"], False) == ("start", NOTHING, "", ["slurmd does not run"])


def test_what_would_hurt_the_other_daemon_is_not_told_it_by_slurmctld() -> None:
    spool = made("SlurmdSpoolDir=/a", "SlurmdSpoolDir=/b")
    tracker = made("ProctrackType=a", "ProctrackType=b")
    assert decide("slurmctld", True, spool, [], True, 0, 1).action == NOTHING
    assert decide("slurmctld", True, tracker, [], True, 0, 1).action == HARD, "it tells nobody by a restart"
    assert decide("slurmd", True, tracker, [], True, 0, 1).action == NOTHING
    assert decide("slurmd", True, UNSAFE, [], True, 1, 1) == (NOTHING, NOTHING, "", [])


@pytest.mark.parametrize("announced", ["start", "restart"])
def test_what_was_announced_is_permitted(announced: str) -> None:
    assert decide("slurmctld", True, SAFE, [], False, 0, 3, announced=announced).action == HARD
    assert decide("slurmctld", True, SAFE, [], False, 0, 3, announced="reconfigure").pending == HARD
    out = decide("slurmctld", True, SAFE, [], True, 0, 0, "first that", announced)
    assert (out.action, out.blocked) == (NOTHING, "first that")
