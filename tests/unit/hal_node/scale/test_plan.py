"""The fewest calls of mmchconfig, and none that is not needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.scale.plan import Configured, by_hand, calls, changes, needs_restart, not_effective
from ansible.module_utils.hal_node.scale.text import classes as read_classes
from ansible.module_utils.hal_node.scale.text import configured, members, running

CLIENTS = ["hal01", "hal02", "hal03"]


@pytest.fixture
def now(captures: Path) -> Configured:
    found: Configured = Configured(configured((captures / "mmlsconfig_nodes.txt").read_text()), {})
    return found


def wanted(**attributes: Any) -> dict[str, Any]:
    return {"clients": {"nodes": CLIENTS, "attributes": attributes}}


def lines(now: Configured, cluster: dict[str, Any], classes: dict[str, Any]) -> list[str]:
    of_cluster, of_classes = changes(now, cluster, classes)
    return [change.line() for change in of_cluster + of_classes]


def test_what_is_right_needs_no_call(now: Configured) -> None:
    classes = wanted(maxFilesToCache="128K", verbsPorts=["mlx5_0/1", "mlx5_3/1"])
    classes["servers"] = {"nodes": ["flash1", "flash2"], "attributes": {"nsdBufSpace": 70}}
    assert changes(now, {"autoload": False}, classes) == ([], [])


def test_what_one_node_has_otherwise_is_changed_there_alone(now: Configured) -> None:
    _, changed = changes(now, {}, wanted(pagepool="4G"))
    assert [change.line() for change in changed] == ["pagepool on hal03: 4G instead of 3500m"]
    assert calls(changed) == [["mmchconfig", "pagepool=4G", "-i", "-N", "hal03"]]
    assert not changed[0].pending


def test_one_call_for_each_list_of_nodes_and_flag(now: Configured) -> None:
    _, changed = changes(now, {}, wanted(pagepool="8G", maxMBpS=12000, workerThreads=512, maxStatCache="128K"))
    assert calls(changed) == [
        ["mmchconfig", "maxStatCache=128K,workerThreads=512", "-N", "hal01,hal02,hal03"],
        ["mmchconfig", "maxMBpS=12000,pagepool=8G", "-i", "-N", "hal01,hal02,hal03"],
    ]
    assert sorted(change.attribute for change in changed if change.pending) == ["maxStatCache", "workerThreads"]


def test_the_cluster_gets_a_call_without_nodes(now: Configured) -> None:
    of_cluster, of_classes = changes(now, {"autoload": True, "tscCmdPortRange": "60000-61000"}, {})
    assert of_classes == []
    assert calls(of_cluster) == [["mmchconfig", "autoload=yes,tscCmdPortRange=60000-61000"]]
    assert not any(change.pending for change in of_cluster)


def test_withdrawing_gives_the_default_where_there_is_a_value_and_only_there(now: Configured) -> None:
    classes = wanted(pagepool=None, workerThreads=None)
    assert lines(now, {}, classes) == ["pagepool on hal01,hal02,hal03: DEFAULT instead of 3500m and 4G"]
    assert calls(changes(now, {}, classes)[1])[0][1:] == ["pagepool=DEFAULT", "-i", "-N", "hal01,hal02,hal03"]
    assert lines(now, {"pagepool": None, "maxblocksize": None}, {}) == ["pagepool: DEFAULT instead of 1G"]


def test_a_value_of_the_cluster_that_somebody_set_on_a_node_is_withdrawn_there(now: Configured) -> None:
    assert lines(now, {"maxMBpS": 24000}, wanted()) == [
        "maxMBpS: 24000 instead of the default",
        "maxMBpS on hal02: DEFAULT instead of 24000",
    ]


def test_nodes_of_no_class_are_left_alone(now: Configured) -> None:
    assert lines(now, {"nsdBufSpace": None}, wanted()) == []


def test_what_nobody_declared_is_named(now: Configured) -> None:
    classes = wanted(pagepool="4G", maxFilesToCache="128K", verbsPorts="mlx5_0/1 mlx5_3/1")
    assert by_hand(now, {}, classes) == ["maxMBpS is 24000 on hal02, which nobody declared"]
    assert by_hand(now, {"maxMBpS": 24000}, classes) == []


def test_a_new_node_of_a_class_gets_what_the_others_have(now: Configured) -> None:
    classes = {"clients": {"nodes": [*CLIENTS, "hal04"], "attributes": {"maxFilesToCache": "128K"}}}
    assert lines(now, {}, classes) == ["maxFilesToCache on hal04: 128K instead of DEFAULT"]


def test_what_runs_is_held_against_what_is_configured(now: Configured, captures: Path) -> None:
    shown = running((captures / "mmdiag_config.txt").read_text())
    nodes, declared = frozenset([*CLIENTS, "flash1", "flash2"]), ["pagepool", "maxFilesToCache", "maxStatCache"]
    assert not_effective(now, shown, "hal01", nodes, declared) == {}
    assert not_effective(now, shown, "hal03", nodes, declared) == {"pagepool: configured 3500m": "4294967296"}
    # Not in a list: the cluster's value counts.
    assert not_effective(now, shown, "flash1", nodes, declared) == {"pagepool: configured 1G": "4294967296"}
    shown["maxfilestocache"] = "4000"
    assert not_effective(now, shown, "hal01", nodes, declared) == {"maxFilesToCache: configured 131072": "4000"}
    assert list(not_effective(now, shown, "flash1", nodes, declared)) == ["pagepool: configured 1G"]


def test_what_nobody_declared_is_the_daemons_own_affair(now: Configured) -> None:
    shown = {"maxfilestocache": "4000", "pagepool": "1"}
    assert not_effective(now, shown, "hal01", frozenset(CLIENTS), ["workerThreads"]) == {}


def test_a_restart_is_for_what_a_daemon_takes_at_its_start_alone() -> None:
    lines = ["pagepool: configured 4G", "maxMBpS: configured 24000", "autoload: configured yes"]
    assert [needs_restart(line) for line in lines] == [False, False, False]
    assert needs_restart("workerThreads: configured 512")
    assert needs_restart("afmDIO: configured 2")


def test_what_nodes_have_by_a_class_that_every_cluster_has_is_theirs(captures: Path) -> None:
    """A vendor sets his values for nsdNodes; a published listing of 5.2 has cesNodes."""
    of_scale = read_classes((captures / "mmlsnodeclass_all.txt").read_text())
    read = [("nsdMaxWorkerThreads", "1024", "nsdNodes"), ("maxMBpS", "5000", "cesNodes"), ("maxMBpS", "2000", "")]
    now = Configured(read, of_scale)
    servers = {"nodes": ["flash1", "flash2"], "attributes": {"nsdMaxWorkerThreads": 1024}}
    assert lines(now, {}, {"servers": servers}) == []
    shown, nodes = {"maxmbps": "2000"}, frozenset(["hal01", "hal02"])
    assert not_effective(now, shown, "hal01", nodes, ["maxMBpS"]) == {}
    assert not_effective(now, shown, "hal02", nodes, ["maxMBpS"]) == {"maxMBpS: configured 5000": "2000"}


def test_nodes_are_the_same_by_the_name_of_either_interface(captures: Path) -> None:
    known = members((captures / "mmlscluster_ipoib.txt").read_text())
    read = [("pagepool", "2G", "hal01-ib"), ("workerThreads", "512", "hal01.hal.example,node2-ib")]
    now = Configured([*read, ("maxMBpS", "9", "some")], {"some": frozenset(["hal01-ib"])}, known)
    declared = {"pagepool": "2G", "workerThreads": 512, "maxMBpS": 9}
    assert lines(now, {}, {"clients": {"nodes": ["hal01"], "attributes": declared}}) == []
    nodes = frozenset(known.values())
    assert not_effective(now, {"pagepool": "1"}, "hal01", nodes, declared) == {"pagepool: configured 2G": "1"}


def test_a_class_of_scale_whose_nodes_are_not_known_is_given_the_benefit_of_the_doubt(captures: Path) -> None:
    now = Configured(configured((captures / "mmlsconfig.txt").read_text()), {})
    nodes = frozenset(["ec01", "ec02"])
    declared = ["workerThreads"]
    assert not_effective(now, {"workerthreads": "512"}, "ec01", nodes, declared) == {}
    assert not_effective(now, {"workerthreads": "48"}, "ec01", nodes, declared) == {
        "workerThreads: configured 512": "48"
    }


def test_what_only_commands_read_is_never_pending_on_a_daemon(now: Configured) -> None:
    assert not_effective(now, {"autoload": "1"}, "hal01", frozenset(CLIENTS), ["autoload"]) == {}


def test_a_class_of_scale_counts_for_its_nodes_unless_they_have_their_own(captures: Path) -> None:
    known = {"cesNodes": frozenset(["ec01", "ec02"])}
    read = configured((captures / "mmlsconfig.txt").read_text())
    now = Configured([*read, ("workerThreads", "1024", "ec02")], known)
    nodes = frozenset(["ec01", "ec02", "ec03"])
    of_daemon = ["workerThreads"]
    assert list(not_effective(now, {"workerthreads": "48"}, "ec01", nodes, of_daemon)) == [
        "workerThreads: configured 512"
    ]
    assert list(not_effective(now, {"workerthreads": "512"}, "ec02", nodes, of_daemon)) == [
        "workerThreads: configured 1024"
    ]
    assert not_effective(now, {"workerthreads": "48"}, "ec03", nodes, of_daemon) == {}
    own: dict[str, Any] = {"workerThreads": 512}
    servers = {"servers": {"nodes": ["ec01", "ec02"], "attributes": own}}
    assert lines(now, {}, servers) == ["workerThreads on ec02: 512 instead of 1024"]
    own["workerThreads"] = 1024
    assert lines(now, {}, servers) == ["workerThreads on ec01: 1024 instead of 512"]
    # It cannot be taken from the node alone: that would be asked for at each run.
    assert lines(now, {}, {"servers": {"nodes": ["ec01"], "attributes": {"workerThreads": None}}}) == []
