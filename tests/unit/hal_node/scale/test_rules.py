"""What is wrong with declared attributes."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.scale.rules import (
    KNOWN,
    applies,
    memory,
    memory_problem,
    problem,
    stat_cache_remark,
)

AC922_MB = 262144


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("maxFileToCache", 4000, "not a known attribute; did you mean maxFilesToCache; if it is right, list"),
        ("frobnicate", 1, "frobnicate is not a known attribute; if it is right, list it in"),
        ("maxfilestocache", 4000, "maxfilestocache: write maxFilesToCache"),
        ("nsdbuffs", 70, "nsdbuffs: write nsdBufSpace"),
        ("nsdbufspace", 70, "nsdbufspace: write nsdBufSpace"),
        ("nsdBufSpace", 71, "nsdBufSpace is 71; write 10 to 70"),
        ("nsdBufSpace", "much", "nsdBufSpace is much; write a number"),
        ("maxFilesToCache", 0, "maxFilesToCache is 0; write 1 to 100000000"),
        ("pagepool", "1M", "pagepool is 1M; write 4194304 or more"),
        ("verbsRdma", True, "verbsRdma is yes; write enable or disable"),
        ("autoload", "maybe", "autoload is maybe; write yes or no"),
        ("readReplicaPolicy", "nearest", "write default or local or fastest or random"),
        ("systemLogLevel", "a,b=c", "'a,b=c' is not a value for mmchconfig"),
        ("systemLogLevel", "", "'' is not a value for mmchconfig"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(attribute: str, value: object, said: str) -> None:
    assert said in problem(attribute, value)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("maxFilesToCache", "128K"),
        ("autoload", True),
        ("pagepool", "4G"),
        ("pagepool", None),
        ("verbsRdma", "enable"),
        ("verbsPorts", ["mlx5_0/1", "mlx5_3/1"]),
        ("verbsRdmaSend", True),
        ("nsdBufSpace", 70),
    ],
)
def test_what_is_right_is_not(attribute: str, value: object) -> None:
    assert problem(attribute, value) == ""


@pytest.mark.parametrize(
    "listing",
    [
        # mmlsconfig of 5.1.4 and 5.1.9 in guides to IBM/ibm-spectrum-scale-cloud-install.
        "workerThreads=1024 unmountOnDiskFail=meta readReplicaPolicy=local nsdSmallThreadRatio=16 nsdThreadsPerQueue=16"
        " nsdBufSpace=70 maxFilesToCache=128K maxStatCache=128K maxblocksize=16M maxMBpS=24000 nsdMaxWorkerThreads=1024"
        " nsdMinWorkerThreads=1024 idleSocketTimeout=0 minMissedPingTimeout=60 failureDetectionTime=60 pagepool=32G"
        " autoBuildGPL=yes restripeOnDiskFailure=yes ignorePrefetchLUNCount=yes numaMemoryInterleave=yes",
        # Guides to 4.2 and 5.1 on github; the second and third are of storage servers.
        "nsdMaxWorkerThreads=3072 nsdSmallThreadRatio=2 worker1Threads=1024 nsdMinWorkerThreads=48 nsdInlineWriteMax=2M"
        " nsdThreadsPerQueue=10 prefetchPct=60 maxFilesToCache=100000 tscCmdPortRange=60000-61000",
        "nfsPrefetchStrategy=1 worker1Threads=720 nsdInlineWriteMax=8K seqDiscardThreshold=999G prefetchPct=40"
        " nsdMinWorkerThreads=32 nsdMaxWorkerThreads=800 maxFilesToCache=4M tokenMemLimit=8G pagepool=32G",
        "socketMaxListenConnections=8192 prefetchThreads=256 prefetchPct=60 nsdMultiQueue=512 maxMBpS=12000",
    ],
)
def test_values_that_clusters_run_with_are_accepted(listing: str) -> None:
    pairs = [one.split("=") for one in listing.split()]
    assert {name: problem(name, value) for name, value in pairs if problem(name, value)} == {}


def test_an_attribute_that_is_listed_is_not_looked_at() -> None:
    assert problem("afmDIO", 2) != ""
    assert problem("afmDIO", 2, ["afmDIO"]) == ""
    assert applies("afmDIO") == "restart"


def test_every_default_is_a_value_that_may_be_declared() -> None:
    assert {name: problem(name, row[1]) for name, row in KNOWN.items() if problem(name, row[1])} == {}


def test_what_applies_at_once_is_what_the_manual_lists() -> None:
    at_once = {"pagepool", "maxMBpS", "nsdBufSpace", "nsdMultiQueue", "ignorePrefetchLUNCount", "nsdInlineWriteMax"}
    restart = {"maxFilesToCache", "maxStatCache", "workerThreads", "nsdMaxWorkerThreads", "nsdMinWorkerThreads"}
    restart |= {"verbsRdma", "verbsPorts", "verbsRdmaSend", "numaMemoryInterleave"}
    assert {name for name in at_once if applies(name) == "now"} == at_once
    assert {name for name in restart if applies(name) == "restart"} == restart


def test_memory_is_the_sum_of_three() -> None:
    assert memory({"pagepool": "4G", "maxFilesToCache": "128K", "maxStatCache": 1000}) == [
        ("pagepool", 4 << 30),
        ("maxFilesToCache x 10 KB", 131072 * 10240),
        ("maxStatCache x 400 B", 400000),
    ]
    assert dict(memory({}))["pagepool"] == 1 << 30


def test_more_memory_than_a_node_spares_is_refused_with_its_parts() -> None:
    declared = {"pagepool": "64G", "maxFilesToCache": "1M", "maxStatCache": "10M"}
    assert memory_problem(declared, AC922_MB, 25) == (
        "needs 79776 MB (pagepool 65536 MB + maxFilesToCache x 10 KB 10240 MB + maxStatCache x 400 B 4000 MB);"
        " 25 % of its 262144 MB are 65536 MB"
    )
    assert memory_problem({"pagepool": "4G"}, AC922_MB, 25) == ""
    assert memory_problem({"pagepool": "64G", "maxFilesToCache": 1}, AC922_MB, 26) == ""


def test_the_stat_cache_before_502_is_remarked_on() -> None:
    declared = {"maxStatCache": "128K"}
    assert stat_cache_remark(declared, "5.0.1-2").startswith("maxStatCache 128K has no effect on Linux")
    assert stat_cache_remark(declared, "4.2.3-22") != ""
    assert stat_cache_remark(declared, "5.0.2-0") == ""
    assert stat_cache_remark(declared, "5.0.1-2", lroc=True) == ""
    assert stat_cache_remark({}, "5.0.1-2") == ""
