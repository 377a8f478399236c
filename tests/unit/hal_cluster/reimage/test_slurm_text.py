"""Output of a real Slurm, read: healthy and broken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hal_cluster.reimage.slurm_text import (
    Listed,
    ending,
    may_pass,
    read_listed,
    read_node,
    read_ran,
    read_reservations,
)

CAPTURES = Path(__file__).parent / "captures"


def captured(name: str) -> str:
    return (CAPTURES / f"{name}.txt").read_text()


def node(name: str) -> dict[str, Any]:
    found: dict[str, Any] | None = read_node(captured(name).strip())
    assert found is not None
    return found


def test_a_node_that_waits_for_its_job_before_a_reboot() -> None:
    seen = node("node_reboot_asked")
    assert (seen["name"], seen["reboot"], seen["next_state"], seen["drained"]) == ("hal01", "asked", "RESUME", True)
    assert (seen["reason"], seen["by"]) == ("hal-reimage: new image", "root")
    assert seen["partitions"] == ["gpu", "cpu", "debug"]


def test_a_node_that_was_told_to_reboot() -> None:
    seen = node("node_reboot_issued")
    assert (seen["reboot"], seen["next_state"], seen["drained"], seen["down"]) == ("issued", "RESUME", True, True)
    assert (seen["reason"], seen["by"]) == ("hal-reimage: new image : reboot issued", "slurm")


def test_a_node_whose_reboot_was_to_end_down() -> None:
    seen = node("node_reboot_complete_down")
    assert (seen["reboot"], seen["next_state"], seen["drained"], seen["down"]) == ("", "", False, True)
    assert (seen["usable"], seen["answers"]) == (False, True)


def test_a_node_in_the_reservation_of_a_test_job() -> None:
    assert node("node_proving")["maintained"]


@pytest.mark.parametrize("name", ["node_unknown", "gone", "munge"])
def test_what_shows_no_node(name: str) -> None:
    assert [read_node(row) for row in captured(name).splitlines() if read_node(row)] == []


@pytest.mark.parametrize(("name", "passes"), [("gone", True), ("munge", True), ("node_unknown", False)])
def test_slurm_is_away(name: str, passes: bool) -> None:
    assert may_pass(captured(name).strip().splitlines()[-1]) is passes


def test_a_reservation() -> None:
    row = read_reservations(captured("reservation"))["hal-reimage-hal01"]
    assert (row["Nodes"], row["Users"], row["State"]) == ("hal01", "root", "ACTIVE")
    assert row["StartTime"] == "2026-11-22T19:20:28"
    assert read_reservations(captured("reservation_unknown")) == {}


def test_jobs_of_a_list() -> None:
    text = captured("squeue") + "1|COMPLETED|2026-11-22T19:08:07\n"
    assert read_listed(text) == [
        Listed("6", "PENDING", "2026-11-22T19:20:29"),
        Listed("1", "COMPLETED", "2026-11-22T19:08:07"),
    ]
    assert [job.ended for job in read_listed(text)] == [False, True]


def test_a_job_that_waits() -> None:
    job = read_ran(captured("job_pending"))
    assert job is not None
    assert (job.id, job.name, job.state, job.ended) == ("6", "hal-reimage-hal01", "PENDING", False)
    assert (job.reason, job.node) == ("ReqNodeNotAvail,_UnavailableNodes:hal01", "")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("job_failed", "test job 6 ended as FAILED, exit status 3:0, NonZeroExitCode"),
        ("job_cancelled", "test job 5 ended as CANCELLED, exit status 0:15"),
    ],
)
def test_a_job_that_did_not_end_well(name: str, words: str) -> None:
    job = read_ran(captured(name))
    assert job is not None
    assert job.ended
    assert ending(job, "hal01") == words


def test_a_job_that_slurm_does_not_know() -> None:
    assert read_ran(captured("job_unknown")) is None
