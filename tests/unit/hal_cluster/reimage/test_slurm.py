"""Slurm as the engine asks it: what it says of nodes, and how they are drained and rebooted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hal_cluster.reimage.errors import ReimageError, Trouble
from hal_cluster.reimage.remote import Done
from hal_cluster.reimage.slurm import SlurmCommands, TestJob
from tests.unit.hal_cluster.reimage.slurmctld import REASON, Job, Node, Slurmctld, once, site, slurm

GONE = Done(1, "", "slurm_update error: Unable to contact slurm controller (connect failure)\n")
REFUSED = Done(1, "", "sbatch: error: Batch job submission failed: Invalid account or account/partition combination\n")


def test_a_node_is_seen_with_its_jobs() -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, REASON
    here.jobs["7"] = Job("7", "train", "alice", "hal01", "RUNNING")
    here.jobs["8"] = Job("8", "train", "alice", "hal01", "COMPLETED")
    seen = slurm(here).see("hal01")
    assert (seen.known, seen.drained, seen.ours, seen.usable, seen.maintained) == (True, True, True, False, False)
    assert (seen.reason, seen.by, seen.reboot, seen.next_state) == (REASON, "root", "", "")
    assert [(job.id, job.user) for job in seen.jobs] == [("7", "alice")]


def test_who_drained_it_is_told_apart() -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, "broken fan"
    assert not slurm(here).see("hal01").ours


@pytest.mark.parametrize("reason", ["hal-reimage", "hal-reimages are slow", "hal-reimage:x", "see hal-reimage: x"])
def test_a_reason_that_only_begins_like_ours_is_somebody_elses(reason: str) -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, reason
    assert not slurm(here).see("hal01").ours
    assert slurm(here).reboot("hal01", REASON, "RESUME") == ""
    assert here.commands() == ["scontrol reboot ASAP nextstate=DOWN hal01"]


def test_a_node_that_slurm_does_not_know() -> None:
    assert not slurm(site()).see("hal77").known
    with pytest.raises(Trouble, match="Slurm does not know hal77"):
        slurm(site()).drain("hal77", REASON)


@pytest.mark.parametrize("name", ["all", "ALL", "hal[01-16]", "hal01,hal02", "", "--all"])
def test_what_names_more_than_one_node_is_never_given_to_scontrol(name: str) -> None:
    here = site()
    for ask in (lambda: slurm(here).see(name), lambda: slurm(here).reboot(name, REASON, "RESUME")):
        with pytest.raises(Trouble):
            ask()
    assert here.commands() == []


def test_what_was_asked_is_said_without_options() -> None:
    here = site()
    here.broken["sbatch"] = REFUSED
    here.nodes["hal01"].flags = {"DRAIN"}
    with pytest.raises(Trouble, match=r"^sbatch: sbatch: error: Batch job submission failed: Invalid account"):
        slurm(here, job=TestJob("true", "bob")).prove("hal01")
    here.broken["show node"] = Done(124)
    with pytest.raises(Trouble, match=r"^scontrol show node: no answer within 30 s$"):
        slurm(here).see("hal01")


@pytest.mark.parametrize(
    ("end", "passes"),
    [
        (Done(1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)\n"), True),
        (Done(1, "", "scontrol: error: Socket timed out on send/recv operation\n"), True),
        (Done(124), True),
        (Done(1, "", "slurm_load_node error: Access/permission denied\n"), False),
    ],
)
def test_what_fails_is_said_and_passes_only_when_slurmctld_does_not_answer(end: Done, passes: bool) -> None:
    here = site()
    here.broken["show node"] = end
    with pytest.raises(Trouble) as caught:
        slurm(here).see("hal01")
    assert caught.value.passes is passes
    assert (end.err.strip().splitlines() or ["no answer within 30 s"])[-1] in caught.value.reason


def test_a_node_is_drained_with_the_reason() -> None:
    here = site()
    assert slurm(here).drain("hal01", 'hal-reimage: "new"\n[image]') == ""
    assert (here.told("hal01"), here.nodes["hal01"].reason) == ("IDLE+DRAIN", "hal-reimage: new (image)")


@pytest.mark.parametrize(("reason", "after"), [("broken fan", "broken fan"), ("health: no GPU (x: gone)", REASON)])
def test_only_a_drain_of_the_health_check_becomes_ours(reason: str, after: str) -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, reason
    assert slurm(here).drain("hal01", REASON) == ""
    assert here.nodes["hal01"].reason == after


@pytest.mark.parametrize(
    ("floors", "away", "sentence"),
    [
        ({}, 2, "gpu would have 1 node for jobs, at least 2 have to stay"),
        ({}, 1, ""),
        ({"gpu": 0, "cpu": 4}, 0, "cpu would have 3 nodes for jobs, at least 4 have to stay"),
        ({"gpu": 1, "cpu": 1}, 3, "gpu would have 0 nodes for jobs, at least 1 has to stay"),
        ({"gpu": 0, "cpu": 0}, 3, ""),
    ],
)
def test_so_many_nodes_of_each_partition_stay(floors: dict[str, int], away: int, sentence: str) -> None:
    here = site()
    for number in range(away):
        here.nodes[f"hal{number + 1:02d}"].flags = {"DRAIN"}
    asking = slurm(here, floors=floors)
    for ask in (asking.drain, lambda node, reason: asking.reboot(node, reason, "RESUME")):
        assert ask("hal04", REASON) == sentence
        assert here.serving("hal04") is bool(sentence)
        assert (here.commands() == []) is bool(sentence), "refused, and not drained for a moment either"


def test_what_serves_nobody_is_not_taken_away_and_does_not_count() -> None:
    here = site()
    here.nodes["hal01"].base = "DOWN"
    here.nodes["hal02"].flags = {"MAINTENANCE"}
    here.reservations["hal-reimage-hal03"] = {"ReservationName": "hal-reimage-hal03"}
    asking = slurm(here, floors={"gpu": 4, "cpu": 1})
    assert asking.drain("hal04", REASON) == "gpu would have 0 nodes for jobs, at least 4 have to stay"
    assert asking.drain("hal01", REASON) == ""
    assert here.told("hal01") == "DOWN+DRAIN"


def test_what_each_partition_keeps_is_told() -> None:
    here = Slurmctld(*(Node(f"hal{each:02d}", ["gpu", "cpu"] if each < 4 else ["cpu"]) for each in range(1, 6)))
    here.nodes["hal01"].base = "DOWN"  # counts: it is the partition's
    assert slurm(here).check_floors() == {"cpu": (2, 5), "gpu": (1, 3)}
    assert slurm(here, floors={"gpu": 3, "cpu": 0}).check_floors() == {"cpu": (0, 5), "gpu": (3, 3)}
    assert here.commands() == []


def test_floors_that_cannot_be_kept_are_refused_with_a_line_each() -> None:
    asking = slurm(site(), floors={"gpux": 1, "gpu": 5, "cpu": 4})
    with pytest.raises(ReimageError) as caught:
        asking.check_floors()
    assert str(caught.value).splitlines() == [
        "reimage_keep: gpu has 4 nodes, 5 cannot stay",
        "reimage_keep: Slurm has no node in a partition gpux; it has cpu, gpu",
    ]


def _other_controller(here: Slurmctld) -> None:
    """As another run that drains a node of its own at the same moment."""
    here.nodes["hal02"].flags, here.nodes["hal02"].reason = {"DRAIN"}, "hal-reimage: another"


def _ask_drain(asking: SlurmCommands) -> str:
    return asking.drain("hal01", REASON)


def _ask_reboot(asking: SlurmCommands) -> str:
    return asking.reboot("hal01", REASON, "RESUME")


@pytest.mark.parametrize(("ask", "after"), [(_ask_drain, "State=DRAIN"), (_ask_reboot, "reboot ASAP")])
def test_a_drain_that_was_one_too_many_is_taken_back(ask: Callable[[SlurmCommands], str], after: str) -> None:
    here = site()
    once(here, after, _other_controller)
    assert ask(slurm(here, floors={"gpu": 3})) == "gpu would have 2 nodes for jobs, at least 3 have to stay"
    assert (here.told("hal01"), here.told("hal02")) == ("IDLE", "IDLE+DRAIN")
    here.issue("hal01")
    assert here.serving("hal01")
    once(here, after, _other_controller)
    assert ask(slurm(here, floors={"gpu": 2})) == ""
    assert not here.serving("hal01")


@pytest.mark.parametrize(("ask", "after"), [(_ask_drain, "State=DRAIN"), (_ask_reboot, "reboot ASAP")])
def test_a_drain_that_is_somebody_elses_by_now_is_not_taken_back(
    ask: Callable[[SlurmCommands], str], after: str
) -> None:
    here = site()

    def both(here: Slurmctld) -> None:
        _other_controller(here)
        here.nodes["hal01"].reason = "hal-reimage: new image, and more"

    once(here, after, both)
    assert ask(slurm(here, floors={"gpu": 3})).startswith("gpu would have 2 nodes")
    assert not here.serving("hal01")
    assert not [line for line in here.commands() if "RESUME" in line and "update" in line]


@pytest.mark.parametrize("base", ["DOWN", "IDLE"])
def test_a_reboot_that_was_issued_is_not_taken_back(base: str) -> None:
    here = site()

    def both(here: Slurmctld) -> None:
        _other_controller(here)
        here.issue("hal01")
        # 22.05 has it as DOWN and adds words to the reason: neither is what this is about.
        here.nodes["hal01"].base, here.nodes["hal01"].reason = base, REASON

    once(here, "reboot ASAP", both)
    assert _ask_reboot(slurm(here, floors={"gpu": 3})).startswith("gpu would have 2 nodes")
    assert "REBOOT_ISSUED" in here.nodes["hal01"].flags
    assert "DRAIN" in here.nodes["hal01"].flags


def test_a_node_that_went_down_meanwhile_is_not_given_back() -> None:
    here = site()

    def both(here: Slurmctld) -> None:
        _other_controller(here)
        here.nodes["hal01"].base = "DOWN"

    once(here, "State=DRAIN", both)
    assert _ask_drain(slurm(here, floors={"gpu": 3})).startswith("gpu would have")
    assert here.told("hal01") == "DOWN+DRAIN"


def test_a_node_that_serves_nobody_is_drained_whatever_others_do() -> None:
    for prepare in (_down, _health):
        here = site()
        prepare(here)
        once(here, "State=DRAIN", _other_controller)
        assert _ask_drain(slurm(here, floors={"gpu": 4})) == ""
        assert "DRAIN" in here.nodes["hal01"].flags


def test_a_reboot_is_asked_for_once() -> None:
    here = site()
    asking = slurm(here)
    assert asking.reboot("hal01", REASON, "DOWN") == ""
    assert asking.reboot("hal01", "hal-reimage: again", "RESUME") == ""
    assert here.commands() == [f"scontrol reboot ASAP nextstate=DOWN reason={REASON} hal01"]
    assert (asking.see("hal01").reboot, asking.see("hal01").next_state) == ("asked", "DOWN")
    here.issue("hal01")
    assert asking.see("hal01").reboot == "issued"
    assert asking.see("hal01").ours


def test_a_reboot_does_not_end_the_drain_of_an_administrator() -> None:
    here = site()
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, "broken fan"
    assert slurm(here).reboot("hal01", REASON, "RESUME") == ""
    here.issue("hal01")
    here.register("hal01")
    assert not here.serving("hal01")
    assert here.nodes["hal01"].reason.startswith("broken fan")


def _asked(here: Slurmctld) -> None:
    slurm(here).reboot("hal01", REASON, "RESUME")


def _issued(here: Slurmctld) -> None:
    _asked(here)
    here.issue("hal01")


def _down(here: Slurmctld) -> None:
    here.nodes["hal01"].base, here.nodes["hal01"].reason = "DOWN", "Not responding"


def _health(here: Slurmctld) -> None:
    here.nodes["hal01"].flags, here.nodes["hal01"].reason = {"DRAIN"}, "health: no GPU (x: gone)"


def _timed_out(here: Slurmctld) -> None:
    _issued(here)
    here.nodes["hal01"].flags = set()  # and its next state stays


@pytest.mark.parametrize("before", [lambda here: None, _asked, _issued, _down, _timed_out])
def test_a_node_stays_drained_whatever_it_was(before: Callable[[Slurmctld], None]) -> None:
    here = site()
    before(here)
    free: list[str] = []
    here.seen = lambda: free.extend(name for name in ("hal01",) if here.serving(name))
    slurm(here).keep_drained("hal01", "hal-reimage: gates: no GPU")
    if before.__name__ in ("_asked", "_issued"):
        assert free == [], "a job could have started"
    here.register("hal01")
    here.issue("hal01")
    here.register("hal01")
    assert not here.serving("hal01")
    assert "DRAIN" in here.nodes["hal01"].flags
    assert here.nodes["hal01"].reason == "hal-reimage: gates: no GPU"
    assert here.reservations == {}


def test_a_drain_alone_would_not_have_stayed() -> None:
    """What keep_drained is for: the stand-in does as Slurm does."""
    here = site()
    _issued(here)
    slurm(here).end_proof("hal01", REASON)  # State=DRAIN
    here.register("hal01")
    assert here.serving("hal01")


def test_a_node_whose_reboot_slurm_does_not_take_back_serves_nobody() -> None:
    here = site()
    _issued(here)
    here.nodes["hal01"].flags |= {"INVALID_REG"}
    slurm(here).keep_drained("hal01", REASON)
    assert here.reservations == {}
    here.nodes["hal01"].flags -= {"INVALID_REG"}
    here.register("hal01")
    assert here.told("hal01") == "IDLE+FAIL"
    seen = slurm(here).see("hal01")
    assert (seen.drained, seen.ours, seen.usable, seen.reason) == (True, True, False, REASON)
    slurm(here).keep_drained("hal01", REASON)
    assert here.told("hal01") == "IDLE+DRAIN"


def test_slurmctld_away_in_the_middle_leaves_nothing_that_serves() -> None:
    here = site()
    _issued(here)
    here.broken["State=DRAIN"] = GONE
    with pytest.raises(Trouble) as caught:
        slurm(here).keep_drained("hal01", REASON)
    assert caught.value.passes
    here.register("hal01")
    assert not here.serving("hal01"), "the reservation keeps jobs off"
    here.broken.clear()
    slurm(here).keep_drained("hal01", REASON)
    assert "DRAIN" in here.nodes["hal01"].flags
    assert here.reservations == {}


def test_a_reboot_is_taken_back_also_where_no_reservation_can_be_had() -> None:
    here = site()
    _issued(here)
    here.broken["create reservation"] = REFUSED
    slurm(here).keep_drained("hal01", REASON)
    here.register("hal01")
    assert here.told("hal01") == "IDLE+DRAIN"


def test_a_node_is_kept_drained_while_its_test_job_still_runs() -> None:
    here = site()
    here.nodes["hal01"].flags = {"DRAIN"}
    job = slurm(here).prove("hal01")
    here.jobs[job].state = "RUNNING"
    slurm(here).keep_drained("hal01", REASON)
    assert "DRAIN" in here.nodes["hal01"].flags
    assert here.reservations != {}
    assert slurm(here).proven("hal01", job) is None
