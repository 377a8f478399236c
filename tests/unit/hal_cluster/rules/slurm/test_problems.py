"""What a site sets, judged by the tables of Slurm's releases."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.rules.slurm.problems import LARGEST, partition_problems, release_of, settings_problems
from hal_inventory.slurm_parameters import RELEASES, SECTIONS

TYPES = {*LARGEST, "float", "boolean", "string", "time", "line", "defunct"}


def said(name: str, value: Any, version: str = "22.05.8", section: str = "slurm.conf") -> str:
    """The one line on a setting, without its place; empty where nothing is wrong."""
    found = settings_problems("site", {name: value}, version, section=section)
    assert len(found) <= 1
    return found[0].removeprefix(f"site.{name}").lstrip(": ") if found else ""


def test_the_table_holds_together() -> None:
    for section, parameters in SECTIONS.items():
        assert len({name.lower() for name in parameters}) == len(parameters), section
        for name, spec in parameters.items():
            kind, *span = spec.split()
            assert kind in TYPES, name
            assert span[::2] in ([], ["from"], ["to"], ["from", "to"]), name
            releases = [RELEASES.index(one) for one in span[1::2]]
            assert releases == sorted(releases), name


# Each was looked up on Slurm's own page or RELEASE_NOTES of the release.
@pytest.mark.parametrize(
    ("name", "with_it", "without"),
    [
        ("FastSchedule", ["19.05.8"], ["20.02.7", "22.05.8"]),
        ("AccountingStoreJobComment", ["19.05.8", "20.11.9"], ["21.08.8"]),
        ("AccountingStoreFlags", ["21.08.8", "22.05.8"], ["20.11.9"]),
        ("NodeSet", ["20.02.7"], ["19.05.8"]),
        ("MaxNodeCount", ["22.05.8"], ["21.08.8"]),
        ("MsgAggregationParams", ["20.02.7"], ["20.11.9"]),
    ],
)
def test_a_parameter_has_its_releases(name: str, with_it: list[str], without: list[str]) -> None:
    assert [said(name, "1", version) for version in with_it] == [""] * len(with_it)
    assert all(said(name, "1", version).startswith("Slurm ") for version in without)
    assert [said(name, None, version) for version in without] == [""] * len(without), "a null withdraws"


def test_a_release_that_was_not_looked_at_is_not_judged() -> None:
    assert release_of("24.05.1") is None
    assert said("NoSuchThing", "x", "24.05.1") == ""
    assert said("NoSuchThing", "x") == "Slurm 22.05 has no such parameter"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("KillWait", 30),
        ("killwait", "65535"),
        ("KillWait", "0x1e"),
        ("KillWait", "INFINITE"),
        ("MaxJobCount", "64k"),
        ("DefMemPerCPU", "18446744073709551615"),
        ("UsePAM", True),
        ("UsePAM", "down"),
        ("TaskPlugin", ["task/affinity", "task/cgroup"]),
        ("PrologFlags", []),
        ("Epilog", '"/usr/sbin/clean all"'),
        ("SchedulerParameters", "bf_window=10080,whatever=1"),
        ("MailProg", r"/usr/bin/mail\#1"),
        ("EnforcePartLimits", "all"),
    ],
)
def test_what_slurm_takes_passes(name: str, value: Any) -> None:
    assert said(name, value) == ""


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("KillWait", -1, "is -1: KillWait is a whole number from 0 to 65535, or UNLIMITED"),
        ("KillWait", "30s", 'is "30s": KillWait is a whole number'),
        ("KillWait", "64k", 'is "64k": KillWait is a whole number'),
        ("KillWait", "08", 'is "08": KillWait is a whole number'),
        ("JobRequeue", True, "is YES: JobRequeue is a whole number"),
        ("MaxJobCount", "4194304k", "is a whole number from 0 to 4294967295"),
        ("UsePAM", "on", 'is "on": UsePAM is YES or NO'),
        ("Epilog", "", "Epilog would have no value; null withdraws it"),
        ("Epilog", "/a\nSlurmUser=root", "Epilog would be more than one line"),
        ("Epilog", "/usr/sbin/clean all", "Epilog has a blank"),
        ("Epilog", '"/usr/sbin/clean" all', "Epilog has a double quote"),
        ("Epilog", "/a#b", "Epilog has a # that begins a comment"),
        ("Epilog", "/a\\", "ends with a backslash"),
        ("Epilog", {"a": 1}, "Epilog takes a text, a number or a list"),
        ("EnforcePartLimits", "some", "EnforcePartLimits is ALL, ANY or NO"),
        ("MaxNodes", 2, "has no such parameter here; it is one of the parameters of a partition"),
        ("SchedulerAuth", "x", "has no SchedulerAuth; every release ignores it"),
    ],
)
def test_what_slurm_does_not_take_is_said_with_what_it_takes(name: str, value: Any, words: str) -> None:
    assert words in said(name, value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("MaxTime", "1-00:00:00", ""),
        ("MaxTime", "4:00", ""),
        ("MaxTime", 30, ""),
        ("MaxTime", "unlimited", ""),
        ("MaxTime", "1d", "MaxTime is a time"),
        ("State", "up", ""),
        ("State", "on", "State is UP, DOWN, DRAIN or INACTIVE"),
        ("OverSubscribe", "FORCE:4", ""),
        ("OverSubscribe", "maybe", "OverSubscribe is NO, EXCLUSIVE"),
        ("MaxNode", 2, 'has no such parameter; did you mean "MaxNodes"?'),
        ("MaxNodes", "two", 'is "two": MaxNodes is a whole number'),
        ("SuspendTimeout", 30, ""),
    ],
)
def test_a_partition_has_parameters_of_its_own(name: str, value: Any, words: str) -> None:
    found = said(name, value, section="PartitionName")
    assert words in found if words else not found


@pytest.mark.parametrize("version", ["20.02.7", "99.05.1"])
@pytest.mark.parametrize(
    ("parameter", "key"),
    [
        *(("Nodes", "nodes"), ("NODES", "nodes"), ("default", "default"), ("Hidden", "hidden")),
        *(("MaxTime", "max_time"), ("defaulttime", "default_time"), ("PriorityTier", "priority")),
        ("MaxCPUsPerNode", "max_cpus_per_node"),
    ],
)
def test_what_the_model_gives_a_partition_is_said_in_the_model(version: str, parameter: str, key: str) -> None:
    for value in ("soon", None):
        assert partition_problems(
            {"debug": {parameter: value, "State": "DOWN"}}, [{"name": "debug"}], version, "p"
        ) == [f"p.debug.{parameter}: say it in cluster.yml, as partitions.debug.{key}"]


def test_partitions_are_those_of_the_model() -> None:
    model = [{"name": "debug"}, {"name": "gpu"}]
    assert partition_problems({"debgu": {"MaxNodes": 2}, "gpu": 3}, model, "22.05.8", "p") == [
        'p.debgu: the model has no such partition; did you mean "debug"?',
        "p.gpu: has to be a mapping of slurm.conf's parameters, such as {MaxNodes: 2}",
    ]
