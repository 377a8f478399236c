"""What is decided from Slurm's words, at each border: who may leave, what ended, what passes, what a reason keeps."""

from __future__ import annotations

from typing import Any

import pytest

from hal_cluster.reimage import slurm_text as subject
from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.remote import Done
from hal_cluster.reimage.slurm_text import Listed, Ran
from tests.unit.hal_cluster.reimage.slurmctld import REASON, site, slurm


def nodes(number: int, *partitions: str, **changes: Any) -> dict[str, dict[str, Any]]:
    usual = {"usable": True, "maintained": False, "partitions": list(partitions), **changes}
    return {f"n{each}": dict(usual) for each in range(number)}


@pytest.mark.parametrize(
    ("words", "passes"),
    [
        *(
            (words, True)
            for words in ("Unable to contact slurm controller", "Socket TIMED OUT", "Zero bytes were sent")
        ),
        *((words, True) for words in ("Connection refused", "communication connection failure", "in standby mode")),
        *((words, True) for words in ("Protocol authentication error", "temporarily unable", "try again later")),
        *((words, False) for words in ("Invalid node name", "Access denied", "communication", "")),
    ],
)
def test_what_passes_is_known_by_its_words(words: str, passes: bool) -> None:
    assert subject.may_pass(words) is passes


@pytest.mark.parametrize("state", sorted(subject._ENDED))
def test_an_end_is_one(state: str) -> None:
    assert Listed("1", state).ended
    assert not Listed("1", f"{state}X").ended


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "REQUEUED", ""])
def test_anything_else_goes_on(state: str) -> None:
    assert not Listed("1", state).ended


def test_rows_of_another_width_are_no_jobs() -> None:
    text = "1|A\n 2|B|then \nx\n3|C|D|E\n4|F|\n"
    assert subject.read_listed(text) == [Listed("2", "B", "then"), Listed("4", "F", "")]


def test_a_job_has_what_is_told_of_it() -> None:
    text = "JobId=7 JobName=x UserId=root(0) JobState=FAILED Reason=None SubmitTime=then ExitCode=1:0 NodeList=n1\n"
    assert subject.read_ran(text) == Ran("7", "FAILED", "then", "x", "", "1:0", "n1")
    assert subject.read_ran(text.replace("None", "(null)")) == Ran("7", "FAILED", "then", "x", "", "1:0", "n1")
    assert subject.read_ran(text.replace("None", "Why")) == Ran("7", "FAILED", "then", "x", "Why", "1:0", "n1")
    assert subject.read_ran("JobId=7 JobState=X") == Ran("7", "X")
    assert subject.read_ran("JobId=7") is None
    assert subject.read_ran("JobState=X") is None


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Ran("7", "COMPLETED", exit="0:0", node="n1"), ""),
        (Ran("7", "COMPLETED", exit="0:0", node="n2"), "test job 7 ran on n2, not on n1"),
        (Ran("7", "COMPLETED", exit="1:0", node="n1"), "test job 7 ended as COMPLETED, exit status 1:0"),
        (Ran("7", "FAILED", exit="0:0", node="n1", reason="Why"), "test job 7 ended as FAILED, exit status 0:0, Why"),
    ],
)
def test_only_an_end_on_its_own_node_is_well(job: Ran, words: str) -> None:
    assert subject.ending(job, "n1") == words


def test_a_floor_is_of_a_partition_and_no_more_than_it_has() -> None:
    assert subject.impossible(nodes(2, "b", "a"), {"a": 2, "b": 0}) == []
    assert subject.impossible(nodes(2, "b", "a"), {"c": 0, "b": 3}) == [
        "reimage_keep: b has 2 nodes, 3 cannot stay",
        "reimage_keep: Slurm has no node in a partition c; it has a, b",
    ]
    assert subject.impossible(nodes(1, "a"), {"a": 2}) == ["reimage_keep: a has 1 node, 2 cannot stay"]


def test_a_node_that_slurm_does_not_give_back_is_not_proven() -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    here.broken["State=RESUME"] = Done(1, "", "slurm_update error: Invalid node state specified\n")
    with pytest.raises(Trouble, match="Invalid node state specified"):
        slurm(here).prove("hal01")
    assert (here.told("hal01"), here.nodes["hal01"].reason) == ("IDLE+DRAIN+MAINTENANCE", REASON)
    assert [words for words in here.commands() if words.startswith("sbatch")] == []
