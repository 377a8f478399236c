"""What a site accepts: on which nodes, until when, and as of which moment."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from hal_cluster.audit import accepted as subject
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.findings import Accepted

TODAY = datetime.date(2026, 11, 26)
ONE = {"path": "/etc/hosts.deny", "reason": "tcp wrappers of the site"}


def holds(host: str = "hal05", name: str = subject.PATHS, **more: Any) -> bool:
    """Whether an acceptance is in force on a host; what is not may have been once."""
    entry = {**(ONE if name == subject.PATHS else {"name": "vim", "reason": "r"}), **more}
    force = subject.in_force([entry], name, host, TODAY)
    once = subject.over([entry], name, host, TODAY)
    assert not (force and once)
    return bool(force)


def test_without_more_it_holds_everywhere_for_ever() -> None:
    assert holds()
    assert subject.in_force([ONE], subject.PATHS, "hal05", TODAY) == [Accepted(ONE["path"], ONE["reason"])]
    assert holds(name=subject.PACKAGES)


@pytest.mark.parametrize(
    ("until", "still"),
    [("2026-11-25", False), ("2026-11-26", True), (datetime.date(2026, 11, 25), False), ("2027-01-31", True)],
)
def test_past_its_last_day_it_is_over(until: Any, still: bool) -> None:
    assert holds(until=until) is still
    assert bool(subject.over([{**ONE, "until": until}], subject.PATHS, "hal05", TODAY)) is not still
    assert holds(name=subject.PACKAGES, until=until) is still


def test_today_is_today() -> None:
    yesterday = datetime.date.today() - datetime.timedelta(days=1)
    assert subject.in_force([{**ONE, "until": str(yesterday)}], subject.PATHS, "hal05") == []
    assert len(subject.over([{**ONE, "until": str(yesterday)}], subject.PATHS, "hal05")) == 1


@pytest.mark.parametrize(
    ("nodes", "there"), [("hal05", True), ("hal[01-06],hal-login", True), ("hal[06-09]", False), ("hal0", False)]
)
def test_it_holds_on_its_nodes_only(nodes: str, there: bool) -> None:
    assert holds(nodes=nodes) is there


def test_what_changed_later_is_another_thing() -> None:
    at = "2026-11-26T08:00:00Z"
    (one,) = subject.in_force([{**ONE, "as_of": at}], subject.PATHS, "hal05", TODAY)
    epoch = int(subject.moment(at))
    assert subject.covering([one], ONE["path"], epoch) is one
    assert subject.covering([one], ONE["path"], epoch + 1) is None
    assert subject.covering([one], ONE["path"]) is one
    assert subject.covering([one], ONE["path"], None) is None, "it is missing, and was not"
    (gone,) = subject.in_force([{**ONE, "as_of": at, "missing": True}], subject.PATHS, "hal05", TODAY)
    assert subject.covering([gone], ONE["path"], None) is gone
    assert subject.covering([gone], ONE["path"], epoch + 1) is None, "it is there again"
    assert subject.covering([Accepted(ONE["path"], "r")], ONE["path"], None) is not None
    assert subject.covering([one], "/etc/hosts.deny.d") is None
    assert subject.covering([Accepted("/etc/*", "r")], ONE["path"], epoch + 1) is not None
    moment = datetime.datetime(2026, 11, 26, 8)
    assert subject.in_force([{**ONE, "as_of": moment}], subject.PATHS, "hal05", TODAY) == [one]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("x", "audit_accepted: each entry needs path and reason, unlike 'x'"),
        ({"path": "/a"}, "audit_accepted: each entry needs path and reason, unlike {'path': '/a'}"),
        (
            {**ONE, "untill": "2027-01-31"},
            "audit_accepted: /etc/hosts.deny: no field 'untill'; did you mean \"until\"?",
        ),
        (
            {**ONE, "until": "next year"},
            "audit_accepted: /etc/hosts.deny: until is 'next year'; write the last day on which it holds: 2027-01-31",
        ),
        (
            {**ONE, "as_of": "now"},
            "audit_accepted: /etc/hosts.deny: as_of is 'now'; write a moment, UTC: 2026-11-26T08:00:00Z",
        ),
        ({**ONE, "missing": "no"}, "audit_accepted: /etc/hosts.deny: missing is 'no'; write true or false"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_on_every_host(entry: Any, words: str) -> None:
    with pytest.raises(AuditError) as error:
        subject.in_force([entry], subject.PATHS, "other", TODAY)
    assert str(error.value) == words


def test_a_field_unlike_any_other_and_nodes_that_are_none() -> None:
    with pytest.raises(AuditError, match=r"no field 'xyz'; known fields: as_of, missing, nodes, path, reason, until$"):
        holds(xyz=1)
    with pytest.raises(AuditError, match=r"^audit_accepted: /etc/hosts.deny: nodes is 'hal\[': "):
        holds(nodes="hal[")
    with pytest.raises(AuditError, match=r"no field 'as_of'"):
        holds(name=subject.PACKAGES, as_of="2026-11-26T08:00:00Z")
