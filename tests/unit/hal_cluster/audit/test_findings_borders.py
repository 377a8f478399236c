"""Findings at their borders: answers as they come over the wire, promises of each status, what comes first."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from hal_cluster.audit import causes, repairs
from hal_cluster.audit import findings as subject
from hal_cluster.audit.findings import Accepted, Finding
from tests.unit.hal_cluster.audit.answers import Answer, difference, expectation, findings

NODE = Finding("hal05", "mode", "file:/x", cause="node", role="time")
PROMISE = replace(NODE, kind="expectation", resource="expectation:time: chronyd runs")
SITE = "ansible-playbook -i x playbooks/site.yml --limit hal05 --tags time"


def came(value: Any) -> Any:
    """The same as a node sends it: each text is a new one."""
    return json.loads(json.dumps(value))


def read(one: Finding) -> Finding:
    """The same as an audit's file has it."""
    return Finding.read(came(one.document()))


def test_exit_statuses_are_those_of_the_manual() -> None:
    assert (subject.CLEAN, subject.ERROR, subject.DRIFT, subject.INCOMPLETE) == (0, 1, 2, 3)


@pytest.mark.parametrize("one", [NODE, Accepted("/opt/*", "theirs")])
def test_what_was_found_or_accepted_stays_as_it_is(one: Finding | Accepted) -> None:
    with pytest.raises(FrozenInstanceError):
        one.__setattr__(next(iter(vars(one))), "other")


@pytest.mark.parametrize(
    ("one", "status"),
    [
        (PROMISE, 2),
        (replace(PROMISE, severity="warning"), 0),
        (replace(PROMISE, severity="warning", kind="clock"), 2),
        (replace(PROMISE, severity="warning", kind="hardware"), 2),
        (replace(PROMISE, status="unknown"), 3),
        (NODE, 2),
    ],
)
def test_a_promise_counts_unless_it_is_a_mere_warning(one: Finding, status: int) -> None:
    assert subject.exit_status([one], 1) == status
    assert subject.exit_status([read(one)], 1) == status


def test_what_differs_on_a_node_comes_before_what_is_declared_otherwise_and_promises_last() -> None:
    declared = replace(NODE, kind="orphaned", resource="file:/a", cause="declaration")
    nobodys = replace(NODE, resource="file:/0", role="")
    every = [nobodys, replace(PROMISE, cause=""), declared, NODE]
    assert sorted(map(read, every), key=subject.order) == [NODE, declared, replace(PROMISE, cause=""), nobodys]


def test_a_node_that_was_asked_for_nothing_is_not_told_of_roles(healthy: Answer) -> None:
    healthy["counts"]["resources"] = 0
    skipped = expectation(status="skipped")
    assert [one.summary for one in findings(came(healthy), came(skipped))] == [
        "nothing was checked: neither resources nor expectations"
    ]
    assert [one.summary for one in findings(healthy, skipped, partial=True)] == [
        "nothing was checked: none of these roles manages anything here"
    ]


@pytest.mark.parametrize("status", ["pass", "fail", "unknown"])
def test_a_promise_that_was_asked_is_something_that_was_checked(healthy: Answer, status: str) -> None:
    healthy["counts"]["resources"] = 0
    assert "nothing-checked" not in [one.kind for one in findings(healthy, expectation(status=status))]


def test_a_damaged_record_does_not_hide_that_packages_cannot_be_told(healthy: Answer) -> None:
    healthy["record"] = {"status": "corrupt", "used": "none"}
    healthy["packages"] = {"extra": [], "unknown": "rpm hangs"}
    assert [(one.kind, one.status) for one in findings(came(healthy))] == [
        ("record", "unknown"),
        ("package-extra", "unknown"),
    ]


def test_a_node_that_never_had_a_record_is_not_told_twice(healthy: Answer) -> None:
    healthy["record"] = {"status": "none"}
    healthy["counts"]["resources"] = 0
    healthy["packages"] = {"extra": [], "unknown": "there is no record to compare with"}
    assert [one.kind for one in findings(came(healthy), expectation(status="skipped"))] == ["no-record"]


