"""How nodes are driven: so many at a time, none after a failure, none lost with another."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hal_cluster.reimage.drive import LOOK_SECONDS, MARK_SECONDS, PATIENCE_SECONDS, Drive
from hal_cluster.reimage.engine import Engine
from hal_cluster.reimage.errors import Conflict, ReimageError, Trouble
from hal_cluster.reimage.record import STEPS, Record, Run, State, Step
from hal_cluster.reimage.stepping import Limits
from hal_cluster.reimage.world import World
from tests.unit.hal_cluster.reimage.asking import one_at_a_time
from tests.unit.hal_cluster.reimage.fakes import RUN, Site, plan

PROJECT = Path(__file__).resolve().parents[4]
NODES = [f"hal{number:02}" for number in range(1, 7)]
LONG_SECONDS = 600
Tick = Callable[[str], Record | Exception]


def at(node: str, step: Step, state: State = State.GOING, *, run: Run = RUN, waiting: str = "") -> Record:
    return Record(
        node, plan(node), run, step, state=state, waiting=waiting, reason="no" if state is State.FAILED else ""
    )


class Scripted(Engine):
    """An engine that does nothing but to say what a test has for it."""

    def __init__(self, tick: Tick) -> None:
        self._tick, self.asked = tick, list[str]()

    def tick(self, node: str, run: Run) -> Record:
        assert run == RUN
        self.asked.append(node)
        said = self._tick(node)
        if isinstance(said, Exception):
            raise said
        return said


def drive(
    tick: Tick,
    nodes: Iterable[str],
    *,
    parallel: int = 1,
    go_on: bool = False,
    poll: float = 10,
    passed: Callable[[], float] = lambda: 0,
) -> tuple[dict[str, Record], dict[str, str], list[Record], list[float]]:
    """Return what came of nodes, what was reported, and for how long it slept. ``passed``: seconds beside that."""
    reports, slept = list[Record](), list[float]()
    driven = Drive(
        Scripted(tick),
        RUN,
        reports.append,
        parallel=parallel,
        poll_seconds=poll,
        go_on=go_on,
        sleep=slept.append,
        monotonic=lambda: sum(slept) + passed(),
    )
    records, gone = driven.all(list(nodes))
    return records, gone, reports, slept


def done(node: str) -> Record:
    return at(node, Step.RETURN, State.DONE)


@pytest.mark.parametrize(("parallel", "most"), [(1, 1), (3, 3), (16, 6), (0, 1)])
def test_so_many_are_at_work_at_once_and_no_more(parallel: int, most: int) -> None:
    lock, here, seen = threading.Lock(), set[str](), list[int]()
    together = threading.Barrier(most)

    def tick(node: str) -> Record:
        with lock:
            here.add(node)
            seen.append(len(here))
        together.wait(LONG_SECONDS)  # breaks when fewer come than may
        with lock:
            here.remove(node)
        return done(node)

    records, gone, _reports, _slept = drive(tick, NODES, parallel=parallel)
    assert gone == {}
    assert set(records) == set(NODES)
    assert max(seen) == most


@pytest.mark.parametrize("state", [State.FAILED, State.ABORTED])
def test_after_a_failure_no_other_node_is_begun(state: State) -> None:
    def tick(node: str) -> Record:
        return at(node, Step.GATES, state) if node == "hal02" else done(node)

    records, gone, *_ = drive(tick, NODES[:4])
    assert {name: one.state for name, one in records.items()} == {"hal01": State.DONE, "hal02": state}
    said = "not begun, because hal02 failed; the same command goes on with it"
    assert gone == {"hal03": said, "hal04": said}


def test_with_go_on_others_are_begun_after_a_failure() -> None:
    def tick(node: str) -> Record:
        return at(node, Step.GATES, State.FAILED) if node == "hal02" else done(node)

    records, gone, *_ = drive(tick, NODES[:4], go_on=True)
    assert (set(records), gone) == (set(NODES[:4]), {})


@pytest.mark.parametrize("state", [State.FAILED, State.ABORTED])
def test_those_that_were_begun_go_on_beside_one_that_failed(state: State) -> None:
    begun = threading.Barrier(2)
    looks = dict.fromkeys(NODES, 0)

    def tick(node: str) -> Record:
        looks[node] += 1
        if looks[node] == 1:
            begun.wait(LONG_SECONDS)
        if node == "hal01":
            return at(node, Step.OFF, state)
        return done(node) if looks[node] == 5 else at(node, STEPS[looks[node]])

    records, gone, *_ = drive(tick, ["hal01", "hal02"], parallel=2)
    assert records["hal02"].state is State.DONE
    assert gone == {}


def test_an_exception_is_one_nodes_and_the_others_go_on() -> None:
    def tick(node: str) -> Record | Exception:
        return KeyError("bmc") if node == "hal01" else done(node)

    records, gone, *_ = drive(tick, NODES[:3], go_on=True)
    assert gone == {"hal01": "KeyError: 'bmc'"}
    assert set(records) == {"hal02", "hal03"}
    _records, gone, *_ = drive(tick, NODES[:2])
    assert gone["hal02"] == "not begun, because hal01 failed; the same command goes on with it"


def test_a_report_that_fails_is_one_nodes_too() -> None:
    def report(record: Record) -> None:
        if record.node == "hal01":
            raise BrokenPipeError("terminal")

    driven = Drive(Scripted(done), RUN, report, parallel=1, poll_seconds=10, go_on=True, sleep=lambda seconds: None)
    records, gone = driven.all(NODES[:2])
    assert records["hal02"].state is State.DONE
    assert gone["hal01"].startswith("BrokenPipeError")


@pytest.mark.parametrize("error", [Trouble("hal-mgmt1: no route to host"), Conflict("hal01")])
def test_a_silent_server_is_asked_again_for_a_while(error: Exception) -> None:
    said = [error] * 3

    def tick(node: str) -> Record | Exception:
        return said.pop() if said else done(node)

    records, gone, _reports, slept = drive(tick, NODES[:1])
    assert (records["hal01"].state, gone, slept) == (State.DONE, {}, [10, 10, 10])


def begun(error: Callable[[], Exception | None]) -> tuple[dict[str, Record], dict[str, str], list[str], list[float]]:
    """Drive hal01, whose beginning meets errors; return what came of it, what was said, and for how long it slept."""
    said, slept = list[str](), list[float]()

    def begin(node: str) -> None:
        if (met := error()) is not None:
            raise met

    driven = Drive(
        Scripted(done),
        RUN,
        lambda record: None,
        parallel=1,
        poll_seconds=10,
        begin=begin,
        say=said.append,
        sleep=slept.append,
        monotonic=lambda: sum(slept),
    )
    return *driven.all(NODES[:1]), said, slept


def test_a_server_that_is_silent_as_a_turn_comes_is_asked_again_and_that_is_said() -> None:
    errors = [Trouble("slurmctld does not answer", passes=True)] * 3
    records, gone, said, slept = begun(lambda: errors.pop() if errors else None)
    assert (records["hal01"].state, gone, slept) == (State.DONE, {}, [10, 10, 10])
    assert said == ["hal01: not begun yet: slurmctld does not answer"]


def test_a_server_that_stays_silent_as_a_turn_comes_ends_the_run() -> None:
    records, gone, _said, slept = begun(lambda: Trouble("slurmctld does not answer", passes=True))
    said = "not begun: slurmctld does not answer, for 15 min; the same command goes on"
    assert (records, gone, sum(slept)) == ({}, {"hal01": said}, PATIENCE_SECONDS)


@pytest.mark.parametrize("error", [Trouble("this is another machine"), ReimageError("too few would be left")])
def test_what_no_second_call_would_change_is_not_asked_again(error: Exception) -> None:
    records, gone, said, slept = begun(lambda: error)
    assert (records, gone, said, slept) == ({}, {"hal01": f"not begun: {error}"}, [], [])


def test_whoever_has_ended_is_said_to_leave() -> None:
    left = list[str]()

    def tick(node: str) -> Record | Exception:
        return ReimageError("its record is gone") if node == "hal02" else done(node)

    driven = Drive(Scripted(tick), RUN, lambda record: None, parallel=1, poll_seconds=10, leave=left.append, go_on=True)
    driven.all(NODES[:3])
    assert left == NODES[:3]


def test_a_server_that_stays_silent_ends_the_run_with_what_to_do() -> None:
    records, gone, _reports, slept = drive(lambda node: Trouble("hal-mgmt1: no route to host"), NODES[:2])
    assert gone["hal01"] == "hal-mgmt1: no route to host, for 15 min; the same command goes on"
    assert gone["hal02"].startswith("not begun, because hal01 failed")
    assert (records, sum(slept)) == ({}, PATIENCE_SECONDS)


@pytest.mark.parametrize(("call", "poll", "calls"), [(300, 10, 4), (60, 0, 16), (PATIENCE_SECONDS, 10, 2)])
def test_the_time_that_a_silent_server_keeps_calls_waiting_counts(call: float, poll: float, calls: int) -> None:
    asked: list[str] = []

    def tick(node: str) -> Exception:
        asked.append(node)
        return Trouble("hal-mgmt1: timed out")

    _records, gone, *_ = drive(tick, NODES[:1], poll=poll, passed=lambda: call * len(asked))
    assert gone == {"hal01": "hal-mgmt1: timed out, for 15 min; the same command goes on"}
    assert len(asked) == calls


def test_what_a_look_did_before_the_server_fell_silent_is_no_silence() -> None:
    """A BMC took 17 minutes to shut the machine down; then one answer of the server was lost."""
    said = [Trouble("hal-mgmt1: connection reset")]
    looks: list[str] = []

    def tick(node: str) -> Record | Exception:
        looks.append(node)
        return said.pop() if said else done(node)

    records, gone, _reports, slept = drive(tick, NODES[:1], passed=lambda: 1020 * len(looks))
    assert (records["hal01"].state, gone, slept) == (State.DONE, {}, [10])


def test_however_long_a_look_takes_the_server_hears_that_nodes_are_driven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_cluster.reimage.drive.MARK_SECONDS", 0.01)
    marks, heard = list[list[str]](), {"hal01": threading.Event(), "hal02": threading.Event()}

    def mark(nodes: Sequence[str]) -> None:
        marks.append(list(nodes))
        if len(marks) % 2:
            raise BlockingIOError("no process could be started")  # the next mark is made all the same
        for name in nodes:
            heard[name].set()

    def tick(node: str) -> Record:
        assert heard[node].wait(LONG_SECONDS)  # one look, as long as that
        return done(node)

    driven = Drive(Scripted(tick), RUN, lambda record: None, parallel=1, poll_seconds=10, mark=mark)
    _records, gone = driven.all(NODES[:2])
    assert gone == {}
    assert {tuple(one) for one in marks} <= {("hal01",), ("hal02",), ()}, "of those at work alone"


def test_a_look_that_hangs_is_no_driving(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hal_cluster.reimage.drive.MARK_SECONDS", 0.01)
    now, hangs, heard = [0.0], threading.Event(), threading.Event()
    marks = list[list[str]]()

    def mark(nodes: Sequence[str]) -> None:
        marks.append(list(nodes))
        if "hal01" in nodes:
            now[0] = LOOK_SECONDS + 1  # hal02's look is of that hour, hal01's is not
            hangs.set()
        elif hangs.is_set():
            heard.set()

    def tick(node: str) -> Record:
        if node == "hal02":
            assert hangs.wait(LONG_SECONDS)
            if not looked:
                looked.append(node)
                return at(node, Step.OFF)
        assert heard.wait(LONG_SECONDS)
        return done(node)

    looked = list[str]()
    driven = Drive(
        Scripted(tick), RUN, lambda record: None, parallel=2, poll_seconds=0, mark=mark, monotonic=lambda: now[0]
    )
    _records, gone = driven.all(NODES[:2])
    assert gone == {}
    assert marks[-1] == ["hal02"]


def test_a_controller_tries_less_long_than_status_waits_for_its_word() -> None:
    shown = (PROJECT / "roles/provision_server/files/reimage_status.py").read_text()
    found = re.search(r"^SILENT_SECONDS = (\d+) \* 60$", shown, re.M)
    assert found
    assert int(found[1]) * 60 >= PATIENCE_SECONDS + MARK_SECONDS + 120


def test_silence_is_counted_anew_after_each_answer() -> None:
    looks = [0]
    rounds = 3 * PATIENCE_SECONDS // 20

    def tick(node: str) -> Record | Exception:
        looks[0] += 1
        if looks[0] > rounds:
            return done(node)
        return Trouble("busy") if looks[0] % 3 else at(node, Step.INSTALL, waiting="its installation to end")

    records, gone, *_ = drive(tick, NODES[:1])
    assert (records["hal01"].state, gone) == (State.DONE, {})


def test_a_damaged_record_ends_the_node_at_once() -> None:
    _records, gone, _reports, slept = drive(lambda node: ReimageError(f"{node}: its record is damaged"), NODES[:1])
    assert (gone, slept) == ({"hal01": "hal01: its record is damaged"}, [])


@pytest.mark.parametrize(
    "other", [replace(RUN, by="ann@there", began="2026-11-22T19:30:00Z"), replace(RUN, call="in the same second")]
)
def test_a_node_that_another_run_took_over_is_left_to_it(other: Run) -> None:
    engine_asked: list[str] = []

    def tick(node: str) -> Record:
        engine_asked.append(node)
        return at(node, Step.INSTALL, run=other)

    _records, gone, *_ = drive(tick, NODES[:1])
    assert gone == {"hal01": f"taken over by {other.by} at {other.began}"}
    assert engine_asked == ["hal01"]


def test_what_slurm_said_of_how_it_ends_is_no_other_run() -> None:
    said = [done("hal01"), at("hal01", Step.DRAIN, run=replace(RUN, next_state="DOWN"))]
    records, gone, *_ = drive(lambda node: said.pop(), NODES[:1])
    assert (records["hal01"].state, gone) == (State.DONE, {})


def test_each_change_is_told_once_and_only_waiting_takes_time() -> None:
    waits = at("hal01", Step.INSTALL, waiting="the installer to begin")
    said = [at("hal01", Step.BOOT), waits, waits, waits, at("hal01", Step.START), done("hal01")]
    script = iter(said)
    _records, _gone, reports, slept = drive(lambda node: next(script), NODES[:1])
    assert reports == [said[0], said[1], said[4], said[5]]
    assert slept == [10, 10, 10]


def test_nodes_on_their_way_to_a_step_are_those_past_their_jobs() -> None:
    steps = {"hal01": Step.WAITING, "hal02": Step.IDENTITY, "hal03": Step.DRAIN, "hal04": Step.OFF}
    steps |= {"hal05": Step.START, "hal06": Step.CONVERGE}
    ready, counted = threading.Barrier(len(NODES) + 1), threading.Event()
    looks = dict.fromkeys(NODES, 0)

    def tick(node: str) -> Record:
        looks[node] += 1
        if looks[node] == 1:
            return at(node, steps[node], waiting="x")
        ready.wait(LONG_SECONDS)
        assert counted.wait(LONG_SECONDS)
        return done(node)

    driven = Drive(Scripted(tick), RUN, lambda record: None, parallel=6, poll_seconds=0, sleep=lambda seconds: None)
    running = threading.Thread(target=driven.all, args=(NODES,))
    running.start()
    ready.wait(LONG_SECONDS)
    found = (driven.to_come(Step.CONVERGE), driven.to_come(Step.GATES))
    counted.set()
    running.join(LONG_SECONDS)
    assert found == (2, 3)


def test_a_node_that_failed_is_on_its_way_no_more() -> None:
    driven = Drive(
        Scripted(lambda node: at(node, Step.OFF, State.FAILED)), RUN, lambda record: None, parallel=1, poll_seconds=0
    )
    driven.all(NODES[:1])
    assert driven.to_come(Step.CONVERGE) == 0


def test_no_nodes_at_all_end_at_once() -> None:
    assert drive(done, []) == ({}, {}, [], [])


def real(site: Site, world: World) -> Engine:
    engine = Engine(world, Limits(600, 1200, 600, 600, 900, 600, 900, 900, 300), site.now)
    for name in site.machines:
        engine.confirm(plan(name), RUN)
        site.confirmed[name] = plan(name)
    return engine


def test_the_engine_brings_several_nodes_through_and_one_fault_stays_one_nodes() -> None:
    site = Site(*NODES)
    site.call = lambda when, what, node: site.pass_time(30) if (when, what) == ("before", "store.read") else None
    site.faults["hal03"].add("gates")
    engine = real(site, one_at_a_time(site.world()))
    # A machine in memory may fail before the last thread has begun.
    driven = Drive(engine, RUN, lambda record: None, parallel=6, poll_seconds=0.001, go_on=True)
    records, gone = driven.all(NODES)
    assert gone == {}
    assert {name: one.state for name, one in records.items()} == dict.fromkeys(NODES, State.DONE) | {
        "hal03": State.FAILED
    }
    assert [name for name in NODES if not site.machines[name].serves] == ["hal03"]
