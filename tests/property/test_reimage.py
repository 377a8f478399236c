"""Whatever breaks, whenever a run is killed: only what was confirmed is erased, no job is lost, all is proven first."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hal_reimage.engine import Engine, Limits
from hal_reimage.errors import ReimageError, Trouble
from hal_reimage.record import Run, State, stamp
from tests.unit.reimage.fakes import RUN, Site, plan

NODES = ("hal01", "hal02", "hal03", "hal04")
FAULTS = (
    *("server", "slurmctld", "bmc", "ssh"),  # do not answer
    *("swapped", "power-ignored", "override-ignored", "disk-missing", "silent-install"),
    *("converge", "gates", "job"),
)
LIMITS = Limits(600, 1200, 600, 600, 900, 600, 900, 900, 300)
names = st.sampled_from(NODES)
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
        self.left = self.abort_at = -1
        self.site.call = self.called

    def new_engine(self) -> Engine:
        """A controller that knows nothing but the records."""
        self.site.rollouts.clear()
        return Engine(self.site.world(), LIMITS, self.site.now)

    def called(self, when: str, what: str, node: str) -> None:
        """A call of the engine's begins or ended: somebody aborts now, or the run is killed."""
        self.left, self.abort_at = self.left - 1, self.abort_at - 1
        if self.abort_at == -1:
            COUNTED["aborts"] += self.site.abort(node)
        if self.left == -1:
            raise Killed

    def tick(self, name: str) -> None:
        """One look of the engine, which may be the last thing that it does."""
        try:
            self.engine.tick(name, self.runs[name])
            COUNTED["ticks"] += 1
        except (Trouble, ReimageError):
            COUNTED["troubles"] += 1
        except Killed:
            COUNTED["kills"] += 1
            self.engine = self.new_engine()

    # --- an administrator

    @rule(name=names, by_slurm=st.booleans(), next_state=st.sampled_from(["RESUME", "RESUME", "DOWN"]))
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
        except Trouble:
            COUNTED["troubles"] += 1

    @rule(name=names)
    def abort(self, name: str) -> None:
        COUNTED["aborts"] += self.site.abort(name)

    @rule(name=names)
    def drain(self, name: str) -> None:
        """For a reason that has nothing to do with this."""
        machine = self.site.machines[name]
        if not machine.drained:
            machine.drained, machine.reason = True, "fan"

    @rule(name=names, next_state=st.sampled_from(["RESUME", "DOWN"]))
    def reboot(self, name: str, next_state: str) -> None:
        """By ``scontrol reboot ASAP``, before a reimage or within its time."""
        machine = self.site.machines[name]
        if machine.serves:
            machine.reboot, machine.next_state, machine.drained, machine.reason = "asked", next_state, True, "kernel"

    @rule(name=names)
    def resume(self, name: str) -> None:
        """By hand, whatever it was drained for; what serves then is on him."""
        machine = self.site.machines[name]
        if machine.drained and not machine.reboot and machine.system:
            machine.drained, machine.reason, machine.resumed_by_hand = False, "", True

    @rule(name=names)
    def press_the_button(self, name: str) -> None:
        """Somebody in the machine room switches it on."""
        machine = self.site.machines[name]
        if not machine.on:
            machine.on, machine.runs = True, "firmware"

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

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), left=st.integers(0, 60))
    def be_killed(self, data: st.DataObject, left: int) -> None:
        """A kill, at any call of one of the next looks."""
        name = data.draw(st.sampled_from(sorted(self.runs)))
        self.left = left
        for _ in range(left):
            if self.left < 0:
                break
            self.tick(name)
            self.site.pass_time(30)
        self.left = -1

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), at=st.integers(0, 60))
    def be_aborted(self, data: st.DataObject, at: int) -> None:
        """Somebody aborts, at any call of one of the next looks."""
        name = data.draw(st.sampled_from(sorted(self.runs)))
        self.abort_at = at
        for _ in range(at + 1):
            if self.abort_at < 0:
                break
            self.tick(name)
            self.site.pass_time(30)
        self.abort_at = -1

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
                assert (machine.disk, machine.boots, machine.on, machine.key) == ("system 0", 1, True, "key 0")
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
        self.left = self.abort_at = -1
        for name in NODES:
            self.site.end_jobs(name)
        self.finish()
        for name, run in self.runs.items():
            record = self.site.records[name]
            self.check_end(name)
            if record["state"] == State.FAILED.value:
                self.runs[name] = replace(run, began="once more")
                self.engine.confirm(self.site.confirmed[name], self.runs[name])
        self.finish()
        for name in self.runs:
            assert self.site.records[name]["state"] != State.FAILED.value, self.site.records[name]
            self.check_end(name)

    def check_end(self, name: str) -> None:
        """Done and as it was to be, or drained with a reason."""
        machine, record = self.site.machines[name], self.site.records[name]
        state = str(record["state"])
        COUNTED[state] += 1
        assert state != State.GOING.value, f"{name} never ended: {record}"
        assert name not in self.site.orders, f"{name} is armed at the end"
        assert not machine.reserved, f"{name} is kept for a test job"
        if state == State.DONE.value:
            assert machine.proven or machine.resumed_by_hand
            assert machine.system
            if machine.resumed_by_hand:
                return
            if record["drained_before"] or record["run"]["next_state"] == "DOWN":  # type: ignore[index]
                assert machine.drained
                assert machine.reason == (record["drained_before"] or {"reason": machine.reason})["reason"]  # type: ignore[index]
        elif not machine.resumed_by_hand and record["step"] not in ("waiting", "identity", "drain"):
            assert machine.drained, f"{name} is not drained: {record}"
            assert machine.reason

    def finish(self) -> None:
        """Look until nothing goes on."""
        for _ in range(400):
            going = [name for name in self.runs if self.site.records[name]["state"] == State.GOING.value]
            if not going:
                return
            for name in going:
                self.tick(name)
            self.site.pass_time(30)


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
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(dict(COUNTED))
    # A machine that goes nowhere would prove nothing.
    assert all(COUNTED[what] for what in ("kills", "jobs", "aborts", "done", "failed", "aborted")), COUNTED


def test_whatever_breaks_nodes_end_proven_or_drained() -> None:
    machine_of(80, again=True)


@pytest.mark.slow
def test_it_holds_for_ten_thousand_looks_that_nobody_saw_before() -> None:
    machine_of(400, again=False)
    assert COUNTED["ticks"] >= 10_000, COUNTED