@pytest.mark.parametrize(
    ("record", "status", "end"),
    [
        ({"status": "none", "used": "copy"}, "drift", "is gone; compared with the controller's copy"),
        ({"status": "foreign", "used": "none"}, "unknown", "of another node"),
        ({"status": "newer", "used": "own"}, "unknown", "than this toolkit knows"),
        ({"status": "older", "used": "own"}, "drift", "the controller's copy"),
    ],
)
def test_a_record_that_was_sent_is_judged_by_its_words(healthy: Answer, record: Any, status: str, end: str) -> None:
    healthy["record"] = record
    (one,) = findings(came(healthy))
    assert (one.kind, one.status, one.summary.endswith(end)) == ("record", status, True)


def test_differences_and_checks_that_were_sent_are_judged_by_their_words(healthy: Answer) -> None:
    healthy["differences"] = [
        difference(kind="changed", attribute="max_wall"),
        difference(kind="unreadable"),
        difference(kind="orphaned"),
        difference(kind="not-effective", units=["a.service", "b.service"]),
    ]
    healthy["checks"] = [
        {"check": "clock", "status": "fail"},
        {"check": "kernel", "status": "unknown"},
        {"check": "uid_0", "status": "pass"},
        {"check": "packages", "status": "fail"},
    ]
    promises = [expectation(status=status) for status in ("fail", "unknown")]
    found = findings(came(healthy), *came(promises))
    assert [(one.kind, one.status, one.cause, one.summary) for one in found] == [
        ("changed", "drift", "node", "its max wall differs"),
        ("unreadable", "unknown", "node", "it cannot be read"),
        ("orphaned", "drift", "declaration", "no task manages it any more"),
        ("not-effective", "drift", "node", "a.service runs with an older one"),
        ("clock", "drift", "node", ""),
        ("kernel", "unknown", "node", ""),
        ("expectation", "drift", "node", "clocks drift apart"),
        ("expectation", "unknown", "", "clocks drift apart"),
    ]


@pytest.mark.parametrize(("kind", "follows"), [("extra", True), ("changed", False), ("mode", False)])
def test_only_a_file_of_nobody_is_explained_by_its_unit(kind: str, follows: bool) -> None:
    masked = Finding("hal05", "masked", "service:chronyd.service", cause="node", attribute="masked")
    file = replace(NODE, kind=kind, attribute=kind, resource="file:/etc/systemd/system/chronyd.service")
    told = causes.followed([read(masked), read(file)], {})
    assert [one.follows for one in told] == ["", "service:chronyd.service" if follows else ""]


def test_a_promise_follows_its_service_by_a_name_without_suffix() -> None:
    asked = came({PROMISE.resource: {"service": {"name": "chronyd", "read": "running"}}})
    stopped = replace(NODE, kind="state", attribute="state", resource="service:chronyd.service")
    told = causes.followed([read(stopped), read(PROMISE), read(replace(PROMISE, status="unknown"))], asked)
    assert [one.follows for one in told] == ["", "service:chronyd.service", ""]


@pytest.mark.parametrize("kind", ["not-effective", "changed", "mode", "owner", "version"])
def test_only_what_does_not_run_yet_is_repaired_by_a_restart_of_its_first_unit(kind: str) -> None:
    one = read(replace(NODE, kind=kind, units=("a.service", "b.service")))
    restart = "ansible -i x --become -m ansible.builtin.systemd_service -a 'name=a.service state=restarted' hal05"
    assert repairs.repair(one, "hal05", "-i x ") == (restart if kind == "not-effective" else SITE)


def test_every_node_needs_no_limit() -> None:
    assert repairs.repair(NODE, came("all"), "") == "ansible-playbook playbooks/site.yml --tags time"


@pytest.mark.parametrize(("sent", "last"), [(40, "+40"), (41, "... 2 more lines"), (100_000, "... 99961 more lines")])
def test_a_diff_has_no_more_lines_than_an_honest_node_sends(healthy: Answer, sent: int, last: str) -> None:
    healthy["differences"] = [difference(diff=[f"+{number}" for number in range(1, sent + 1)])]
    (one,) = findings(came(healthy))
    assert (len(one.diff), one.diff[0], one.diff[-1]) == (40, "+1", last)
