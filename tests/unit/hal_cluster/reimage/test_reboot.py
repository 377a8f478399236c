"""A reboot's steps: who is drained, when its jobs are gone, when it is back, and whether it is given back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from hal_cluster.reimage.draining import Draining
from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.reboot import Reboot, end_of, plan_of
from hal_cluster.reimage.record import Record, State, Step, record_of
from hal_cluster.reimage.remote import Done
from hal_node.slurm.drains import REBOOT
from tests.unit.hal_cluster.reimage.slurmctld import Job, Node, Slurmctld, once, site

NODE = "hal01"
OURS, THEIRS, UNWELL = "hal-reboot: new kernel", "broken fan", "health: GPU lost"
AGAIN = "the same command continues, scontrol update NodeName=hal01 State=RESUME gives it back."


@dataclass
class Desk:
    """A cluster, a clock, and what was said. ``passes``: what happens while it is waited for."""

    here: Slurmctld = field(default_factory=site)
    keep: int | None = None
    clock: float = 1795233600.0
    said: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    passes: Callable[[], object] = lambda: None

    @property
    def slurm(self) -> Draining:
        return Draining(self.here, REBOOT, site=self.keep)

    @property
    def reboot(self) -> Reboot:
        times = {"wait_seconds": 600.0, "poll_seconds": 20.0}
        return Reboot(self.slurm, "new kernel", say=self.said.append, now=lambda: self.clock, sleep=self.sleep, **times)

    def sleep(self, seconds: float) -> None:
        self.clock += seconds
        self.pauses.append(seconds)
        self.passes()

    def drained(self) -> Record:
        """Bring it through the drain, as the first task does."""
        return self.reboot.through(self.reboot.begun(NODE))

    def boot(self) -> None:
        """It boots: slurmctld has a drained node DOWN, until its slurmd registers."""
        node = self.here.nodes[NODE]
        node.base, node.slurmd = "IDLE", "2026-11-22T19:00:00"

    def all(self) -> Record:
        """Bring it through all steps, each with what the one before told."""
        record = self.drained()
        assert (record.going, record.step) == (True, Step.START), end_of(record)
        self.boot()
        started = self.reboot.through(record_of(record.to_json()))
        return self.reboot.through(record_of(started.to_json()))


def drain(here: Slurmctld, reason: str, *names: str, flag: str = "DRAIN") -> None:
    for name in names:
        here.nodes[name].flags, here.nodes[name].reason = {flag}, reason


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_node_is_drained_and_given_back(desk: Desk) -> None:
    record = desk.all()
    assert end_of(record) == "hal01: rebooted, takes jobs again"
    assert desk.here.serving(NODE)
    assert desk.here.commands() == [
        f"scontrol update NodeName=hal01 State=DRAIN Reason={OURS}",
        "scontrol update NodeName=hal01 State=RESUME",
    ]


def test_jobs_are_waited_for_and_said_once(desk: Desk) -> None:
    desk.here.jobs["7"] = Job("7", "train", "alice", NODE, "RUNNING")
    desk.passes = lambda: desk.here.jobs.clear() if len(desk.pauses) == 3 else None
    record = desk.drained()
    assert record.step is Step.START
    assert desk.said == ["hal01: waits for job 7 of alice (ends by Unknown)"]
    assert desk.pauses == [20.0] * 3


def test_jobs_that_outlive_the_time_are_named_and_the_node_stays_drained(desk: Desk) -> None:
    desk.here.jobs["7"] = Job("7", "train", "alice", NODE, "RUNNING")
    record = desk.drained()
    waited = "hal01 was not rebooted: waited 10 min for job 7 of alice (ends by Unknown)"
    assert end_of(record) == f"{waited}. It stays drained; {AGAIN}"
    assert desk.here.told(NODE) == "IDLE+DRAIN"
    desk.here.jobs.clear()
    assert end_of(desk.all()) == "hal01: rebooted, takes jobs again"  # the same command continues


@pytest.mark.parametrize("flag", ["DRAIN", "FAIL"])
def test_a_drain_of_somebody_else_stays_theirs(desk: Desk, flag: str) -> None:
    drain(desk.here, THEIRS, NODE, flag=flag)
    assert end_of(desk.all()) == "hal01: rebooted, stays drained: broken fan"
    assert desk.here.commands() == []


def test_a_node_that_somebody_drained_and_that_has_no_jobs_is_not_waited_for(desk: Desk) -> None:
    drain(desk.here, THEIRS, NODE)
    assert desk.drained().step is Step.START
    assert (desk.said, desk.pauses) == ([], [])


def test_a_drain_without_a_reason_stays_too(desk: Desk) -> None:
    """As slurm.conf's State=DRAIN is."""
    drain(desk.here, "", NODE)
    plan, _refusal = plan_of(desk.slurm, [NODE], [NODE])
    assert plan == "hal01: reboot after 0 jobs; stays drained, as somebody wished: drained without a reason"
    assert end_of(desk.all()) == "hal01: rebooted, stays drained: drained without a reason"
    assert desk.here.commands() == []


