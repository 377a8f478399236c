"""The report at its borders: what is not put together, what has no plural, and where lines may break."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from hal_cluster.audit import report
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.report import Group

MODE = Finding("hal05", "mode", "file:/x", "drift", "node", "the mode differs")
PROMISE = Finding("hal05", "expectation", "expectation:time: it runs", "drift", "node", "it is off", role="time")


def painted(one: Finding, width: int = 80) -> list[str]:
    paint = report.Painter(width, False)
    report.add_finding(paint, Group(one, (one.host,), (), ()))
    return paint.lines


@pytest.mark.parametrize(("kind", "groups"), [("unreachable", 1), ("unreadable", 2), ("mode", 2)])
def test_only_nodes_that_do_not_answer_are_alike_but_for_their_names(kind: str, groups: int) -> None:
    one, other = (
        Finding(host, kind, "node", "unknown", summary=f"{host}: connection refused") for host in ("n1", "n2")
    )
    assert len(report.fold_findings([one, other])) == groups


@pytest.mark.parametrize(
    ("should", "lines"),
    [
        ({"at_most": 5}, ["    declared at most 5"]),
        ({}, ["    declared {}"]),
        ({"at_least": 1, "at_most": 5}, ['    declared {"at_least": 1, "at_most": 5}']),
    ],
)
def test_a_promise_with_one_condition_is_said_in_words(should: dict[str, Any], lines: list[str]) -> None:
    assert painted(replace(PROMISE, should=should, is_=7))[1:] == [*lines, "    found    7"]


@pytest.mark.parametrize(("number", "words"), [(0, ""), (1, ", 1 warning"), (2, ", 2 warnings")])
def test_warnings_are_counted_at_the_end(number: int, words: str) -> None:
    summary = {"nodes": 2, "resources": 1234, "expectations": 1, "seconds": 1, "warnings": number}
    document = {"findings": [], "summary": summary, "status": 0}
    assert report.closing(document) == f"Clean: 2 nodes, 1,234 resources, 1 expectations, 1 s{words}"


def test_a_name_is_broken_only_where_a_terminal_would_do_it() -> None:
    assert report._wrap("see the-name-with-hyphens there", 21) == ["see", "the-name-with-hyphens", "there"]
    assert report._wrap("see the-name-with-hyphens there", 20) == ["see", "the-name-with-hyphen", "s", "there"]
    assert report._wrap("x" * 30, 20) == ["x" * 20, "x" * 10]
    assert report._wrap("", 20) == [""]
    assert report._wrap("a " * 10, 5) == ["a a a a a a a a a a"]


def test_advice_is_wrapped_and_a_command_is_broken_at_its_options() -> None:
    paint = report.Painter(60, False)
    report._repair(paint, "remove it, let a role declare it, or say in audit_accepted why it is right - so")
    report._repair(paint, "ansible-playbook playbooks/site.yml --limit hal05 --tags time --check")
    report._repair(paint, "")
    assert paint.lines == [
        "    repair   remove it, let a role declare it, or say in",
        "             audit_accepted why it is right - so",
        "    repair   ansible-playbook playbooks/site.yml \\",
        "               --limit hal05 --tags time --check",
    ]


def test_items_that_fail_alike_are_one_entry_with_what_all_of_them_have() -> None:
    items = [replace(PROMISE, resource=f"expectation:time: it runs [{name}]", source="e.yml:3") for name in "ab"]
    (one,) = report.fold_findings(items)
    assert (one.finding.resource, one.items, one.hosts) == ("expectation:time: it runs", ("a", "b"), ("hal05",))
    alone = report.fold_findings([items[0], replace(items[1], status="unknown")])
    assert [group.items for group in alone] == [(), ()]


def test_a_group_stays_as_it_is() -> None:
    with pytest.raises(FrozenInstanceError):
        Group(MODE, (), (), ()).__setattr__("items", ("x",))
