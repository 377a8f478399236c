"""The least and the most that each attribute takes, as IBM's pages have them, and what is made of them in messages."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.scale.rules import (
    KNOWN,
    applies,
    is_switch,
    memory,
    memory_problem,
    problem,
    release,
)
from ansible.module_utils.hal_node.scale.text import ScaleTextError, classes, configured, file_system, state

RANGES: dict[str, tuple[int, int | None]] = {
    "failureDetectionTime": (10, 600),
    "idleSocketTimeout": (0, None),
    "maxblocksize": (65536, 16777216),
    "maxFilesToCache": (1, 100000000),
    "maxMBpS": (0, 100000),
    "maxStatCache": (0, 100000000),
    "minMissedPingTimeout": (1, None),
    "nfsPrefetchStrategy": (0, 10),
    "nsdBufSpace": (10, 70),
    "nsdInlineWriteMax": (0, 8388608),
    "nsdMaxWorkerThreads": (8, 8192),
    "nsdMinWorkerThreads": (8, 8192),
    "nsdMultiQueue": (2, 512),
    "nsdSmallThreadRatio": (0, None),
    "nsdThreadsPerQueue": (1, None),
    "pagepool": (4194304, None),
    "pagepoolMaxPhysMemPct": (10, 90),
    "pitWorkerThreadsPerNode": (0, 8192),
    "prefetchPct": (0, 60),
    "prefetchThreads": (2, 10240),
    "seqDiscardThreshold": (0, None),
    "socketMaxListenConnections": (1, 65536),
    "tokenMemLimit": (134217728, None),
    "tscTcpPort": (1, 65535),
    "verbsRdmaRoCEToS": (-1, 255),
    "worker1Threads": (1, 8192),
    "workerThreads": (1, 8192),
    "writebehindThreshold": (0, None),
}


def test_every_attribute_that_is_a_number_has_its_borders_here() -> None:
    numbers = {name for name, row in KNOWN.items() if row[0] and isinstance(row[0][0], int)}
    assert numbers == set(RANGES)


@pytest.mark.parametrize(("name", "least", "most"), [(name, *borders) for name, borders in RANGES.items()])
def test_a_border_is_accepted_and_what_is_beyond_it_is_refused_with_both(
    name: str, least: int, most: int | None
) -> None:
    words = f"{least} or more" if most is None else f"{least} to {most}"
    assert problem(name, least) == ""
    assert problem(name, least - 1) == f"{name} is {least - 1}; write {words}"
    if most is None:
        assert problem(name, 1 << 50) == ""
    else:
        assert problem(name, most) == ""
        assert problem(name, most + 1) == f"{name} is {most + 1}; write {words}"


def test_numbers_that_nobody_declares_are_the_defaults_of_the_manual() -> None:
    assert {name: KNOWN[name][1] for name in RANGES} == {
        "failureDetectionTime": 35,
        "idleSocketTimeout": 3600,
        "maxblocksize": 4194304,
        "maxFilesToCache": 4000,
        "maxMBpS": 2048,
        "maxStatCache": 1000,
        "minMissedPingTimeout": 3,
        "nfsPrefetchStrategy": 0,
        "nsdBufSpace": 30,
        "nsdInlineWriteMax": 1024,
        "nsdMaxWorkerThreads": 512,
        "nsdMinWorkerThreads": 16,
        "nsdMultiQueue": 256,
        "nsdSmallThreadRatio": 0,
        "nsdThreadsPerQueue": 3,
        "pagepool": 1073741824,
        "pagepoolMaxPhysMemPct": 75,
        "pitWorkerThreadsPerNode": 0,
        "prefetchPct": 20,
        "prefetchThreads": 72,
        "seqDiscardThreshold": 1048576,
        "socketMaxListenConnections": 128,
        "tokenMemLimit": 536870912,
        "tscTcpPort": 1191,
        "verbsRdmaRoCEToS": -1,
        "worker1Threads": 48,
        "workerThreads": 48,
        "writebehindThreshold": 524288,
    }


def test_a_comma_is_for_a_list_of_ports_alone() -> None:
    assert problem("verbsPorts", "mlx5_0/1,mlx5_3/1") == ""
    assert [problem("automountDir", f"/a{mark}b") != "" for mark in ",=\n\"' "] == [True] * 5 + [False]
    assert problem("verbsPorts", "") == "verbsPorts: '' is not a value for mmchconfig"


def test_memory_counts_defaults_and_a_node_may_spend_the_last_byte_it_spares() -> None:
    of_nothing = [
        ("pagepool", 1073741824),
        ("maxFilesToCache x 10 KB", 40960000),
        ("maxStatCache x 400 B", 400000),
    ]
    assert memory({}) == memory({"pagepool": None}) == of_nothing
    exactly = {"pagepool": 1 << 30, "maxFilesToCache": 160, "maxStatCache": 61440}  # 1024 MB, 1600 KB and 24000 KB
    assert sum(size for _, size in memory(exactly)) == 1049 << 20
    assert memory_problem(exactly, 2098, 50) == ""
    assert memory_problem({**exactly, "maxStatCache": 61441}, 2098, 50).startswith("needs 1049 MB (pagepool 1024 MB")


def test_a_release_is_its_first_three_numbers() -> None:
    assert [release(one) for one in ("5.0.4-3", "5.0.4.1-3", "4.2")] == [(5, 0, 4), (5, 0, 4), (4, 2)]


def test_what_is_no_attribute_of_the_table_waits_for_a_restart_and_switches_have_spellings() -> None:
    assert [applies(name) for name in ("nobodysOwn", "AUTOLOAD", "PagePool")] == ["restart", "mm", "now"]
    assert [is_switch(one) for one in (True, "Off", "enable", "maybe", 2, 1)] == [True] * 3 + [False] * 3


@pytest.mark.parametrize(("length", "quoted"), [(80, "x" * 80), (81, "x" * 80 + "...")])
def test_the_beginning_of_a_broken_line_is_quoted(length: int, quoted: str) -> None:
    with pytest.raises(ScaleTextError) as caught:
        configured("x" * length + "\nand more\n")
    assert str(caught.value) == f'mmlsconfig printed "{quoted}"'


@pytest.mark.parametrize("count", [0, 2])
def test_the_state_of_other_than_one_daemon_is_refused(count: int) -> None:
    header = "mmgetstate::HEADER:version:reserved:reserved:nodeName:state:\n"
    with pytest.raises(ScaleTextError) as caught:
        state(header + "mmgetstate::0:1:::hal01:active:\n" * count)
    assert str(caught.value) == f"mmgetstate shows {count} nodes instead of this one"


def test_a_file_system_of_which_nothing_is_shown_is_refused() -> None:
    with pytest.raises(ScaleTextError, match=r"^mmlsfs shows nothing of this file system$"):
        file_system("mmlsfs::HEADER:version:reserved:reserved:deviceName:fieldName:data:\n")


def test_rows_of_another_kind_and_lines_between_rows() -> None:
    header = "mmlsconfig::HEADER:version:reserved:reserved:configParameter:value:nodeList:\n"
    row = "mmlsconfig::0:1:::pagepool:4G::\n"
    assert configured("mmlsconfig:x:HEADER:a:b:c:\n" + header + "mmlsconfig:x:0:1:2:3:\n\n" + row) == [
        ("pagepool", "4G", "")
    ]
    assert configured("mmlsconfig:x:HEADER:a:b:c:\n") == []
    with pytest.raises(ScaleTextError, match=r'^mmlsconfig: a line is broken: "GPFS is down"$'):
        configured(header + row + "  GPFS is down\n")


def test_a_class_that_has_a_node_of_its_own_name_has_this_node_and_goes_over_lines() -> None:
    text = "Name  Members\n----- ------\nhal01 hal01.hal,hal02\n      hal03\n\nall   hal01\n"
    every = frozenset(["hal01", "hal02", "hal03"])
    assert classes(text) == {"hal01": every, "all": every}


def test_a_class_with_a_node_of_its_own_name_has_the_nodes_of_its_other_members() -> None:
    found = classes("Name Members\n-----\na     a,b\nb     hal01\n")
    assert found == {"a": frozenset(["a", "hal01"]), "b": frozenset(["hal01"])}