def test_nobody_is_told_to_end_a_drain_of_somebody_else(desk: Desk) -> None:
    drain(desk.here, THEIRS, NODE)
    ended = desk.reboot.through(desk.drained())  # its slurmd never registers anew
    waited = "hal01 was rebooted, and is not given back: waited 5 min for its slurmd to register"
    assert end_of(ended) == f"{waited}. It stays drained, as it was: broken fan; the same command continues."


@pytest.mark.parametrize("why", ["", "\u043d\u043e\u0432\u043e\u0435"])
def test_a_reason_without_words_is_ours_all_the_same(desk: Desk, why: str) -> None:
    reboot = Reboot(desk.slurm, why, wait_seconds=600.0, poll_seconds=20.0)
    reboot.through(reboot.begun(NODE))
    assert desk.slurm.see(NODE).ours


def test_a_drain_of_somebody_else_that_is_gone_after_the_boot_is_made_again(desk: Desk) -> None:
    drain(desk.here, THEIRS, NODE)
    record = desk.drained()
    desk.boot()
    desk.here.nodes[NODE].flags = set()
    ended = desk.reboot.through(desk.reboot.through(record))
    assert end_of(ended) == "hal01: rebooted, stays drained: broken fan"
    assert desk.here.commands() == [f"scontrol update NodeName=hal01 State=DRAIN Reason={THEIRS}"]


def test_whoever_drains_it_while_it_reboots_keeps_it(desk: Desk) -> None:
    record = desk.drained()
    desk.boot()
    drain(desk.here, THEIRS, NODE)
    ended = desk.reboot.through(desk.reboot.through(record))
    assert end_of(ended) == "hal01: rebooted, stays drained: broken fan"
    assert desk.here.told(NODE) == "IDLE+DRAIN"


def test_a_drain_of_the_health_check_is_taken_over_and_ended(desk: Desk) -> None:
    drain(desk.here, UNWELL, NODE)
    record = desk.all()
    assert end_of(record) == "hal01: rebooted, takes jobs again"
    assert f"scontrol update NodeName=hal01 State=DRAIN Reason={OURS}" in desk.here.commands()
    assert desk.here.serving(NODE)


def test_what_the_health_check_finds_meanwhile_keeps_it(desk: Desk) -> None:
    record = desk.drained()
    desk.boot()
    drain(desk.here, UNWELL, NODE)
    ended = desk.reboot.through(desk.reboot.through(record))
    waited = f"waited 2 min for its health check, which drained it: {UNWELL}"
    assert end_of(ended) == f"hal01 was rebooted, and takes no jobs: {waited}; {AGAIN}"
    assert desk.here.told(NODE) == "IDLE+DRAIN"


def test_a_drain_of_an_earlier_run_is_gone_on_with(desk: Desk) -> None:
    drain(desk.here, "hal-reboot: yesterday", NODE)
    assert end_of(desk.all()) == "hal01: rebooted, takes jobs again"
    assert desk.here.commands() == ["scontrol update NodeName=hal01 State=RESUME"]


def test_a_node_that_slurmctld_has_down_is_given_back(desk: Desk) -> None:
    record = desk.drained()
    desk.boot()
    desk.here.nodes[NODE].base = "DOWN"
    desk.passes = lambda: desk.here.register(NODE)  # slurmctld asks it once more
    assert end_of(desk.reboot.through(desk.reboot.through(record))) == "hal01: rebooted, takes jobs again"
    assert desk.pauses == [2.0]


def test_it_is_back_when_its_slurmd_has_registered_since(desk: Desk) -> None:
    record = desk.drained()
    left = desk.reboot.through(record)
    silent = "waited 5 min for its slurmd to register"
    assert end_of(left) == f"hal01 was rebooted, and is not given back: {silent}. It stays drained; {AGAIN}"
    assert desk.pauses == [5.0] * 60
    desk.boot()
    desk.here.nodes[NODE].flags |= {"NOT_RESPONDING"}
    desk.passes = lambda: desk.here.register(NODE)
    assert desk.reboot.through(record).step is Step.RETURN
    assert desk.pauses == [5.0] * 61, "one that slurmctld does not hear of is not back"


def test_a_node_that_gets_no_jobs_afterwards_is_told(desk: Desk) -> None:
    record = desk.drained()
    desk.boot()
    desk.here.nodes[NODE].base = "DOWN"
    ended = desk.reboot.through(desk.reboot.through(record))
    assert desk.here.commands().count("scontrol update NodeName=hal01 State=RESUME") == 1
    waited = "waited 2 min for Slurm to send it jobs; Slurm says: not answering"
    assert end_of(ended) == f"hal01 was rebooted, and takes no jobs: {waited}; {AGAIN}"


def test_a_drain_that_comes_too_late_is_taken_back(desk: Desk) -> None:
    desk.keep = 3
    once(desk.here, "update NodeName=hal01 State=DRAIN", lambda here: drain(here, "other", "hal02"))
    record = desk.drained()
    few = "2 nodes would be left for jobs, at least 3 have to stay; 1 of 4 are away already"
    assert end_of(record) == f"hal01: not drained: {few}"
    assert (record.state, desk.here.serving(NODE)) == (State.FAILED, True)
    assert desk.pauses == [], "others of this call would wait for it"


