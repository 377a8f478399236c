"""Slurm as the engine asks it: the test job that proves a node, and whoever comes in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import pytest

from hal_cluster.reimage.errors import Gone, ReimageError, Trouble
from hal_cluster.reimage.remote import Done
from hal_cluster.reimage.slurm import TestJob
from tests.unit.hal_cluster.reimage.slurmctld import REASON, Job, Node, Slurmctld, once, site, slurm

REFUSED = Done(1, "", "sbatch: error: Batch job submission failed: Invalid account or account/partition combination\n")


def test_a_test_job_gets_all_gpus_of_its_node_and_nobody_else_comes() -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    free: list[str] = []
    here.seen = lambda: free.extend(name for name in ("hal01",) if here.serving(name))
    asking = slurm(here)
    job = asking.prove("hal01")
    assert free == []
    assert here.commands() == [
        "scontrol create reservation ReservationName=hal-reimage-hal01 StartTime=now "
        "Duration=UNLIMITED Nodes=hal01 Users=alice Flags=MAINT,IGNORE_JOBS",
        "scontrol update NodeName=hal01 State=RESUME",
        "runuser -u alice -- sbatch --parsable --reservation=hal-reimage-hal01 --nodelist=hal01 "
        "--job-name=hal-reimage-hal01 --nodes=1 --ntasks=1 --partition=gpu --gres=gpu:v100:4 --time=2 --no-requeue "
        "--chdir=/ --output=/dev/null --wrap=nvidia-smi -L",
    ]
    assert asking.proven("hal01", job) is None
    here.jobs[job].state = "COMPLETED"
    assert asking.proven("hal01", job) == ""
    asking.end_proof("hal01", "")
    assert here.serving("hal01")
    assert here.reservations == {}


def test_a_test_job_of_another_user_on_a_node_without_gpus() -> None:
    here = Slurmctld(Node("hal-test", ["test"], flags={"DRAIN"}))
    slurm(here, job=TestJob("true", "bob")).prove("hal-test")
    assert "Users=bob" in here.commands()[0]
    assert here.commands()[-1].startswith("runuser -u bob -- sbatch ")
    assert "gres" not in here.commands()[-1]


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETED", "FAILED"])
def test_a_test_job_is_found_again(state: str) -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    job = slurm(here).prove("hal01")
    here.jobs[job].state = state
    assert slurm(here).prove("hal01") == job
    assert len(here.jobs) == 1


def test_a_test_job_of_an_earlier_proof_and_one_that_somebody_calls_so_are_not_taken_for_it() -> None:
    here = site()
    asking = slurm(here)
    here.nodes["hal01"].flags = {"DRAIN"}
    first = asking.prove("hal01")
    here.jobs[first].state = "FAILED"
    asking.end_proof("hal01", REASON)
    here.jobs["999"] = Job("999", "hal-reimage-hal01", "mallory", "hal01", "COMPLETED", submitted="2027-01-01T00:00:00")
    second = asking.prove("hal01")
    assert second not in (first, "999")


def test_times_that_are_compared_are_in_utc_and_those_for_people_are_not() -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    slurm(here).prove("hal01")
    slurm(here).see("hal01")
    asked = list(zip(map(" ".join, here.asked), here.zones, strict=True))
    assert {zone for line, zone in asked if "%V" in line or "show reservation hal-reimage" in line} == {"UTC"}
    assert {zone for line, zone in asked if "%e" in line} == {""}


def test_a_reservation_of_that_name_that_keeps_nobody_off_is_made_anew() -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    old = {"Nodes": "hal02", "Users": "alice", "State": "ACTIVE", "StartTime": "2026-11-01T00:00:00"}
    here.reservations["hal-reimage-hal01"] = {"ReservationName": "hal-reimage-hal01", **old}
    slurm(here).prove("hal01")
    assert here.reservations["hal-reimage-hal01"]["Nodes"] == "hal01"


def test_a_node_that_somebody_gives_back_in_the_same_moment_is_proven_all_the_same() -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}

    def meanwhile() -> None:
        """As by an administrator, just after it was seen drained."""
        if here.asked[-1][:4] == ["scontrol", "--oneliner", "show", "node"] and len(here.asked) > 3:
            here.nodes["hal01"].flags = set()

    here.seen = meanwhile
    assert slurm(here).prove("hal01") == "100"


def _drained(here: Slurmctld) -> None:
    """As an administrator does."""
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, "broken fan"


def _unreserved(here: Slurmctld) -> None:
    """As somebody does who takes a reservation away that he does not know."""
    here.reservations.clear()


def _abort_begun(here: Slurmctld) -> None:
    """As an abort whose reservation is about to go."""
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, "hal-reimage: aborted"


def _aborted(here: Slurmctld) -> None:
    _abort_begun(here)
    here.reservations.clear()


@pytest.mark.parametrize(
    ("does", "words", "reason"),
    [
        (_drained, "somebody drained it: broken fan", "broken fan"),
        (_abort_begun, "somebody drained it: hal-reimage: aborted", "hal-reimage: aborted"),
        (_aborted, "the reservation hal-reimage-hal01 was taken away", "hal-reimage: aborted"),
        (_unreserved, "the reservation hal-reimage-hal01 was taken away", REASON),
    ],
)
@pytest.mark.parametrize("was", [{"DRAIN"}, set()])
def test_what_comes_before_a_node_is_given_to_its_test_job_keeps_it_away(
    does: Callable[[Slurmctld], None], words: str, reason: str, was: set[str]
) -> None:
    """Between the reservation and RESUME; also of a node that an earlier try had given back."""
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = set(was), REASON
    once(here, "squeue", does)
    with pytest.raises(Trouble, match=words) as caught:
        slurm(here).prove("hal01")
    assert not caught.value.passes
    assert (here.nodes["hal01"].flags, here.nodes["hal01"].reason) == ({"DRAIN"}, reason)
    assert not [line for line in here.commands() if "RESUME" in line or "sbatch" in line]


def test_a_node_that_was_given_back_and_is_drained_for_what_was_its_last_reason_stays_so() -> None:
    here = site()
    here.nodes["hal01"].reason = REASON
    once(here, "squeue", lambda here: here.nodes["hal01"].flags.add("DRAIN"))
    with pytest.raises(Trouble, match="somebody drained it: hal-reimage: new image"):
        slurm(here).prove("hal01")
    assert here.nodes["hal01"].flags == {"DRAIN"}


@pytest.mark.parametrize("does", [_aborted, _unreserved])
def test_a_reservation_that_goes_while_a_node_is_given_back_is_seen_at_once(
    does: Callable[[Slurmctld], None],
) -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    once(here, "show node", does, skip=1)  # the last look
    with pytest.raises(Trouble, match="was taken away: hal01 was drained again") as caught:
        slurm(here).prove("hal01")
    assert not caught.value.passes
    assert (here.nodes["hal01"].flags, here.nodes["hal01"].reason) == ({"DRAIN"}, REASON)
    assert here.commands()[1:] == [
        "scontrol update NodeName=hal01 State=RESUME",
        f"scontrol update NodeName=hal01 State=DRAIN Reason={REASON}",
    ]
    assert here.asked[-3][-2:] == ["reservation", "hal-reimage-hal01"], "right before State=DRAIN"


def test_an_administrator_who_drains_while_the_test_job_is_refused_keeps_his_reason() -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    once(here, "State=RESUME", _drained)
    here.broken["sbatch"] = REFUSED
    with pytest.raises(Trouble, match="Invalid account"):
        slurm(here).prove("hal01")
    assert (here.nodes["hal01"].flags, here.nodes["hal01"].reason) == ({"DRAIN"}, "broken fan")


@pytest.mark.parametrize("after", ["State=DRAIN", "show node", "scontrol delete"])
def test_an_abort_drains_again_what_a_run_gives_back_meanwhile(after: str) -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    slurm(here).prove("hal01")
    once(here, after, lambda here: here.nodes["hal01"].flags.clear())
    slurm(here).end_proof("hal01", "hal-reimage: aborted")
    assert (here.nodes["hal01"].flags, here.nodes["hal01"].reason) == ({"DRAIN"}, "hal-reimage: aborted")
    assert here.reservations == {}


@pytest.mark.parametrize("proven", range(1, 10))
@pytest.mark.parametrize("aborted", range(10))
def test_whatever_the_turns_of_a_proof_and_an_abort_no_job_comes_and_the_node_is_drained(
    proven: int, aborted: int
) -> None:
    """So many commands of the proof, so many of the abort, the rest of the proof, the rest of the abort.

    RESUME asks nobody: an abort that is through between the last look and RESUME is seen with the look after it.
    """
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    free: list[bool] = []
    too_late: list[bool] = []

    def seen() -> None:
        free.append(here.serving("hal01"))
        if "State=RESUME" in here.asked[-1]:
            too_late.append(not here.reservations)

    here.seen = seen
    turn, rest = threading.Event(), threading.Event()
    said = {"proof": 0, "abort": 0}

    def abort() -> None:
        with suppress(Trouble):
            slurm(aborting).end_proof("hal01", "hal-reimage: aborted")
        turn.set()

    thread = threading.Thread(target=abort, daemon=True)

    def aborting(argv: Sequence[str], stdin: bytes = b"") -> Done:
        if said["abort"] == aborted:
            turn.set()
            assert rest.wait(600)
        said["abort"] += 1
        return here(argv, stdin)

    def proving(argv: Sequence[str], stdin: bytes = b"") -> Done:
        if said["proof"] == proven:
            thread.start()
            assert turn.wait(600)
        said["proof"] += 1
        return here(argv, stdin)

    with suppress(Trouble):
        slurm(proving).prove("hal01")
    assert said["proof"] >= proven
    if said["proof"] == proven:  # the abort comes after all of it
        thread.start()
    rest.set()
    thread.join(10)
    assert not thread.is_alive()
    assert sum(free) <= (2 if any(too_late) else 0), "RESUME, and the look"
    assert here.nodes["hal01"].flags == {"DRAIN"}


def test_an_abort_that_meets_a_resume_never_takes_the_reservation_of_a_node_that_serves() -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    slurm(here).prove("hal01")
    free: list[bool] = []

    def meanwhile() -> None:
        if "State=DRAIN" in here.asked[-1] and here.commands().count(" ".join(here.asked[-1])) == 1:
            here.nodes["hal01"].flags.clear()
        free.append(here.serving("hal01"))

    here.seen = meanwhile
    slurm(here).end_proof("hal01", "hal-reimage: aborted")
    assert not any(free)


@pytest.mark.parametrize(("end", "passes"), [(REFUSED, False), (Done(124), True)])
def test_a_test_job_that_cannot_be_submitted_leaves_the_node_drained(end: Done, passes: bool) -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    here.broken["sbatch"] = end
    with pytest.raises(Trouble) as caught:
        slurm(here).prove("hal01")
    assert caught.value.passes is passes
    assert here.nodes["hal01"].flags == {"DRAIN"}
    assert here.nodes["hal01"].reason == REASON
    here.broken.clear()
    slurm(here).prove("hal01")
    assert "DRAIN" not in here.nodes["hal01"].flags


def test_a_job_that_came_though_sbatch_did_not_answer_is_the_one() -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    job = slurm(here).prove("hal01")
    here.nodes["hal01"].flags = {"DRAIN"}  # as after an sbatch that timed out
    assert slurm(here).prove("hal01") == job
    assert here.nodes["hal01"].flags == set()


@pytest.mark.parametrize(
    ("state", "exit_status", "reason", "words"),
    [
        ("FAILED", "1:0", "NonZeroExitCode", "test job 100 ended as FAILED, exit status 1:0, NonZeroExitCode"),
        ("TIMEOUT", "0:0", "TimeLimit", "test job 100 ended as TIMEOUT, exit status 0:0, TimeLimit"),
        ("NODE_FAIL", "0:0", "None", "test job 100 ended as NODE_FAIL, exit status 0:0"),
        ("COMPLETING", "1:0", "NonZeroExitCode", None),
        ("RUNNING", "0:0", "None", None),
    ],
)
def test_how_a_test_job_ended(state: str, exit_status: str, reason: str, words: str | None) -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    job = slurm(here).prove("hal01")
    here.jobs[job].state, here.jobs[job].exit, here.jobs[job].reason = state, exit_status, reason
    assert slurm(here).proven("hal01", job) == words


def test_a_test_job_on_another_node_proves_nothing() -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    job = slurm(here).prove("hal01")
    here.jobs[job].state, here.jobs[job].node = "COMPLETED", "hal02"
    assert slurm(here).proven("hal01", job) == "test job 100 ran on hal02, not on hal01"
    assert slurm(here).proven("hal02", job) == "job 100 is hal-reimage-hal01, not a test job of hal02"


def test_a_test_job_that_slurm_forgot_is_followed_by_a_new_one_under_the_same_reservation() -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    asking = slurm(here)
    first = asking.prove("hal01")
    here.jobs[first].state = "COMPLETED"
    since = here.reservations["hal-reimage-hal01"]["StartTime"]
    here.forget(first)
    with pytest.raises(Gone, match=f"^test job {first} is not known to Slurm any more"):
        asking.proven("hal01", first)
    free: list[bool] = []
    here.seen = lambda: free.append(here.serving("hal01"))
    second = asking.prove("hal01")
    assert not any(free)
    assert second != first
    assert here.reservations["hal-reimage-hal01"]["StartTime"] == since
    here.jobs[second].state = "COMPLETED"
    assert asking.proven("hal01", second) == ""


def test_a_test_job_that_does_not_start_in_its_time() -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    now = [0.0]
    asking = slurm(here, clock=lambda: now[0])
    job = asking.prove("hal01")
    here.jobs[job].reason = "Resources"
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, "health: no GPU (x: gone)"
    assert asking.proven("hal01", job) is None
    now[0] = 91
    assert asking.proven("hal01", job) == (
        "test job 100 did not start within 90 s, Slurm says Resources; "
        "hal01 is IDLE+DRAIN+MAINTENANCE: health: no GPU (x: gone)"
    )


@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "FAILED"])
def test_a_proof_that_failed_ends_in_a_drained_node(state: str) -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    asking = slurm(here)
    job = asking.prove("hal01")
    here.jobs[job].state = state
    free: list[str] = []
    here.seen = lambda: free.extend(name for name in ("hal01",) if here.serving(name))
    asking.end_proof("hal01", "hal-reimage: its test job failed")
    assert free == []
    assert (here.told("hal01"), here.nodes["hal01"].reason) == ("IDLE+DRAIN", "hal-reimage: its test job failed")
    assert here.reservations == {}
    assert here.jobs[job].state in ("CANCELLED", "FAILED")
    asking.end_proof("hal01", "hal-reimage: its test job failed")


def test_a_reservation_that_its_job_still_uses_is_waited_for() -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    in_use = Done(1, "", "slurm_delete_reservation error: Requested reservation is in use\n")
    asking = slurm(here, pause=lambda _: here.broken.clear())
    asking.prove("hal01")
    here.broken["scontrol delete"] = in_use
    asking.end_proof("hal01", REASON)
    assert here.reservations == {}
    asking = slurm(here)
    asking.prove("hal01")
    here.broken["scontrol delete"] = in_use
    with pytest.raises(Trouble, match="is still in use") as caught:
        asking.end_proof("hal01", REASON)
    assert caught.value.passes


@pytest.mark.parametrize(
    ("user", "says"),
    [
        ("", "reimage_job_user: slurm_users names nobody; name the ordinary user who runs the test job"),
        ("--all", 'reimage_job_user: "--all" is not a user name; name the ordinary user who runs the test job'),
        ("root", "reimage_job_user: root is root, whose job shows nothing about those of users; name an ordinary user"),
        ("toor", "reimage_job_user: toor is root, whose job shows nothing about those of users; name an ordinary user"),
        (
            "bob",
            "reimage_job_user: bob has no association in Slurm, which refuses jobs without one; declare it "
            "(slurm_users), or name a user who has one",
        ),
    ],
)
def test_a_test_job_of_nobody_ordinary_is_refused(user: str, says: str) -> None:
    here = site()
    here.accounts["toor"] = 0
    with pytest.raises(ReimageError) as caught:
        slurm(here, job=TestJob("true", user)).check_job_user()
    assert str(caught.value) == says


def test_a_test_job_of_a_user_whose_jobs_slurm_takes_is_taken() -> None:
    here = site()
    slurm(here).check_job_user()
    here.enforces = "none"  # also a site without accounting
    slurm(here, job=TestJob("true", "bob")).check_job_user()
    with pytest.raises(Trouble, match="no such user"):
        slurm(here, job=TestJob("true", "carol")).check_job_user()
    here.enforces = "associations"
    here.broken["sacctmgr"] = Done(1, "", "sacctmgr: error: slurm_persist_conn_open: Connection refused\n")
    with pytest.raises(Trouble, match="Connection refused"):
        slurm(here).check_job_user()
    here.broken = {"show config": Done(0, "Slurmctld(primary) at hal-login is UP\n")}
    with pytest.raises(Trouble, match="no answer that can be read"):
        slurm(here).check_job_user()
    assert [line for line in here.commands() if not line.startswith(("id ", "sacctmgr "))] == []
