"""Slurm's files to the last character: what ends a line, what is a value, which name a host list has."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_node.slurm import conf as hal_slurm_conf
from ansible.module_utils.hal_node.slurm.conf import (
    Conf,
    SlurmConfError,
    expand,
    fold,
    logical_lines,
    pairs,
    parse,
    parse_flat,
    parse_gres,
)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a=1\\\nb=2\\\n\n c=3\nd=4", ["a=1 b=2", "c=3", "d=4"]),
        ("a=1 \\\n", ["a=1"]),
        ("\\\n\\\n", []),
        ("#a\n ##b\na=#1\nb=\\#2#3\nc=4 # \\\nd\t=  5", ["a=", "b=\\#2", "c=4", "d = 5"]),
    ],
)
def test_lines_are_joined_and_comments_end_them(text: str, lines: list[str]) -> None:
    assert logical_lines(text) == lines


def test_pairs_may_have_blanks_and_empty_values() -> None:
    found = [("a", "1"), ("B_2", ""), ("c", "x y"), ("d", ""), ("e", "=f")]
    assert pairs(' a = 1 B_2="" c="x y" d="" e==f') == found
    with pytest.raises(SlurmConfError) as refused:
        pairs("a=1 " + "x" * 61 + " b=2")
    assert str(refused.value) == f"not Key=Value: '{'x' * 60}'"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,,b", ["a", "b"]),
        ("a[1,3-4]b[8-9],c", ["a1b8", "a1b9", "a3b8", "a3b9", "a4b8", "a4b9", "c"]),
        ("a[08-11]", ["a08", "a09", "a10", "a11"]),
        ("a[5-5]", ["a5"]),
        ("[1-2]x", ["1x", "2x"]),
        ("", []),
    ],
)
def test_a_host_list_is_its_names_in_order(text: str, names: list[str]) -> None:
    assert expand(text) == names


def test_a_host_list_ends_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hal_slurm_conf, "MAX_NAMES", 6)
    assert (len(expand("a[1-6]")), len(expand("a[1-2]b[1-3]"))) == (6, 6)
    for text, said in (
        ("a[1-7]", "range '1-7' of host list 'a[1-7]' runs backwards or is too long"),
        ("a[3-2]", "range '3-2' of host list 'a[3-2]' runs backwards or is too long"),
        ("a[1-2]b[1-4]", "host list 'a[1-2]b[1-4]' has more than 6 names"),
        ("a[1-2,x]", "range 'x' of host list 'a[1-2,x]' is not a number or number-number"),
        ("a[]", "range '' of host list 'a[]' is not a number or number-number"),
    ):
        with pytest.raises(SlurmConfError) as refused:
            expand(text)
        assert str(refused.value) == said


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a1"], "a1"),
        (["a01", "a02", "a03", "a05"], "a[01-03,05]"),
        (["a2", "a1", "a1", "b"], "a[1-2],b"),
        (["a9", "a10", "a11"], "a[10-11],a9"),
        (["1", "2"], "[1-2]"),
        (["x", "a1b2", "a1b4"], "a1b[2,4],x"),
    ],
)
def test_names_are_folded_by_what_stands_before_their_number(names: list[str], text: str) -> None:
    assert fold(names) == text


def test_a_whole_file_is_read() -> None:
    text = (
        "SlurmctldHost=a\nslurmctldhost=b(1)\nSlurmctldHost=c\nKillWait=3 MinJobAge=4\nKillWait=5\n"
        "NodeName=DEFAULT CPUs=1\nnodename=n[1-2] Port=[7-8] NodeHostname=h NodeAddr=x[1-3] Reason=[1-2]\n"
        "NodeName=default Weight=2\nNodeName=n3 Port=9\nPartitionName=DEFAULT State=UP\nPartitionName=P[1-2] Nodes=n1\n"
        "DownNodes=n1\nNodeSet=s Nodes=n1\nFrontendName=f\nINCLUDE /etc/x y\n"
    )
    hosts = {"slurmctldhost": ("SlurmctldHost", "a;b(1);c")}
    one = {"cpus": "1", "nodehostname": "h", "nodeaddr": "x[1-3]", "reason": "[1-2]"}
    assert parse(text) == Conf(
        {**hosts, "killwait": ("KillWait", "5"), "minjobage": ("MinJobAge", "4")},
        {"n1": {**one, "port": "7"}, "n2": {**one, "port": "8"}, "n3": {"cpus": "1", "weight": "2", "port": "9"}},
        {"P[1-2]": {"state": "UP", "nodes": "n1"}},
        ["DownNodes=n1", "NodeSet=s Nodes=n1", "FrontendName=f", "INCLUDE /etc/x y"],
    )
    assert parse("") == Conf({}, {}, {}, [])


def test_devices_are_of_nodes_or_of_every_node_that_reads_them() -> None:
    text = "Name=gpu File=/b\nname=gpu file=/a\nNODENAME=n[1-2] Name=gpu\nName=mps NodeName=n2\n"
    assert parse_gres(text) == {
        "": [(("file", "/a"), ("name", "gpu")), (("file", "/b"), ("name", "gpu"))],
        "n1": [(("name", "gpu"),)],
        "n2": [(("name", "gpu"),), (("name", "mps"),)],
    }


def test_a_file_of_parameters_keeps_the_last_of_each() -> None:
    assert parse_flat("A=1 b=2\na=3\n") == {"a": ("a", "3"), "b": ("b", "2")}
