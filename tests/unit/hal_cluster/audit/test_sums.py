"""What all nodes have in common: sums, equal findings, sections, and the line that says how it went."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest

from hal_cluster.audit import report
from hal_cluster.audit.document import Audit, differences, limit
from hal_cluster.audit.findings import Finding


def test_a_document_has_the_sums_of_its_nodes() -> None:
    audit = Audit(expected=["a", "b"], groups={"g": ["b", "a"]}, inventory=["i"], options="-i i ")
    drift = Finding("a", "mode", "file:/x", cause="node", role="time")
    follows = replace(drift, kind="expectation", follows="file:/x", severity="warning")
    unknown = Finding("b", "unreadable", "node", "unknown")
    counts = {"resources": 2, "expectations": 3, "watched_files": 4, "software": {"p": "1"}}
    audit.add("a", {"node": counts, "findings": [drift.document(), follows.document()]})
    audit.add("b", {"node": counts, "findings": [unknown.document()]})
    document = audit.document(1.26, datetime.datetime(2026, 11, 21, 4, tzinfo=datetime.timezone.utc))
    assert {name: value for name, value in document.items() if name != "findings"} == {
        **{"format": 1, "at": "2026-11-21T04:00:00Z", "inventory": ["i"], "options": "-i i ", "status": 2},
        "groups": {"g": ["a", "b"]},
        "summary": {
            **{"nodes": 2, "resources": 4, "expectations": 6, "watched_files": 8, "drift": 1, "unknown": 1},
            **{"warnings": 1, "aside": 0, "seconds": 1.3},
        },
        "nodes": {
            "a": {"resources": 2, "expectations": 3, "watched_files": 4, "drift": 1, "unknown": 0},
            "b": {"resources": 2, "expectations": 3, "watched_files": 4, "drift": 0, "unknown": 1},
        },
    }
    assert [one["host"] for one in document["findings"]] == ["a", "a", "b"]
    assert document["findings"][0]["repair"] == "ansible-playbook -i i playbooks/site.yml --limit a --tags time"
    assert differences([drift, follows, unknown]) == 1


def test_versions_are_out_of_step_only_between_the_groups() -> None:
    audit = Audit(groups={"login": ["l"], "compute": ["c", "d"]})
    for host, software in (
        ("l", {"same": "1-1.x 2-1.x", "apart": "1-1.x", "bare": "1"}),
        ("c", {"same": "2-1.y 1-1.y", "apart": "2-1.x", "inside": "1-1.x", "bare": "1"}),
        ("d", {"same": "1-1.x 2-1.x", "apart": "2-1.x", "inside": "2-1.x"}),
        ("e", {"apart": "9-1.x"}),
    ):
        audit.add(host, {"node": {"software": software}, "in_step": [["login", "compute"]]})
    assert audit.out_of_step() == [
        Finding(
            *("", "out-of-step", "package:apart", "drift", ""),
            summary="login and compute nodes must have the same version",
            is_="1-1 on l; 2-1 on c,d",
        )
    ]


def test_a_pattern_for_ansible_is_the_shortest_group_of_just_these_nodes() -> None:
    groups = {"longer": ["c", "a", "b"], "bb": ["a", "b", "c"], "aa": ["b", "a", "c"], "two": ["a", "b"]}
    assert limit(["c", "b", "a", "a"], groups) == "aa"
    assert limit(["a", "b"], groups) == "a,b"
    assert limit(["a", "b", "d"], groups) == "a,b,d"
    assert limit(["c", "b", "a"], {**groups, "all": ["a", "b", "c"]}) == "all"


def test_the_last_line_says_how_it_went() -> None:
    summary = {"nodes": 1, "resources": 1200, "expectations": 3, "seconds": 1.5, "warnings": 0}
    clean = {"summary": summary, "findings": [], "status": 0}
    size = "1 node, 1,200 resources, 3 expectations, 1.5 s"
    assert report.closing(clean) == f"Clean: {size}"
    assert report.closing({**clean, "summary": {**summary, "warnings": 1}}) == f"Clean: {size}, 1 warning"
    drift = Finding("hal02", "mode", "file:/x").document()
    size = "2 nodes, 1,200 resources, 3 expectations, 1.5 s"
    summary = {**summary, "nodes": 2, "warnings": 2}
    one = {"summary": summary, "findings": [drift], "status": 2}
    assert report.closing(one) == f"Drift: 1 difference on hal02, 2 warnings ({size})"
    unknown = Finding("", "x", "y", "unknown").document()
    warned = {**drift, "severity": "warning"}
    several = {**one, "findings": [drift, {**drift, "host": "hal01"}, unknown, unknown, warned]}
    assert report.closing(several) == f"Drift: 2 differences on hal[01-02], 2 unknown, 2 warnings ({size})"
    lost = {**one, "findings": [unknown], "status": 3}
    assert report.closing(lost) == f"Not everything was seen: 1 unknown, 2 warnings ({size})"


def test_equal_findings_of_several_nodes_are_one() -> None:
    one = Finding("b", "mode", "file:/x", cause="node", role="r", should="b", is_="a", commit="2", since="t2")
    other = replace(one, host="a", should="a", is_="a", commit="1", since="t1")
    (group, second) = report.fold_findings([one, other])
    assert (group.hosts, second.hosts) == (("b",), ("a",))
    (group,) = report.fold_findings([one, replace(one, host="c", should="c")])
    assert group == report.Group(replace(one, should="(the node's name)"), ("b", "c"), ("2",), ("t2",))


def test_what_follows_stands_with_what_it_follows_and_is_said_once() -> None:
    one = Finding("a", "mode", "file:/x", cause="node")
    promise = Finding("a", "expectation", "expectation:r: p", cause="node", follows="file:/x")
    alone = replace(promise, follows="file:/gone")
    assert report.fold_findings([one, replace(one, kind="owner"), promise]) == [
        report.Group(one, ("a",), (), (), ("r: p",)),
        report.Group(replace(one, kind="owner"), ("a",), (), ()),
    ]
    assert report.fold_findings([one, alone]) == [
        report.Group(one, ("a",), (), ()),
        report.Group(alone, ("a",), (), ()),
    ]


def test_items_of_a_loop_that_fail_alike_are_one() -> None:
    first = Finding("a", "expectation", "expectation:r: p [1]", source="s")
    second = replace(first, resource="expectation:r: p [2]")
    assert report.fold_findings([first, second]) == [
        report.Group(replace(first, resource="expectation:r: p"), ("a",), (), (), (), ("1", "2"))
    ]
    for other in (replace(second, source="t"), replace(second, status="unknown"), replace(second, host="b")):
        assert len(report.fold_findings([first, other])) == 2


def test_sections_are_roles_by_name_then_nobody_then_nodes() -> None:
    found = [
        Finding("a", "x", "node"),
        Finding("a", "x", "record:node"),
        Finding("a", "x", "file:/x"),
        Finding("a", "x", "file:/x", role="time"),
        Finding("a", "x", "node", role="base"),
        Finding("a", "x", "file:/x", role="z"),
    ]
    assert [(title, len(groups)) for title, groups in report.sections(found)] == [
        *[('"z" (this project has no such role)', 1), ("base", 1), ("time", 1), ("no role", 1), ("nodes", 2)],
    ]


@pytest.mark.parametrize(
    ("words", "width", "lines"),
    [
        ("ansible-playbook -i x site.yml --limit a", 80, ["ansible-playbook -i x site.yml --limit a"]),
        ("ansible-playbook -i x site.yml --limit a", 39, ["ansible-playbook -i x site.yml \\", "  --limit a"]),
        ("ansible-playbook -i x --limit a", 33, ["ansible-playbook -i x --limit a"]),
        ("ansible-playbook -i x --limit a", 32, ["ansible-playbook -i x \\", "  --limit a"]),
        ("ansible --become -m x a,b", 20, ["ansible --become \\", "  -m x a,b"]),
    ],
)
def test_a_command_is_broken_where_a_shell_takes_it(words: str, width: int, lines: list[str]) -> None:
    assert report.command(words, width) == lines


@pytest.mark.parametrize(
    ("more", "lines"),
    [
        ({"summary": "the unit is masked", "should": {"equal": True}, "is_": False}, []),
        ({"summary": "differs", "should": {"equal": True}, "is_": False}, ["declared equal true", "found    false"]),
        ({"summary": "it is 5", "should": {"at_least": 6}, "is_": 5}, ["declared at least 6", "found    5"]),
        ({"summary": "x", "should": {"a": 1, "b": 2}}, ['declared {"a": 1, "b": 2}']),
        ({"summary": "x", "is_": ["a", "b"]}, ["found    a, b"]),
        ({"summary": "x", "is_": []}, ["found    []"]),
        ({"summary": "x", "attribute": "sha256", "should": "a", "is_": "b"}, []),
        ({"summary": "x", "diff": ("-a", "+b"), "should": "a"}, ["declared a", "found    b"]),
    ],
)
def test_values_are_shown_unless_the_words_say_them(more: dict[str, Any], lines: list[str]) -> None:
    paint = report.Painter(80, False)
    report._values(paint, Finding("a", "expectation", "expectation:r: p", **more))
    assert [line.strip() for line in paint.lines] == lines


def test_a_long_value_is_cut() -> None:
    assert report._value("x" * 200) == "x" * 200
    assert report._value("x" * 201) == "x" * 200 + "..."
