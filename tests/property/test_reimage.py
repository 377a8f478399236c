"""Whatever breaks, whenever a run is killed: only what was confirmed is erased, no job is lost, all is proven first."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import engine as hypothesis_engine
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hal_cluster.reimage.engine import Engine
from hal_cluster.reimage.errors import ReimageError, Trouble
from hal_cluster.reimage.record import Record, Run, State, Step, record_of, stamp
from hal_cluster.reimage.stepping import Limits
from tests.unit.hal_cluster.reimage.fakes import RUN, Broken, Site, plan

NODES = ("hal01", "hal02", "hal03", "hal04")
ENDS = st.sampled_from(["RESUME", "RESUME", "DOWN"])
FAULTS = (
    *("server", "slurmctld", "bmc", "ssh"),  # do not answer
    *("swapped", "power-ignored", "override-ignored", "disk-missing", "silent-install", "image-broken"),
    "untold",  # nobody hears why an installer stopped
    *("converge", "gates", "job"),
)
LIMITS = Limits(600, 1200, 600, 600, 900, 600, 900, 900, 300)
BETWEEN = [step.value for step in Step if step is not Step.WAITING]
# Up to here there may be a reservation of a reimage that was aborted while nobody drove it: Slurm ends it.
EARLY = (Step.WAITING, Step.IDENTITY, Step.DRAIN, Step.OFF, Step.ARM)
BEFORE = ("nothing", "nothing", "a job", "drained", "health", "RESUME", "DOWN")
# What people and machines do to a node, and what becomes of the run.
DEEDS = ("give back", "give back, a job", "button", "drain", "power lost", "order ran out", "it breaks")
# What can break there.
BREAKS = {
    **{
        "identity": "swapped",
        "drain": "slurmctld",
        "off": "power-ignored",
        "arm": "server",
        "boot": "override-ignored",
    },
    **{"install": "disk-missing", "start": "ssh", "converge": "converge", "gates": "gates", "job": "job"},
    "return": "slurmctld",
}
# What people do to one whose system does not shut itself down.
SERVES = ("give back", "a job")
MEANWHILE = (
    ("abort",),
    ("take over",),
    SERVES,
    ("abort", *SERVES),
    ("take over", *SERVES),
    ("take over", "abort", *SERVES),
)
TURNS = ("abort", "take over", "kill at a call", "abort at a call", "take over at a call")
names = st.sampled_from(NODES)
steps, befores = st.sampled_from(BETWEEN), st.sampled_from(BEFORE)
asked = st.builds(lambda by_slurm, end: replace(RUN, by_slurm=by_slurm, next_state=end), st.booleans(), ENDS)
COUNTED: Counter[str] = Counter()


class Killed(BaseException):
    """The controller is no more."""


class Reimage(RuleBasedStateMachine):
    """Runs that are killed, people, faults, and the engine between them."""

    @initialize()
    def begin(self) -> None:
        self.site = Site(*NODES)
        self.engine = self.new_engine()
        self.runs: dict[str, Run] = {}
        self.left = self.abort_at = self.take_at = -1
        self.taken: dict[str, Run] = {}
        self.rebooted: set[str] = set()
        self.site.call = self.called

    def new_engine(self) -> Engine:
        """A controller that knows nothing but the records."""
        self.site.rollouts.clear()
        return Engine(self.site.world(), LIMITS, self.site.now)

    def called(self, when: str, what: str, node: str) -> None:
        """A call of the engine's begins or ended: somebody aborts now, another takes over, or the run is killed."""
        self.left, self.abort_at, self.take_at = self.left - 1, self.abort_at - 1, self.take_at - 1
        if self.abort_at == -1:
            COUNTED["aborts"] += self.site.abort(node)
        if self.take_at == -1:
            self.take_over(node)
        if self.left == -1:
            raise Killed

    def tick(self, name: str) -> None:
        """One look of the engine, which may be the last thing that it does."""
        before = self.site.records.get(name)
        going = before is not None and before["state"] == State.GOING.value
        try:
            record = self.engine.tick(name, self.runs[name])
            COUNTED["ticks"] += 1
            self.check_look(record, going)
        except (Trouble, ReimageError):
            COUNTED["troubles"] += 1
        except Killed:
            COUNTED["kills"] += 1
            self.engine = self.new_engine()
        except Broken as broken:  # Hypothesis makes histories shorter that end in an Exception
            raise AssertionError(str(broken)) from None

    def check_look(self, record: Record, going: bool) -> None:
        """What a look just ended is as it has to be, before anybody does anything else."""
        machine, told = self.site.machines[record.node], f"{record}"
        assert "nobody foresaw" not in record.reason, told
        if record.going or not (going or record.state is State.ABORTED):
            return
        assert record.node not in self.site.orders, told
        if record.state is State.DONE:
            asked = record.drained_before or record.run.next_state == "DOWN"
            assert machine.proven or machine.resumed_by_hand, told
            assert machine.drained == bool(asked) or machine.resumed_by_hand, told
            if record.drained_before and machine.drained:
                assert machine.reason == record.drained_before.reason, told
            return
        assert record.reason, told
        if "could not be made safe" in record.reason:
            return
        if not going:  # people may have given it back since it was aborted, or ask for a reboot
            return
        assert not machine.reserved or record.step in EARLY, told
        assert not (machine.network_next and machine.on and machine.runs == "firmware"), told
        if record.state is State.ABORTED and machine.resumed_by_hand:  # within this look, after the abort
            return
        if record.step not in (Step.WAITING, Step.IDENTITY, Step.DRAIN):
            assert machine.drained, told
            assert machine.reason.startswith("hal-reimage: "), told

    def take_over(self, name: str) -> None:
        """Somebody gives the same command at another controller, and the first knows nothing of it."""
        kept = self.site.records.get(name)
        if kept is None or kept["state"] not in ("going", "failed"):
            return
        call, self.site.call = self.site.call, lambda when, what, node: None
        run = replace(self.runs[name], began=f"{stamp(self.site.clock)} {self.site.number()}")
        with suppress(Trouble, ReimageError):
            Engine(self.site.world(), LIMITS, self.site.now).confirm(self.site.confirmed[name], run)
            self.taken[name] = run
            COUNTED["taken over"] += 1
        self.site.call = call

    # --- an administrator

    @rule(name=names, by_slurm=st.booleans(), next_state=ENDS)
    def confirm(self, name: str, by_slurm: bool, next_state: str) -> None:
        """A plan is confirmed; the code of one that is over is worth nothing any more, so it is a new one."""
        kept = self.site.records.get(name)
        over = kept is not None and kept["state"] in ("done", "aborted")
        previous = str(kept["ended"]) if kept and over else str(kept["plan"]["previous"]) if kept else ""  # type: ignore[index]
        wanted = plan(name, previous=previous)
        run = replace(
            RUN, by_slurm=by_slurm, next_state=next_state, began=f"{stamp(self.site.clock)} {self.site.number()}"
        )
        self.site.confirmed[name] = wanted
        try:
            self.engine.confirm(wanted, run)
            self.runs[name] = run
        except Trouble:  # it failed, and cannot be made safe now
            COUNTED["troubles"] += 1
        except ReimageError as error:  # it failed after it was installed, was given back, and too few would be left
            refused = str(error)
            assert "cannot be drained now: too few would be left" in refused
            assert self.site.records[name]["reason"]
            assert self.site.machines[name].serves
            COUNTED["too few would be left"] += 1
            self.drain(name)  # another takes its place

    @rule(name=names)
    def abort(self, name: str) -> None:
        COUNTED["aborts"] += self.site.abort(name)

    @rule(name=names)
    def drain(self, name: str) -> None:
        """For a reason that has nothing to do with this."""
        machine = self.site.machines[name]
        if not machine.drained:
            machine.drain("fan")

    @rule(name=names, next_state=ENDS)
    def reboot(self, name: str, next_state: str) -> None:
        """By ``scontrol reboot ASAP``, before a reimage or within its time."""
        self.site.ask_reboot(name, next_state)
        self.rebooted.add(name)

    @rule(name=names)
    def resume(self, name: str) -> None:
        self.site.resume(name)

    @rule(name=names)
    def press_the_button(self, name: str) -> None:
        self.site.press_the_button(name)

    @rule(floor=st.sampled_from([0, 0, 1, 3, 4]))
    def keep(self, floor: int) -> None:
        """So many of the nodes are to stay for jobs."""
        self.site.floor = floor

    # --- users, time, faults

    @rule(name=names)
    def submit(self, name: str) -> None:
        COUNTED["jobs"] += self.site.submit(name)

    @rule(name=names)
    def end(self, name: str) -> None:
        self.site.end_jobs(name)

    @rule(seconds=st.sampled_from([5, 30, 30, 30, 700]))
    def time(self, seconds: int) -> None:
        self.site.pass_time(seconds)

    @rule(name=names, fault=st.sampled_from(FAULTS))
    def fault(self, name: str, fault: str) -> None:
        self.site.faults[name] ^= {fault}

    @rule()
    def mend(self) -> None:
        self.site.faults.clear()

    # --- the engine

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), times=st.integers(1, 40), seconds=st.sampled_from([5, 30, 30]))
    def go_on(self, data: st.DataObject, times: int, seconds: int) -> None:
        """Some looks at all nodes, or at one."""
        going = data.draw(st.sampled_from([*([name] for name in sorted(self.runs)), sorted(self.runs)]))
        for _ in range(times):
            for name in going:
                self.tick(name)
            self.site.pass_time(seconds)

    @rule(name=names, before=befores, run=asked, step=steps, deed=st.sampled_from(DEEDS), looks=st.integers(1, 25))
    def something_happens(self, name: str, before: str, run: Run, step: str, deed: str, looks: int) -> None:
        """All is well up to a step; then something happens to the node, and the engine goes on."""
        if not self.go_to(name, before, run, step):
            return
        machine = self.site.machines[name]
        if deed in ("give back", "give back, a job"):
            self.site.resume(name)
            if deed.endswith("job"):
                COUNTED["jobs"] += self.site.submit(name)
        elif deed == "button":
            self.site.press_the_button(name)
        elif deed == "drain":
            self.drain(name)
        elif deed == "power lost" and not machine.jobs:
            machine.on, machine.runs = False, ""
        elif deed == "order ran out":
            self.site.disarm(name)
        elif deed == "it breaks":
            self.site.faults[name] = {BREAKS[step]}
        for _ in range(looks):
            self.look(name)

    @rule(name=names, before=befores, run=asked, deeds=st.sampled_from(MEANWHILE))
    def a_system_hangs(self, name: str, before: str, run: Run, deeds: tuple[str, ...]) -> None:
        """It does not shut itself down: its power is to be taken away after a while, and people do something."""
        if not self.go_to(name, before, run, "off"):
            return

        def meanwhile(node: str) -> None:
            for deed in deeds:
                if deed == "abort":
                    COUNTED["aborts"] += self.site.abort(node)
                elif deed == "give back":
                    self.site.resume(node)
                elif deed == "a job":
                    COUNTED["jobs while it hangs"] += self.site.submit(node)
                else:
                    self.take_over(node)

        self.site.faults[name] = {"deaf"}
        self.site.meanwhile = meanwhile
        self.look(name)
        self.site.meanwhile = lambda node: None
        self.runs[name] = self.taken.pop(name, self.runs[name])
        for _ in range(4):
            self.look(name)

    @rule(
        name=names,
        run=asked,
        step=st.sampled_from(["off", "converge", "gates", "job"]),
        left=st.integers(-1, 20),
        job=st.booleans(),
        floor=st.sampled_from([0, 4]),
    )
    def it_fails_and_is_given_back(self, name: str, run: Run, step: str, left: int, job: bool, floor: int) -> None:
        """And perhaps the run is killed while it fails. Then the same command is given."""
        if not self.go_to(name, "nothing", run, step):
            return
        self.site.faults[name] = {BREAKS[step]}
        self.left = left
        for _ in range(6):
            self.look(name)
        self.left = -1
        self.site.faults.clear()
        self.site.resume(name)
        if job:
            COUNTED["jobs"] += self.site.submit(name)
        self.site.floor = floor
        self.confirm(name, run.by_slurm, run.next_state)
        self.site.floor = 0
        self.look(name)

    @rule(name=names, before=befores, run=asked, step=steps, turn=st.sampled_from(TURNS), at=st.integers(0, 14))
    def it_takes_a_turn(self, name: str, before: str, run: Run, step: str, turn: str, at: int) -> None:
        """All is well up to a step; then the run ends, there or at one of its next calls."""
        if not self.go_to(name, before, run, step):
            return
        if turn == "abort":
            COUNTED["aborts"] += self.site.abort(name)
        elif turn == "take over":
            self.take_over(name)
            self.the_first_does_nothing(name)
        self.left = at if turn == "kill at a call" else -1
        self.abort_at = at if turn == "abort at a call" else -1
        self.take_at = at if turn == "take over at a call" else -1
        for _ in range(8):
            self.look(name)
        self.left = self.abort_at = self.take_at = -1
        self.runs[name] = self.taken.pop(name, self.runs[name])

    def go_to(self, name: str, before: str, run: Run, step: str) -> bool:
        """Look at a node until a step is the next one; of another reimage when this one is past it."""
        self.site.faults.clear()
        self.site.floor = 0
        for _ in range(120):
            record = self.site.records.get(name)
            if record is None or record["state"] != State.GOING.value:
                self.prepare(name, before)
                self.confirm(name, run.by_slurm, run.next_state)
            elif record["step"] == step:
                COUNTED["at a step"] += 1
                return True
            else:
                self.look(name)
        return False

    def prepare(self, name: str, before: str) -> None:
        """What a node may be when it is to be reimaged."""
        machine = self.site.machines[name]
        if before == "a job":
            COUNTED["jobs"] += self.site.submit(name)
        elif before in ("RESUME", "DOWN"):
            self.reboot(name, before)
        elif before != "nothing" and not machine.drained:
            machine.drain("fan" if before == "drained" else "health: a GPU is lost")

    def going(self, name: str) -> bool:
        """Whether it is on."""
        record = self.site.records.get(name)
        return record is not None and record["state"] == State.GOING.value

    def look(self, name: str) -> None:
        """A look, half a minute, and the end of a job that is waited for."""
        self.tick(name)
        if str(self.site.records[name]["waiting"]).startswith("job"):
            self.site.end_jobs(name)
        self.site.pass_time(30)

    def the_first_does_nothing(self, name: str) -> None:
        """A controller that does not know that another took its node over."""
        if name not in self.taken:
            return
        before, told = self.site.records[name], len(self.site.told)
        self.engine.tick(name, self.runs[name])
        assert self.site.records[name] == before
        assert self.site.told[told:] == [f"store.read {name}"]

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), fault=st.sampled_from(FAULTS), good=st.integers(0, 14), left=st.integers(-1, 40))
    def go_on_with_a_fault(self, data: st.DataObject, fault: str, good: int, left: int) -> None:
        """All is well for a while, then something breaks and stays so; the run may be killed while it gives up."""
        name = data.draw(st.sampled_from(sorted(self.runs)))
        self.site.faults.clear()
        for number in range(good + 40):
            if number == good:
                self.site.faults[name] = {fault}
                self.left = left
            self.tick(name)
            self.site.pass_time(60)
        self.left = -1

    # --- what always holds

    @invariant()
    def nobody_is_armed_who_was_not_confirmed(self) -> None:
        for name, order in self.site.orders.items():
            assert self.site.confirmed.get(name) == order.record.plan

    @invariant()
    def others_are_untouched(self) -> None:
        for name, machine in self.site.machines.items():
            if name not in self.site.confirmed:
                boots = machine.boots if name in self.rebooted else 1
                assert (machine.disk, machine.boots, machine.on, machine.key) == ("system 0", boots, True, "key 0")
                assert name not in self.site.orders

    @invariant()
    def nothing_serves_that_is_not_proven(self) -> None:
        for name, machine in self.site.machines.items():
            assert machine.proven or machine.resumed_by_hand or not machine.serves, f"{name} serves, and is not proven"

    def teardown(self) -> None:
        """Faults are mended, and the same command is given once more: what was not aborted ends well."""
        if not hasattr(self, "site"):
            return
        self.site.faults.clear()
        self.left = self.abort_at = self.take_at = -1
        self.site.floor = 0
        for name in NODES:
            self.site.end_jobs(name)
        self.finish()
        for name, run in self.runs.items():
            record = self.site.records[name]
            self.check_end(name)
            if record["state"] == State.FAILED.value:
                if record["step"] not in BETWEEN[: BETWEEN.index("start")]:  # its power came back
                    self.site.press_the_button(name)
                    self.site.pass_time(30)
                self.runs[name] = replace(run, began="once more")
                self.drain(name)
                self.engine.confirm(self.site.confirmed[name], self.runs[name])
        self.finish()
        for name in self.runs:
            assert self.site.records[name]["state"] != State.FAILED.value, self.site.records[name]
            self.check_end(name)

    def check_end(self, name: str) -> None:
        """Done or given up, and nothing of it is left."""
        machine, record = self.site.machines[name], record_of(self.site.records[name])
        COUNTED[record.state.value] += 1
        assert not record.going, f"{name} never ended: {record}"
        assert name not in self.site.orders, f"{name} is armed at the end"
        if "could not be made safe" in record.reason:
            return
        if record.state is not State.ABORTED and record.step not in EARLY:
            assert not machine.reserved, f"{name} is kept for a test job"
        assert machine.proven or machine.resumed_by_hand or machine.drained, f"{name} is not drained: {record}"
        assert machine.reason or not machine.drained, f"{name} is drained for no reason: {record}"

    def finish(self) -> None:
        """Look until nothing goes on; a run looks once more at what was aborted."""
        for _ in range(400):
            going = [name for name in self.runs if self.going(name)]
            for name in going or self.runs:
                self.tick(name)
            if not going:
                return
            self.site.pass_time(30)


