"""Reservations: what is declared against what scontrol prints."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.slurm.reservations import ReservationError, read, steps

NOW = datetime(2026, 11, 21, 1, 0, 0)
MAINT: dict[str, Any] = {
    "name": "maint",
    "nodes": "hal[01-02]",
    "start": "2027-01-10T08:00:00",
    "duration": "08:00:00",
    "users": ["root"],
    "flags": ["IGNORE_JOBS", "MAINT"],
}
VISION: dict[str, Any] = {
    "name": "vision",
    "nodes": "hal01",
    "start": "2027-02-01 00:00:00",
    "end": "2027-02-09T00:00:00",
    "accounts": ["vision"],
}


@pytest.fixture
def found(captures: Path) -> dict[str, dict[str, str]]:
    """What a real controller had."""
    return dict(read((captures / "reservation.txt").read_text()))


def argv(entries: list[dict[str, Any]], found: dict[str, dict[str, str]], now: datetime = NOW) -> list[str]:
    return [" ".join(step.argv[1:]) for step in steps(entries, found, now)]


def test_reservations_that_are_as_declared_get_no_command(found: dict[str, dict[str, str]]) -> None:
    assert set(found) == {"maint", "vision", "now"}
    assert argv([MAINT, VISION], found) == []


def test_no_reservations_at_all_is_read_as_none() -> None:
    assert read("No reservations in the system\n") == {}


def test_a_missing_one_is_made() -> None:
    assert argv([MAINT], {}) == [
        "create reservation ReservationName=maint StartTime=2027-01-10T08:00:00 EndTime=2027-01-10T16:00:00"
        " Nodes=hal[01-02] Users=root Flags=IGNORE_JOBS,MAINT"
    ]


def test_one_that_should_have_begun_begins_now() -> None:
    during = datetime(2027, 1, 10, 9, 0, 0)
    assert "StartTime=now EndTime=2027-01-10T16:00:00" in argv([MAINT], {}, during)[0]


def test_one_that_is_over_is_not_made_again() -> None:
    assert argv([MAINT], {}, datetime(2027, 1, 10, 16, 0, 0)) == []


def test_only_the_difference_is_changed(found: dict[str, dict[str, str]]) -> None:
    assert argv([{**VISION, "end": "2027-02-10T00:00:00"}], found) == [
        "update reservation ReservationName=vision EndTime=2027-02-10T00:00:00"
    ]


def test_another_partition_is_set(found: dict[str, dict[str, str]]) -> None:
    assert argv([{**VISION, "partition": "cpu"}], found) == [
        "update reservation ReservationName=vision PartitionName=cpu"
    ]


def test_users_instead_of_accounts_are_set_before_the_others_go(found: dict[str, dict[str, str]]) -> None:
    changed = {**VISION, "accounts": [], "users": ["alice"]}
    assert [line.split()[-1] for line in argv([changed], found)] == ["Users=alice", "Accounts="]


def test_a_start_that_has_passed_is_not_changed(found: dict[str, dict[str, str]]) -> None:
    during = datetime(2027, 2, 2, 0, 0, 0)
    assert argv([{**VISION, "start": "2027-01-31T00:00:00"}], found, during) == []


def test_absent_deletes_what_is_there(found: dict[str, dict[str, str]]) -> None:
    gone = [{"name": "now", "state": "absent"}, {"name": "never", "state": "absent"}]
    assert argv(gone, found) == ["delete ReservationName=now"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": "tomorrow"}, "reservation maint: start 'tomorrow' is not a time such as"),
        ({"duration": None}, "reservation maint: give either end or duration"),
        ({"end": "2027-01-10T09:00:00"}, "reservation maint: give either end or duration"),
        ({"duration": None, "end": "2027-01-01T00:00:00"}, "reservation maint: it ends before it starts"),
        ({"users": []}, "reservation maint: give users or accounts"),
        ({"nodes": None}, "reservation maint: give either nodes or node_count"),
        ({"node": "hal01"}, "reservation maint: unknown key node"),
    ],
)
def test_a_declaration_that_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ReservationError, match=message):
        argv([{**MAINT, **change}], {})
