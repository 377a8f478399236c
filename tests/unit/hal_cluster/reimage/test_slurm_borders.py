"""What is asked of Slurm at each border: how long, how often, which of several jobs, and what an odd answer becomes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.remote import Done
from hal_cluster.reimage.slurm import TestJob
from tests.unit.hal_cluster.reimage.slurmctld import REASON, Job, Slurmctld, site, slurm


def drained() -> Slurmctld:
    """A site whose first node was drained by us."""
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    return here


def given(here: Slurmctld, word: str, printed: str) -> Slurmctld:
    """Have the first command that holds a word print something else, and end well."""
    here.broken[word] = Done(0, printed)
    return here


@pytest.mark.parametrize(("seconds", "minutes"), [(0, 1), (1, 1), (60, 1), (61, 2), (120, 2), (121, 3)])
def test_a_test_job_has_whole_minutes_and_at_least_its_seconds(seconds: int, minutes: int) -> None:
    assert TestJob("true", "alice", seconds=seconds).minutes == minutes


def test_a_test_job_has_no_gpus_and_two_minutes_unless_somebody_says_other() -> None:
    job = TestJob("true", "alice")
    assert (job.seconds, dict(job.gres)) == (120, {})


def test_a_test_job_may_wait_for_all_of_its_time() -> None:
    here, now = drained(), [1000.0]
    asking = slurm(here, clock=lambda: now[0])
    job = asking.prove("hal01")
    assert asking.proven("hal01", job) is None
    now[0] = 1090
    assert asking.proven("hal01", job) is None
    now[0] = 1090.5
    said = f"test job {job} did not start within 90 s, Slurm says no reason; hal01 is IDLE+MAINTENANCE"
    assert asking.proven("hal01", job) == said


def test_the_time_of_each_test_job_is_its_own() -> None:
    here, now = drained(), [0.0]
    asking = slurm(here, clock=lambda: now[0])
    first = asking.prove("hal01")
    assert asking.proven("hal01", first) is None
    here.jobs[first].state = "COMPLETED"
    here.forget(first)
    now[0] = 91
    second = asking.prove("hal01")
    assert asking.proven("hal01", second) is None


def test_a_reservation_in_use_is_asked_for_ten_seconds() -> None:
    here, paused = drained(), list[float]()
    asking = slurm(here, pause=paused.append)
    asking.prove("hal01")
    here.broken["scontrol delete"] = Done(1, "", "slurm_delete_reservation error: Requested reservation is in use\n")
    with pytest.raises(Trouble, match=r"^the reservation hal-reimage-hal01 is still in use$"):
        asking.end_proof("hal01", "")
    assert (len(paused), sum(paused)) == (20, 10)


def test_a_reservation_that_goes_is_not_waited_for() -> None:
    here, paused = drained(), list[float]()
    asking = slurm(here, pause=paused.append)
    asking.prove("hal01")
    asking.end_proof("hal01", "")
    assert (here.reservations, paused) == ({}, [])


def test_the_last_of_several_test_jobs_is_the_one_by_number() -> None:
    here = drained()
    slurm(here).prove("hal01")
    here.jobs = {
        number: Job(number, "hal-reimage-hal01", "alice", "hal01", "RUNNING", submitted="2026-11-22T17:00:00")
        for number in ("1000", "999", "9")
    }
    assert slurm(here).prove("hal01") == "1000"


@pytest.mark.parametrize(("second", "found"), [(0, True), (-1, False), (1, True)])
def test_a_test_job_that_ended_counts_from_the_second_of_its_reservation(second: int, found: bool) -> None:
    here = drained()
    slurm(here).prove("hal01")
    here.reservations["hal-reimage-hal01"]["StartTime"] = "2026-11-22T18:00:10"
    at = f"2026-11-22T18:00:{10 + second:02d}"
    here.jobs = {"50": Job("50", "hal-reimage-hal01", "alice", "hal01", "COMPLETED", submitted=at)}
    assert (slurm(here).prove("hal01") == "50") is found


@pytest.mark.parametrize(("printed", "job"), [("123\n", "123"), (" 77;hal\n", "77")])
def test_the_number_of_a_test_job_is_read_whatever_cluster_it_is_on(printed: str, job: str) -> None:
    assert slurm(given(drained(), "sbatch", printed)).prove("hal01") == job


def test_an_sbatch_that_names_no_job_started_none_and_the_node_stays_away() -> None:
    here = given(drained(), "sbatch", "Submitted\n")
    with pytest.raises(Trouble, match=r"^sbatch gave no id of the test job: Submitted$"):
        slurm(here).prove("hal01")
    assert (here.nodes["hal01"].flags, here.nodes["hal01"].reason) == ({"DRAIN"}, REASON)


def test_a_reservation_that_slurm_took_and_does_not_show_is_trouble_that_passes() -> None:
    here = given(drained(), "create reservation", "Reservation created: hal-reimage-hal01\n")
    with pytest.raises(Trouble) as caught:
        slurm(here).prove("hal01")
    assert caught.value.reason == "Slurm took the reservation hal-reimage-hal01 and does not show it"
    assert caught.value.passes
    assert here.nodes["hal01"].flags == {"DRAIN"}


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Done(3), "scontrol show node: exit status 3"),
        (Done(1, "printed\n", "first\nlast\n\n"), "scontrol show node: last"),
        (Done(1, "one\ntwo\n", ""), "scontrol show node: two"),
    ],
)
def test_a_command_that_fails_says_its_last_line_or_its_status(end: Done, words: str) -> None:
    here = site()
    here.broken["show node"] = end
    with pytest.raises(Trouble) as caught:
        slurm(here).see("hal01")
    assert (caught.value.reason, caught.value.passes) == (words, False)


def test_an_answer_that_shows_no_node_does_not_say_that_it_is_gone() -> None:
    for printed in ("", "\n", "NodeName=hal02 State=IDLE\n"):
        with pytest.raises(Trouble, match="no answer that can be read") as caught:
            slurm(given(site(), "show node", printed)).see("hal01")
        assert caught.value.passes


@pytest.mark.parametrize(("said", "seen"), [("RESUME", "RESUME"), ("DOWN", "DOWN"), ("UNDRAIN", "")])
def test_what_a_reboot_ends_in_is_one_of_two(said: str, seen: str) -> None:
    here = site()
    slurm(here).reboot("hal01", REASON, said)
    assert slurm(here).see("hal01").next_state == seen


@pytest.mark.parametrize("flag", ["DRAIN", "FAIL"])
@pytest.mark.parametrize(("reason", "whose"), [(REASON, "ours"), ("health: gone", "unhealthy"), ("fan", "")])
def test_whose_drain_it_is_counts_only_while_a_node_is_away(flag: str, reason: str, whose: str) -> None:
    here = site()
    here.nodes["hal01"].reason = reason
    free = slurm(here).see("hal01")
    assert (free.drained, free.ours, free.unhealthy, free.usable) == (False, False, False, True)
    here.nodes["hal01"].flags = {flag}
    away = slurm(here).see("hal01")
    assert (away.drained, away.ours, away.unhealthy) == (True, whose == "ours", whose == "unhealthy")
    assert not away.usable


@pytest.mark.parametrize("state", ["COMPLETED", "CANCELLED", "TIMEOUT"])
def test_a_test_job_that_ended_is_not_cancelled(state: str) -> None:
    here = drained()
    job = slurm(here).prove("hal01")
    here.jobs[job].state = state
    slurm(here).end_proof("hal01", "")
    assert [words for words in here.commands() if words.startswith("scancel")] == []


@pytest.mark.parametrize("names", [["hal01"], ["hal01", "hal02"]])
def test_gpus_of_several_kinds_are_asked_for_by_name(names: Sequence[str]) -> None:
    here = site()
    gres = {"hal01": "gpu:a100:1,gpu:v100:2", "hal02": ""}
    for name in names:
        here.nodes[name].flags = {"DRAIN"}
        slurm(here, job=TestJob("true", "alice", gres)).prove(name)
    asked = [words for words in here.commands() if " sbatch " in words]
    assert [" --gres=gpu:a100:1,gpu:v100:2 " in words for words in asked] == [name == "hal01" for name in names]
    assert ["--gres" in words for words in asked] == [name == "hal01" for name in names]
