"""Slurm's files are read as Slurm reads them."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.slurm.conf import (
    SlurmConfError,
    expand,
    fold,
    logical_lines,
    pairs,
    parse,
    parse_gres,
)
from hypothesis import given
from hypothesis import strategies as st


def test_comments_blanks_and_continuations_mean_nothing() -> None:
    text = "# all of it\n\nKillWait=30   # seconds\nNodeName=a \\\n  CPUs=4\n"
    assert logical_lines(text) == ["KillWait=30", "NodeName=a CPUs=4"]


def test_an_escaped_hash_is_no_comment() -> None:
    assert logical_lines("Reason=a\\#1") == ["Reason=a\\#1"]


def test_a_value_in_quotes_keeps_its_blanks() -> None:
    assert pairs('Reason="bad fan" State=DOWN') == [("Reason", "bad fan"), ("State", "DOWN")]


def test_a_line_that_is_no_pair_is_named() -> None:
    with pytest.raises(SlurmConfError, match="not Key=Value: 'PartitionName'"):
        pairs("PartitionName")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("hal01", ["hal01"]),
        ("hal[01-03]", ["hal01", "hal02", "hal03"]),
        ("hal[09-10,12],x", ["hal09", "hal10", "hal12", "x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("10.64.0.[101-102]", ["10.64.0.101", "10.64.0.102"]),
    ],
)
def test_host_lists_expand(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize("text", ["hal[1-]", "hal[a-b]", "hal[3-1]", "hal[1-10000000]", "r[1-999]n[1-999]"])
def test_a_broken_or_endless_range_is_refused(text: str) -> None:
    with pytest.raises(SlurmConfError):
        expand(text)


@given(st.sets(st.integers(min_value=0, max_value=99), min_size=1))
def test_folding_loses_no_name(numbers: set[int]) -> None:
    names = {f"hal{number:02}" for number in numbers}
    assert set(expand(fold(names))) == names


def test_each_node_has_the_defaults_and_its_own_address() -> None:
    conf = parse("NodeName=DEFAULT CPUs=4 Weight=2\nNodeName=a[1-2] NodeAddr=10.0.0.[1-2] Weight=3\n")
    assert conf.nodes["a2"] == {"cpus": "4", "weight": "3", "nodeaddr": "10.0.0.2"}


def test_a_default_holds_for_the_lines_after_it_only() -> None:
    conf = parse("NodeName=a CPUs=1\nNodeName=DEFAULT CPUs=4\nNodeName=b\n")
    assert (conf.nodes["a"]["cpus"], conf.nodes["b"]["cpus"]) == ("1", "4")


def test_every_controller_is_kept_in_order() -> None:
    assert parse("SlurmctldHost=a\nSlurmctldHost=b\n").parameters["slurmctldhost"][1] == "a;b"


def test_devices_of_a_node_do_not_depend_on_the_order_of_lines() -> None:
    one = "NodeName=a[1-2] Name=gpu File=/dev/nvidia[0-1]\nNodeName=a[1-2] Name=gpu File=/dev/nvidia[2-3]\n"
    other = "\n".join(reversed(one.splitlines()))
    assert parse_gres(one) == parse_gres(other)
    assert set(parse_gres(one)) == {"a1", "a2"}