def test_slurmctld_that_does_not_answer_at_first_is_told_and_later_waited_for(desk: Desk) -> None:
    away = Done(1, "", "slurm_load_node error: Unable to contact slurm controller (connect failure)\n")
    desk.here.broken = {"show node": away}
    with pytest.raises(Trouble, match="Unable to contact"):
        desk.reboot.begun(NODE)
    desk.here.broken = {}
    record = desk.reboot.begun(NODE)
    desk.here.broken = {"show node": away}
    desk.passes = desk.here.broken.clear
    assert desk.reboot.through(record).step is Step.START
    said = "slurm_load_node error: Unable to contact slurm controller (connect failure)"
    assert desk.said == [f"hal01: waits for an answer: scontrol show node: {said}"]


def test_a_node_that_slurm_forgets_is_not_taken_for_one_without_jobs(desk: Desk) -> None:
    record = desk.reboot.begun(NODE)
    del desk.here.nodes[NODE]
    failed = desk.reboot.through(record)
    assert failed.state is State.FAILED
    assert "was not rebooted: Slurm does not know it any more" in end_of(failed)


def test_a_node_that_slurm_does_not_know_is_rebooted_at_once(desk: Desk) -> None:
    del desk.here.nodes[NODE]
    record = desk.reboot.through(desk.reboot.begun(NODE))
    assert end_of(desk.reboot.through(desk.reboot.through(record))) == "hal01: rebooted"
    assert desk.here.commands() == []


def test_the_plan_says_what_would_be_done(desk: Desk) -> None:
    desk.here.jobs["7"] = Job("7", "train", "alice", NODE, "RUNNING")
    drain(desk.here, THEIRS, "hal02")
    drain(desk.here, UNWELL, "hal03")
    drain(desk.here, OURS, "hal04")
    names = [NODE, "hal02", "hal03", "hal04", "hal05", "hal-login"]
    desk.keep = 0
    text, refusal = plan_of(desk.slurm, names, names[:-1])
    assert text.splitlines() == [
        "hal01: drain, reboot after 1 jobs, give back (job 7 of alice, ends by Unknown)",
        "hal02: reboot after 0 jobs; stays drained, as root wished: broken fan",
        "hal03: drained for health: GPU lost, reboot after 0 jobs, give back",
        "hal04: drained by an earlier run, reboot after 0 jobs, give back",
        "hal05: reboot at once, Slurm has no jobs there",
        "hal-login: reboot at once, Slurm has no jobs there",
    ]
    assert refusal == ""
    assert desk.here.commands() == []


def test_nodes_that_slurm_has_nothing_to_do_with_need_no_slurmctld(desk: Desk) -> None:
    assert plan_of(desk.slurm, [NODE], []) == ("hal01: reboot at once, Slurm has no jobs there", "")
    assert desk.here.asked == []


@pytest.mark.parametrize(
    ("keep", "names", "few"),
    [
        (0, "hal01 hal02 hal03 hal04", ""),
        (2, "hal01 hal02", "a would have 0 nodes for jobs, at least 1 has to stay"),
        (3, "hal01 hal02", "2 nodes would be left for jobs, at least 3 have to stay; 0 of 4 are away already"),
        (1, "hal03", ""),
        (1, "hal01 hal02", "a would have 0 nodes for jobs, at least 1 has to stay"),
        (2, "hal01 hal03", ""),
    ],
)
def test_so_many_nodes_stay_for_jobs(keep: int, names: str, few: str) -> None:
    parts = ("a", "a", "b", "b")
    desk = Desk(Slurmctld(*(Node(f"hal{number:02d}", [part]) for number, part in enumerate(parts, 1))), keep=keep)
    _text, refusal = plan_of(desk.slurm, names.split(), names.split())
    assert refusal == (f"{','.join(names.split())}: not drained: {few}" if few else "")


def test_nodes_that_are_away_already_are_not_asked_about(desk: Desk) -> None:
    desk.keep = 3
    drain(desk.here, UNWELL, NODE)
    drain(desk.here, THEIRS, "hal02")
    assert plan_of(desk.slurm, [NODE, "hal02"], [NODE, "hal02"])[1] == ""
    assert plan_of(desk.slurm, [NODE, "hal02", "hal03"], [NODE, "hal02", "hal03"])[1].startswith("hal01,hal03: not")


def test_a_node_with_a_test_job_of_a_reimage_is_none_that_stays(desk: Desk) -> None:
    desk.keep = 2
    desk.here.nodes["hal03"].base = desk.here.nodes["hal04"].base = "MIXED"
    desk.here.reservations = {
        f"hal-reimage-{name}": {"ReservationName": f"hal-reimage-{name}", "Nodes": name} for name in ("hal03", "hal04")
    }
    assert "would be left for jobs, at least 2 have to stay" in plan_of(desk.slurm, [NODE], [NODE])[1]
