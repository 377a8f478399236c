"""What slurmctld and slurmd said while they read a configuration: which of it refuses that, and where it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.hal_node.slurm.said import foreign, last_words, placed, refusals

TEXTS = {
    "slurm.conf": (
        "ClusterName=hal\nSlurmctldTimeout=x\nGresTypes=gpu # not NodeName=hal02\nSchedulerType=sched/back\n"
        "NodeName=hal[01-16] CPUs=160 Gres=gpu:v100:4\nNodeName=hal-test CPUs=4\nNodeName=hal02 CPUs=1\n"
        "PartitionName=gpu Nodes=hal[01-16] MaxTime=1\nPartitionName=test Nodes=hal-tset\n"
        "JobCompPass=secret MaxTime=later\n"
    ),
    "gres.conf": "NodeName=hal[01-16] Name=gpu File=/dev/nvidia0\nNodeName=hal[01-16] Name=fpga File=/dev/fpga0\n",
    "topology.conf": "SwitchName=edr1 Nodes=hal[01-20]\n",
    "cgroup.conf": "ConstrainCores=not\n",
}


def output(captures: Path, name: str, release: str) -> str:
    return (captures / "trial" / f"{name}_{release}.txt").read_text()


@pytest.mark.parametrize("release", ["20.02", "22.05"])
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("slurmctld_healthy", []),
        ("slurmd_healthy", []),
        ("device", []),
        ("duplicate_node", ["Duplicated Node"]),
        ("number", ['SlurmctldTimeout value "x" is not a valid number']),
        ("state", ['Bad value "ON" for State']),
        ("gres_unknown", ["Invalid GRES configured on node hal[01-16]: fpga:4"]),
        ("partition_node", ["Invalid node names in partition test"]),
        ("plugin", ["cannot find sched plugin for sched/back"]),
        ("scheduler", ["Invalid SchedulerParameters bf_window: 0"]),
        ("switch", ["WARNING: Invalid hostnames in switch configuration: hal[17-20]"]),
        ("gres_count", ["WARNING: A line in gres.conf for GRES gpu:v100 has 1 more configured than expected"]),
        ("gres_name", ["Ignoring gres.conf record, invalid name: fpga"]),
        ("cgroup_key", ["Parsing error at unrecognized key: Constrain"]),
        ("partition_key", ["Parsing error at unrecognized key: MaxTme", *["Parse error in file /tmp/hal-slurm-"] * 3]),
        ("gres_key", ["Parsing error at unrecognized key: Fil", *["Parse error in file /tmp/hal-slurm-"] * 4]),
    ],
)
def test_what_is_wrong_with_the_texts_refuses_them_and_nothing_else(
    captures: Path, name: str, release: str, words: list[str]
) -> None:
    found = refusals(output(captures, name, release))
    # 20.02 went on with no partition at all, and ended for that; it adds a place to a key of cgroup.conf.
    found = [message for message in found if message != "No PartitionName information available!"]
    found = [message for message in found if name != "cgroup_key" or "Parse error" not in message]
    assert len(found) == len(words), found
    assert all(word in message for word, message in zip(words, found, strict=True)), found


def test_last_words_are_what_a_daemon_ended_with(captures: Path) -> None:
    assert last_words(output(captures, "device", "20.02")).startswith("can't stat gres.conf file /dev/nvidia7")
    assert last_words("slurmctld: one\nslurmctld: two\n") == "two"
    assert last_words("") == "nothing"


def test_only_an_error_is_a_cause_outside_the_texts(captures: Path) -> None:
    assert foreign(output(captures, "slurmctld_healthy", "22.05")).startswith("Munge encode failed")
    assert foreign(output(captures, "slurmctld_healthy", "20.02")) == ""
    assert foreign("slurmctld: slurmdbd is up\nslurmctld: error: cannot do this\n") == ""


@pytest.mark.parametrize(
    ("message", "places"),
    [
        ('SlurmctldTimeout value "x" is not a valid number', ["slurm.conf line 2: SlurmctldTimeout=x"]),
        (
            "Duplicated NodeHostName hal02 in config file",
            [
                "slurm.conf line 5: NodeName=hal[01-16] CPUs=160 Gres=gpu:v100:4",
                "slurm.conf line 7: NodeName=hal02 CPUs=1",
            ],
        ),
        ("Invalid node names in partition test", ["slurm.conf line 9: PartitionName=test Nodes=hal-tset"]),
        ("cannot find sched plugin for sched/back", ["slurm.conf line 4: SchedulerType=sched/back"]),
        (
            "WARNING: Invalid hostnames in switch configuration: hal[17-20]",
            ["topology.conf line 1: SwitchName=edr1 Nodes=hal[01-20]"],
        ),
        (
            "Ignoring gres.conf record, invalid name: fpga",
            ["gres.conf line 2: NodeName=hal[01-16] Name=fpga File=/dev/fpga0"],
        ),
        ('"not" is not a valid option for "ConstrainCores"', ["cgroup.conf line 1: ConstrainCores=not"]),
        ('Bad value "later" for MaxTime', ["slurm.conf line 10: JobCompPass=... MaxTime=later"]),
        ("something else altogether", []),
    ],
)
def test_a_message_gets_the_lines_that_it_is_about(message: str, places: list[str]) -> None:
    wanted = f"{message} ({'; '.join(places)})" if places else message
    assert placed([message], TEXTS) == [wanted]


def test_slurms_own_place_counts_and_a_long_list_is_cut() -> None:
    parse = [f'Parse error in file /tmp/x/slurm.conf line {number}: "..."' for number in (5, 6, 7, 8)]
    assert placed(["Parsing error at unrecognized key: CPU", *parse], TEXTS) == [
        "Parsing error at unrecognized key: CPU (slurm.conf line 5: NodeName=hal[01-16] CPUs=160 Gres=gpu:v100:4; "
        "slurm.conf line 6: NodeName=hal-test CPUs=4; slurm.conf line 7: NodeName=hal02 CPUs=1; 1 more)"
    ]
    beyond = 'Parse error in file /tmp/x/slurm.conf line 99: "..."'
    assert placed([beyond], TEXTS) == [beyond]
