"""Who may leave, whose a drain is, what a reason keeps: at each border."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hal_node.slurm import drains as subject

PROJECT = Path(__file__).resolve().parents[4]


def nodes(number: int, *partitions: str, **changes: Any) -> dict[str, dict[str, Any]]:
    usual = {"usable": True, "maintained": False, "partitions": list(partitions), **changes}
    return {f"n{each}": dict(usual) for each in range(number)}


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        ("x" * 240, "x" * 240),
        ("x" * 241, "x" * 237 + "..."),
        ("a\x1fb\x7fc~d e", "a b c~d e"),
        (" a ", "a"),
        ("[a]'b'", "(a)b"),
    ],
)
def test_a_reason_is_as_long_as_slurm_keeps(reason: str, kept: str) -> None:
    assert subject.reason_line(reason) == kept


@pytest.mark.parametrize(("number", "floor"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_half_of_a_partition_stays_unless_somebody_says_other(number: int, floor: int) -> None:
    assert subject.floors_of(nodes(number, "b", "a"), {"b": 0}) == {"a": (floor, number), "b": (0, number)}


def test_partitions_come_by_name() -> None:
    assert list(subject.floors_of(nodes(1, "b", "a", "c"), {})) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("number", "floors", "proving", "words"),
    [
        (3, {"a": 2}, [], ""),
        (2, {"a": 2}, [], "a would have 1 node for jobs, at least 2 have to stay"),
        (1, {"a": 1}, [], "a would have 0 nodes for jobs, at least 1 has to stay"),
        (3, {"a": 2}, ["n2"], "a would have 1 node for jobs, at least 2 have to stay"),
        (3, {"a": 9}, ["n0"], ""),
        (1, {"a": 0}, [], ""),
        (4, {}, ["n1"], ""),
        (4, {}, ["n1", "n2"], "a would have 1 node for jobs, at least 2 have to stay"),
    ],
)
def test_a_node_may_leave_while_enough_stay(
    number: int, floors: dict[str, int], proving: list[str], words: str
) -> None:
    assert subject.too_few(["n0"], nodes(number, "a"), floors, proving) == words


@pytest.mark.parametrize("changes", [{"usable": False}, {"maintained": True}])
def test_who_serves_nobody_may_leave_and_stays_for_nobody(changes: dict[str, Any]) -> None:
    every = nodes(3, "a")
    every["n2"].update(changes)
    assert subject.too_few(["n2"], every, {"a": 3}, []) == ""
    assert subject.too_few(["n0"], every, {"a": 2}, []) == "a would have 1 node for jobs, at least 2 have to stay"


def test_each_partition_of_a_node_counts() -> None:
    every = {**nodes(3, "a", "b"), "n3": {"usable": True, "maintained": False, "partitions": ["a"]}}
    words = "b would have 2 nodes for jobs, at least 3 have to stay"
    assert subject.too_few(["n0"], every, {"a": 3, "b": 3}, []) == words
    assert subject.too_few(["n3"], every, {"a": 3, "b": 3}, []) == ""


@pytest.mark.parametrize(
    ("state", "reason", "is_away", "by"),
    [
        ({"drained": True}, "hal-reboot: new kernel", True, "hal-reboot"),
        ({"failing": True}, "hal-reimage: x", True, "hal-reimage"),
        ({}, "hal-reboot: new kernel", False, ""),
        ({"drained": True}, "hal-reboots: x", True, ""),
        ({"drained": True}, "health:x", True, ""),
        ({"drained": True}, "broken fan, health: x", True, ""),
    ],
)
def test_a_drain_is_known_by_how_its_reason_begins(state: dict[str, bool], reason: str, is_away: bool, by: str) -> None:
    node = {"drained": False, "failing": False, "reason": reason, **state}
    assert subject.away(node) is is_away
    assert [who for who in (subject.HEALTH, subject.REBOOT, subject.REIMAGE) if subject.is_by(node, who)] == by.split()


@pytest.mark.parametrize(
    ("number", "site", "words"),
    [
        (4, 3, ""),
        (3, 3, "2 nodes would be left for jobs, at least 3 have to stay; 0 of 3 are away already"),
        (1, 0, ""),
        (1, None, ""),
    ],
)
def test_a_site_keeps_as_many_as_it_says(number: int, site: int | None, words: str) -> None:
    assert subject.too_few(["n0"], nodes(number), {}, site=site) == words


@pytest.mark.parametrize(("site", "floor"), [(None, 2), (3, 2), (2, 2), (1, 1), (0, 0)])
def test_no_partition_keeps_more_than_its_site_unless_it_is_named(site: int | None, floor: int) -> None:
    every = nodes(4, "a", "b")
    assert subject.floors_of(every, {"b": 3}, site) == {"a": (floor, 4), "b": (3, 4)}


def test_nodes_that_leave_together_leave_enough_behind() -> None:
    every = {**nodes(2, "a"), "n2": {"usable": True, "maintained": False, "partitions": ["b"]}}
    assert subject.too_few(["n0", "n2"], every, {}) == ""
    assert subject.too_few(["n0", "n1"], every, {}) == "a would have 0 nodes for jobs, at least 1 has to stay"
    # Half of the site stays, and none of the partition.
    assert subject.too_few(["n0", "n1"], every, {}, site=1) == "a would have 0 nodes for jobs, at least 1 has to stay"
    assert subject.too_few(["n0", "n1"], every, {}, site=0) == ""


def test_a_reservation_of_a_test_job_has_its_node_in_its_name() -> None:
    rows = ("hal-reimage-hal01 Nodes=x", "hal-reboot-hal02", "maint", "xhal-reimage-hal03", "hal-reimage-abort-hal04")
    text = "".join(f"ReservationName={row} StartTime=y\n" for row in rows)
    assert subject.proving(text) == {"hal01", "abort-hal04"}
    assert subject.proving("No reservations in the system\n") == set()


def test_roles_use_the_same_words() -> None:
    """YAML cannot import them."""
    driver = yaml.safe_load((PROJECT / "roles/nvidia_driver/vars/main.yml").read_text())
    scale = yaml.safe_load((PROJECT / "roles/spectrum_scale/vars/main.yml").read_text())
    assert driver["__nvidia_driver_use_probe"][-1] == scale["__spectrum_scale_busy"] == subject.BUSY
