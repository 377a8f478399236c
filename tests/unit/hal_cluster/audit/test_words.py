"""Every word of a finding: what is said of each fault, what repairs it, and in which order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hal_cluster.audit import answers, causes, repairs
from hal_cluster.audit import findings as subject
from hal_cluster.audit.findings import Finding
from hal_cluster.audit.resources.system import UNIT_TYPES
from tests.unit.hal_cluster.audit.answers import Answer, difference, expectation, findings

SITE = "ansible-playbook -i x playbooks/site.yml --limit hal05"


def test_a_difference_has_all_that_its_answer_has(healthy: Answer) -> None:
    healthy["differences"] = [difference(note="odd", diff=["-a"], units=["a.service", "b.service"])]
    assert findings(healthy) == [
        Finding(
            *("hal05", "mode", "file:/etc/chrony.conf", "drift", "node", "the mode differs: odd", "mode", "0644"),
            is_="0666",
            diff=("-a",),
            role="time",
            task="Write the configuration of chronyd",
            source="roles/time/tasks/configure.yml:2",
            commit="abc1234",
            since="2026-11-20T18:02:00Z",
            units=("a.service", "b.service"),
        )
    ]


@pytest.mark.parametrize("kind", sorted(subject.WORDS))
def test_each_kind_of_difference_has_its_words(healthy: Answer, kind: str) -> None:
    attribute = "sha256" if kind == "changed" else kind
    healthy["differences"] = [difference(kind=kind, attribute=attribute, units=[])]
    (one,) = findings(healthy)
    assert one.summary == subject.WORDS[kind]
    assert one.status == ("unknown" if kind == "unreadable" else "drift")
    assert one.cause == ("declaration" if kind == "orphaned" else "node")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"kind": "changed", "attribute": "max_wall"}, "its max wall differs"),
        ({"kind": "changed", "attribute": ""}, "the content differs"),
        ({"kind": "changed", "attribute": "changed"}, "the content differs"),
        ({"kind": "not-effective", "attribute": "units"}, "chronyd.service runs with an older one"),
        ({"kind": "of tomorrow", "attribute": "x"}, "of tomorrow"),
        ({"kind": None, "attribute": "shell"}, "its shell differs"),
    ],
)
def test_a_difference_may_have_words_of_its_own(healthy: Answer, more: Any, words: str) -> None:
    healthy["differences"] = [difference(**more)]
    (one,) = findings(healthy)
    assert one.summary == words
    assert one.kind in subject.WORDS, "the schema has no other"


def test_a_difference_of_which_little_is_known(healthy: Answer) -> None:
    healthy["differences"] = [{"resource": "file:/x"}]
    assert findings(healthy) == [Finding("hal05", "changed", "file:/x", "drift", "node", "the content differs")]


@pytest.mark.parametrize(("identity", "title"), [("a|b|c|d", "c|d"), ("a|b", "a|b"), ("", "")])
def test_a_task_is_called_by_its_title(identity: str, title: str) -> None:
    assert subject.task_title(identity) == title


@pytest.mark.parametrize(
    ("record", "status", "words"),
    [
        ({"status": "none", "used": "copy"}, "drift", "the node's record is gone; compared with the controller's copy"),
        ({"status": "corrupt", "used": "none"}, "unknown", "the node's record is damaged"),
        ({"status": "foreign", "reason": "x", "used": "own"}, "drift", "the node's record is that of another node: x"),
        (
            {"status": "newer", "used": "copy"},
            "unknown",
            "the node's record has a newer format than this toolkit knows; compared with the controller's copy",
        ),
        (
            {"status": "older", "used": "copy", "reason": "a\nb"},
            "drift",
            "the node's record is older than the controller's copy: a b; compared with the controller's copy",
        ),
        ({"status": "differs"}, "drift", "the node's record is not the one that was stored there"),
        ({"status": "of tomorrow"}, "drift", "the node's record: of tomorrow"),
    ],
)
def test_what_is_wrong_with_a_record_is_said(healthy: Answer, record: Any, status: str, words: str) -> None:
    healthy["record"] = record
    assert findings(healthy) == [Finding("hal05", "record", "record:node", status, "node", words)]


def test_records_that_are_none_or_that_others_reach(healthy: Answer) -> None:
    healthy["record"] = None
    words = "the module did not say which record it used"
    assert findings(healthy) == [Finding("hal05", "record", "record:node", "unknown", summary=words)]
    healthy["record"] = {"status": "none", "used": "none", "problem": "p"}
    exposed, none = findings(healthy)
    assert exposed == Finding("hal05", "record", "record:node", "drift", "node", "others could get at the record: p")
    words = "this toolkit never rolled out this node; hal-audit adopt proposes a record"
    assert none == Finding("hal05", "no-record", "record:node", "unknown", summary=words)
    healthy["record"] = {}
    assert findings(healthy) == []


def test_extra_files_packages_checks_and_problems(healthy: Answer) -> None:
    healthy["extra"] = [{"path": "/a", "what": "jobs", "type": "link", "note": "odd"}, {"path": "/b"}, "x"]
    healthy["packages"] = {"extra": ["a-b-1-2.x"], "unknown": "why\nnot"}
    healthy["checks"] += [
        {"check": "clock", "status": "fail", "observed": 1, "expected": 2, "reason": "it went back"},
        {"check": "other", "status": "unknown"},
        {"check": "packages", "status": "fail"},
    ]
    healthy["problems"] = ["a  b"]
    healthy["more"] = {"extra": 2, "differences": 1, "packages": 0}
    node = ("drift", "node")
    words = "{} than an answer may have; repair these, then audit again"
    assert findings(healthy) == [
        Finding("hal05", "extra", "file:/a", *node, "neither a role nor a package has it (jobs): odd", is_="link"),
        Finding("hal05", "extra", "file:/b", *node, "neither a role nor a package has it (watched files)", is_="file"),
        Finding(
            *("hal05", "package-extra", "package:a-b", *node, "installed since the last rollout, and not by one"),
            is_="a-b-1-2.x",
        ),
        Finding(
            *("hal05", "package-extra", "packages:all", "unknown", ""),
            summary="it cannot be told which packages nobody declared: why not",
        ),
        Finding("hal05", "clock", "check:clock", *node, "it went back", should=2, is_=1),
        Finding(
            *("hal05", "unreadable", "node", "unknown"),
            summary='it answered a check that nobody asked for: "other"',
        ),
        Finding("hal05", "unreadable", "node", "unknown", summary="a b"),
        Finding("hal05", "changed", "node", *node, words.format("1 more differences")),
        Finding("hal05", "changed", "node", *node, words.format("2 more extra")),
    ]
    healthy.update(extra=None, packages=None, checks={}, problems=None, more=None)
    assert findings(healthy) == []


def test_a_promise_that_does_not_hold_has_all_that_its_result_has(healthy: Answer) -> None:
    failed = expectation(status="fail", reason=" it\nis off", observed=False, severity="warning")
    one = Finding(
        *("hal05", "expectation", "expectation:time: chronyd runs", "drift", "node", "it is off"),
        why="clocks drift apart",
        should={"equal": True},
        is_=False,
        role="time",
        source="roles/time/expect.yml:3",
        severity="warning",
    )
    assert findings(healthy, failed) == [one]
    unknown = expectation(status="unknown", severity="warning")
    assert findings(healthy, unknown) == [
        replace(one, status="unknown", cause="", summary="clocks drift apart", is_=True)
    ]


@pytest.mark.parametrize(
    ("counts", "status", "partial", "words"),
    [
        ({"resources": 0}, "skipped", False, "nothing was checked: neither resources nor expectations"),
        (None, "skipped", True, "nothing was checked: none of these roles manages anything here"),
        ({"resources": 1}, "skipped", False, ""),
        ({"resources": 0}, "pass", False, ""),
    ],
)
def test_nothing_at_all_is_not_clean(healthy: Answer, counts: Any, status: str, partial: bool, words: str) -> None:
    healthy["counts"] = counts
    found = [one.summary for one in findings(healthy, expectation(status=status), partial=partial)]
    assert found == ([words] if words else [])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "the module gave no answer"),
        ({}, "the module's answer has no record"),
        ({"record": {}}, "the module's answer has no differences"),
        ({"record": {}, "differences": []}, "the module's answer has no answers"),
        ({"record": {}, "differences": [], "answers": []}, "the module's answer has no counts"),
        (
            {"record": {}, "differences": [{"resource": "a"}, {"resource": ""}], "answers": [], "counts": {}},
            "the module's answer has a difference that names no resource",
        ),
        ({"record": {}, "differences": [{"resource": "a"}], "answers": [], "counts": {}}, ""),
    ],
)
def test_why_an_answer_is_none(answer: Any, words: str) -> None:
    assert answers.problem_of(answer) == words


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        *((Finding("h", kind, "x", role="time"), advice) for kind, advice in repairs._ADVICE.items()),
        *((Finding("h", kind, "x", role="time"), SITE) for kind in ("no-record", "nothing-checked")),
        (Finding("h", "unreadable", "x"), ""),
        (Finding("h", "unreadable", "x", role="time"), f"{SITE} --tags time"),
        (Finding("h", "not-effective", "x", role="time"), f"{SITE} --tags time"),
        (Finding("h", "mode", "x"), ""),
        (Finding("h", "mode", "x", role="r"), 'no rollout repairs it: this project has no role "r"'),
    ],
)
def test_what_repairs_a_finding(one: Finding, expected: str) -> None:
    assert repairs.with_repair(one, "hal05", "-i x ").repair == expected
    assert repairs.repair(one, "all", "-i x ") == expected.replace(" --limit hal05", "")


def test_findings_come_by_role_then_by_kind_then_by_resource() -> None:
    role = Finding("h", "mode", "file:/b", role="r")
    wanted = [
        replace(role, resource="file:/a", host="g"),
        replace(role, resource="file:/a"),
        replace(role, attribute="a"),
        replace(role, attribute="b"),
        replace(role, kind="owner"),
        replace(role, cause="declaration", resource="file:/a"),
        replace(role, resource="expectation:a"),
        replace(role, role="s"),
        replace(role, role=""),
    ]
    mixed = [*wanted[5:], *wanted[:5]]
    assert sorted(mixed, key=subject.order) == wanted


@pytest.mark.parametrize(
    ("differing", "resource", "read", "expected"),
    [
        (set(), "package:a", "", False),
        ({"version"}, "package:a", "", True),
        *(({kind}, "file:/a", "mode", True) for kind in ("missing", "present", "type", "not-rolled-out", "orphaned")),
        ({"mode"}, "file:/a", "mode", True),
        ({"mode"}, "file:/a", "owner", False),
        *(({"sha256"}, "file:/a", read, True) for read in ("content", "lines", "sha256", "size")),
        *(({kind}, "file:/a", "content", True) for kind in ("changed", "sha1", "keyed", "size")),
    ],
)
def test_what_explains_a_failed_promise(differing: set[str], resource: str, read: str, expected: bool) -> None:
    assert causes._explains(differing, resource, read) is expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ({"file": {"path": "/a"}}, ("file:/a", "content")),
        ({"file": {"path": "/a", "read": "mode"}}, ("file:/a", "mode")),
        ({"package": {"name": "a"}}, ("package:a", "content")),
        ({"sysctl": {"name": "a"}}, ("sysctl:a", "content")),
        ({"mount": {"path": "/a"}}, ("mount:/a", "content")),
        ({"kernel-module": {"name": "a"}}, ("kernel-module:a", "content")),
        *(({"service": {"name": f"a{one}"}}, (f"service:a{one}", "content")) for one in UNIT_TYPES),
        ({"service": {"name": "a"}}, ("service:a.service", "content")),
        ({"service": {"name": ""}}, ("", "")),
        ({"service": "a"}, ("", "")),
        ({}, ("", "")),
    ],
)
def test_what_a_question_looks_at(question: Any, expected: tuple[str, str]) -> None:
    assert causes.read_by(question) == expected


def test_what_is_unknown_or_of_nobody_explains_nothing() -> None:
    failed = Finding("h", "expectation", "expectation:r: a", cause="node")
    asked = {failed.resource: {"package": {"name": "a"}}}
    differs = Finding("h", "version", "package:a", cause="node")
    assert causes.followed([failed, differs], asked) == [replace(failed, follows="package:a"), differs]
    for one in (replace(differs, status="unknown"), replace(differs, cause="")):
        assert causes.followed([failed, one], asked) == [failed, one]
    unknown = replace(failed, status="unknown")
    assert causes.followed([unknown, differs], asked) == [unknown, differs]


@pytest.mark.parametrize(
    ("value", "words"),
    [("a\n b", "a b"), (" ", '" "'), ("", '""'), ({"b": "ü", "a": 1}, '{"a": 1, "b": "ü"}'), ("\x1b", "\\x1b")],
)
def test_a_value_is_one_line(value: Any, words: str) -> None:
    assert subject.shown(value) == words