SHRINK_SECONDS = 20
"""How long a history that failed is made shorter. Hypothesis has five minutes for it, and a line to change that."""
PHASES = [phase for phase in Phase if phase is not Phase.explain]
"""What does not matter of a failure takes many runs more, and says little of a history."""


@pytest.fixture(autouse=True)
def a_failure_is_reported_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a minute, and perhaps with a step too many; without this it takes some minutes."""
    monkeypatch.setattr(hypothesis_engine, "MAX_SHRINKING_SECONDS", SHRINK_SECONDS)


def machine_of(examples: int, *, again: bool) -> None:
    """Run so many histories; the same ones ``again`` and again, or others each time."""
    COUNTED.clear()
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Reimage,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=again,
            phases=PHASES,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(dict(COUNTED))
    # A machine that goes nowhere would prove nothing.
    must = ("kills", "jobs", "jobs while it hangs", "aborts", "done", "failed", "aborted", "too few would be left")
    assert all(COUNTED[what] for what in must), COUNTED


def test_whatever_breaks_nodes_end_proven_or_drained() -> None:
    machine_of(120, again=True)


@pytest.mark.slow
def test_it_holds_for_ten_thousand_looks_that_nobody_saw_before() -> None:
    machine_of(400, again=False)
    assert COUNTED["ticks"] >= 10_000, COUNTED
