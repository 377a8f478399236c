"""The step engine: one node, one step, one look at a time.

Each step reads the state first and passes when it is already true, so a run that was killed goes on where the record
says. What fails is written down first (``reason``), then the node is made safe (disarmed, drained with the reason), and
only then the record says ``failed``. Steps: docs/reimage.md. No step acts on a node whose record is not going on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from hal_cluster.reimage.errors import Conflict, Gone, ReimageError, Trouble
from hal_cluster.reimage.record import STEPS, Drained, Plan, Record, Run, State, Step, moment, stamp
from hal_cluster.reimage.stepping import Fields, Limits, Stepping, Wait, drained_meanwhile, jobs_of
from hal_cluster.reimage.world import Installation, SlurmNode, World
from hal_inventory.errors import HalError
from hal_inventory.printable import one_line
from hal_node.slurm.drains import REIMAGE

_MOST_CONSOLE = 200  # characters of what a console says, beside the reason
_POSITION = {step: number for number, step in enumerate(STEPS)}


def before(step: Step, other: Step) -> bool:
    """Return whether a step comes before another."""
    return _POSITION[step] < _POSITION[other]


class Engine(Stepping):
    """Brings nodes through the steps. Safe for several threads, as long as each node has one."""

    def __init__(self, world: World, limits: Limits | None = None, now: Callable[[], float] = time.time) -> None:
        self.world = world
        steps: dict[Step, Callable[[Record], Fields]] = {
            Step.WAITING: self._waiting,
            Step.IDENTITY: self._identity,
            Step.DRAIN: self._drain,
            Step.OFF: self._off,
            Step.ARM: self._arm,
            Step.BOOT: self._boot,
            Step.INSTALL: self._install,
            Step.START: self._start,
            Step.CONVERGE: self._converge,
            Step.GATES: self._gates,
            Step.JOB: self._job,
            Step.RETURN: self._return,
        }
        super().__init__(world.slurm, steps, limits or Limits(), now)

    # --- begin, go on

    def confirm(self, plan: Plan, run: Run) -> Record:
        """Write down that a plan is to be carried out, or take it up where it broke off; return the record.

        The caller has compared the code with the plan. ReimageError when another reimage is not through, and for a plan
        that does not know of the last one. Trouble when a node that failed cannot be made safe first.
        """
        kept = self.world.store.read(plan.node)
        if kept is None or kept.state in (State.DONE, State.ABORTED):
            if kept and plan.previous != kept.ended:
                raise ReimageError(f"{plan.node}: this code was used: that reimage is {kept.state.value}, {kept.ended}")
            revision = kept.revision if kept else 0
            # After an abort: step waiting asks whether that drain is there again.
            had = kept.drained_before if kept and kept.state is State.ABORTED else None
            new = Record(plan.node, plan, run, since=stamp(self.now()), revision=revision, drained_before=had)
            return self.world.store.write(new)
        refuse_other(kept, plan, run.code)
        if kept.reason:
            step = _again_from(kept.step)
            if step is Step.START and self._unlike_started(kept):
                step = Step.IDENTITY  # what keeps it from starting is on its disk or in its secrets: both are made anew
            kept = self._safe_again(kept, step)
            kept = replace(kept, step=step, reason="", ended="", job="", state=State.GOING)
        # It stays drained if anybody asked for that, now or then. The time that it was left alone counts for no step.
        next_state = "DOWN" if "DOWN" in (run.next_state, kept.run.next_state) else run.next_state
        kept = replace(kept, run=replace(run, next_state=next_state), since=stamp(self.now()), waiting="")
        return self.world.store.write(kept)

    def _safe_again(self, kept: Record, step: Step) -> Record:
        """Make a failed node safe: its run may have ended before that, or somebody gave it back since.

        A node that serves meanwhile counts. If the machine goes off again, step drain asks how many are left; for
        later steps it is asked here. ReimageError when too few would be left. Return its record, with the drain that
        somebody else has made.
        """
        seen = self._see(kept)
        serves = seen.usable and not seen.maintained
        if serves:
            kept = self._drained_by(kept, None)
        elif seen.drained and not (seen.ours or seen.unhealthy or seen.reboot):
            kept = self._drained_by(kept, Drained(seen.reason, seen.by))
        if serves and before(step, Step.START):
            self._make_safe(kept, "")
            return kept
        if serves and (why := self.world.slurm.drain(kept.node, _failure(kept))):
            raise ReimageError(
                f"{kept.node}: it failed at {kept.step.value}, serves jobs since, and cannot be drained now: {why}. "
                f"hal-reimage abort {kept.node} leaves it out"
            )
        self._make_safe(kept, _failure(kept))
        return kept

    def _drained_by(self, kept: Record, had: Drained | None) -> Record:
        """Write down whose drain a node had, before ours takes its place."""
        return kept if kept.drained_before == had else self.world.store.write(replace(kept, drained_before=had))

    def tick(self, node: str, run: Run) -> Record:
        """Look at one step of a node, and do what it takes; return the record as it is then.

        One that does not go on, or was taken over by another run, is returned as it is. ReimageError for a record that
        is not there or damaged; Trouble when the server that keeps records does not answer.
        """
        record = self._kept(node)
        if not record.going or not record.run.same(run):
            return self._left(record, run)
        try:
            return self.look(record)
        except Conflict:
            return self._left(self._kept(node), run)

    def _kept(self, node: str) -> Record:
        record = self.world.store.read(node)
        if record is None:
            raise ReimageError(f"{node}: its record is gone")
        return record

    def _left(self, record: Record, run: Run) -> Record:
        """Leave a record alone. A node whose reimage was aborted is made safe once more: we may have acted since."""
        if record.state is State.ABORTED and record.run.same(run):
            self.world.rollout.leave(record.node)
            had = record.drained_before
            before = f" ({had.by} had drained it before: {had.reason})" if had else ""
            # An abort counts for a node that Slurm does not know any more, too: there is nothing to drain.
            self._make_safe(replace(record, in_slurm=False), f"{REIMAGE}: {record.reason}{before}")
        return record

    def _told(self, record: Record, reason: str) -> str:
        """Return a reason with what the console says, where the machine itself is at work."""
        if record.step in (Step.INSTALL, Step.START):
            said = [line for line in self.world.bmc.console(record.node).splitlines() if line.strip()]
            stops = [line for line in said if "NOT INSTALLED:" in line]
            if last := (stops or said)[-1:]:
                words = last[0].strip()
                if words.rpartition("NOT INSTALLED: ")[2] not in reason:  # the installer told the server, too
                    return f"{reason}; its console says: {one_line(words, _MOST_CONSOLE)}"
        return reason

    # --- failing

    def _fail(self, record: Record, reason: str) -> Record:
        if not record.reason:
            told = one_line(reason)  # in part words of others: hal-reimage on the server and Slurm get them from here
            record = self.world.store.write(replace(record.at(record.step, self.now()), reason=told))
        self.world.rollout.leave(record.node)
        try:
            self._make_safe(record, _failure(record))
        except Exception as error:  # whatever it is: it is written down that the node is not safe
            said = error.reason if isinstance(error, Trouble) else f"{type(error).__name__}: {error}"
            if self.now() - moment(record.since) < self.limits.safe:
                return self._wait(record, record, f"an answer, to be made safe: {said}")
            record = replace(record, reason=one_line(f"{reason}; it could not be made safe: {said}"))
        return self.world.store.write(self._ended(replace(record, waiting=""), State.FAILED))

    def _make_safe(self, record: Record, reason: str) -> None:
        """Have a node boot its disk, and no job come to it.

        Before step drain, and without a reason, Slurm is left alone. At step drain our own drain, or a reboot that was
        asked for, becomes a drain with this reason; a drain of somebody else stays.
        """
        node, step = record.node, record.step
        if not before(step, Step.ARM):
            self.world.provision.disarm(node)
        if step in (Step.BOOT, Step.INSTALL):
            with suppress(Trouble):  # if it boots from the network once more, nothing is armed there
                self.world.bmc.boot_as_set(node)
        seen = self._see(record)
        if not reason or not seen.known or before(step, Step.DRAIN):
            return
        if step in (Step.JOB, Step.RETURN):
            self.world.slurm.end_proof(node, reason)
            if seen.reboot:  # somebody asked for it meanwhile, and the node would serve after it
                self.world.slurm.keep_drained(node, reason)
        elif step is not Step.DRAIN or seen.reboot or (seen.drained and seen.ours):
            self.world.slurm.keep_drained(node, reason)

    # --- steps

    def _still(self, record: Record) -> None:
        """Conflict when somebody else, such as an abort, has written a record since it was read."""
        kept = self.world.store.read(record.node)
        if kept is None or kept.revision != record.revision:
            raise Conflict(record.node)

    def _waiting(self, record: Record) -> Fields:
        seen = self.world.slurm.see(record.node)
        if seen.drained and seen.ours:
            return {"in_slurm": seen.known}
        return {"in_slurm": seen.known, "drained_before": None}  # after an abort: that drain is there again, or over

    def _identity(self, record: Record) -> Fields:
        self.world.bmc.identify(record.node)
        return {}

    def _drain(self, record: Record) -> Fields:
        seen = self._see(record)
        if seen.known and (seen.reboot or (record.run.by_slurm and not seen.drained)):
            self._by_reboot(record, seen)
            return self._about_to_go(record, seen)
        return self._drained(record, seen)

    def _reason(self, record: Record) -> str:
        return f"{REIMAGE}: {record.plan.image.folder} by {record.run.by}"

    def _not_now(self, why: str) -> HalError:
        return Wait(why)

    def _by_reboot(self, record: Record, seen: SlurmNode) -> None:
        """Have Slurm say when: ``scontrol reboot ASAP``, ours or an administrator's, starts its RebootProgram."""
        node, slurm, reason = record.node, self.world.slurm, self._reason(record)
        if seen.reboot == "":
            waiting = slurm.reboot(node, reason, record.run.next_state) or "Slurm to reboot it"
            raise Wait(waiting, {"drained_before": None})
        states = (seen.next_state, record.run.next_state)  # it stays drained if anybody asked for that
        ends = replace(record.run, next_state="DOWN" if "DOWN" in states else "RESUME")
        if seen.reboot == "asked" or seen.jobs:
            raise Wait(jobs_of(seen.jobs) if seen.jobs else "Slurm to start its RebootProgram", {"run": ends})
        if ends != record.run:  # written first: Slurm forgets it now
            raise Wait("Slurm to keep it drained", {"run": ends})
        # From here on the node stays away, whatever the reboot was to end in: that is for the end of all steps.
        slurm.keep_drained(node, reason)

    def _about_to_go(self, record: Record, seen: SlurmNode) -> Fields:
        return {"old_boot_id": record.old_boot_id or self.world.nodes.boot_id(record.node)}

    def _off(self, record: Record) -> Fields:
        self._refuse_busy(record)
        if self.world.bmc.is_on(record.node):

            def may() -> None:
                self._still(record)
                self._refuse_busy(record)

            self.world.bmc.shut_down(record.node, may)
        return {}

    def _refuse_busy(self, record: Record) -> None:
        seen = self._see(record)
        if seen.known and (seen.jobs or not seen.drained):
            what = f"there are jobs on it: {jobs_of(seen.jobs)}" if seen.jobs else "jobs may start on it"
            raise Trouble(what if seen.drained else f"somebody gave it back to Slurm, and {what}")

    def _arm(self, record: Record) -> Fields:
        self._refuse_busy(record)
        if self.world.bmc.is_on(record.node):
            raise Trouble("somebody switched it on while it was to be off")
        if self._see(record).known:
            # Of a reimage that was aborted while nobody drove it: that test job says nothing about the next system.
            self.world.slurm.end_proof(record.node, "")
        called = self.world.provision.see(record.node).called
        return {"host_key": self.world.provision.arm(record), "called_before": called}

    def _boot(self, record: Record) -> Fields:
        installation = self.world.provision.see(record.node)
        on = self.world.bmc.is_on(record.node)
        if on and (installation.began or _called(record, installation)):
            return {}
        if not installation.armed:
            raise Trouble("its order was taken back, or ran out, before it was switched on")
        if not on:
            self.world.bmc.network_once(record.node)
            self.world.bmc.on(record.node, lambda: self._still(record))
        return {}

    def _install(self, record: Record) -> Fields:
        installation = self.world.provision.see(record.node)
        if _called(record, installation):
            return {}
        if installation.stopped:
            raise Trouble(f"its installer stopped: {installation.stopped}")
        if installation.began:
            raise Wait("its installation to end")
        if not installation.armed:
            raise Trouble("its order was taken back, or ran out, before its installation began")
        waiting = "the installer to begin" if installation.given else "its firmware to boot from the network"
        if self.now() - moment(record.since) >= self.limits.begin:
            raise Trouble(f"waited too long for {waiting}: the disk is as it was")
        raise Wait(waiting)

    def _start(self, record: Record) -> Fields:
        if waiting := self._unlike_started(record):
            raise Wait(waiting)
        return {}

    def _unlike_started(self, record: Record) -> str:
        """Return what a node that was installed does not do yet, "" for one that has started."""
        key = self.world.nodes.host_key(record.node)
        if not key:
            return "it to answer by ssh"
        if key != record.host_key:
            return "it to show its new host key; it shows another, as its old system or another machine would"
        boot_id = self.world.nodes.boot_id(record.node)
        if not boot_id:
            return "it to let us in"
        return "it to boot" if boot_id == record.old_boot_id else ""

    def _converge(self, record: Record) -> Fields:
        self._refuse_busy(record)
        return _result(self.world.rollout.converge(record.node), "its rollout")

    def _gates(self, record: Record) -> Fields:
        self._refuse_busy(record)
        return _result(self.world.rollout.gates(record.node), "its checks")

    def _job(self, record: Record) -> Fields:
        node, slurm = record.node, self.world.slurm
        seen = self._see(record)
        if not seen.known:
            return {}
        if not record.job:
            fields = drained_meanwhile(record, seen)
            if fields:  # written down before anything ends that drain
                raise Wait("its test job", fields)
            job = slurm.prove(node)
            raise Wait(f"test job {job}", {"job": job})
        try:
            ended = slurm.proven(node, record.job)
        except Gone:
            raise Wait("a new test job", {"job": ""}) from None
        if ended is None:
            raise Wait(f"test job {record.job}")
        if ended:
            raise Trouble(ended)
        return {}

    def _give_back(self, node: str, stays: str) -> None:
        self.world.slurm.end_proof(node, stays)

    def _stays(self, record: Record) -> str:
        if not record.drained_before and record.run.next_state == "DOWN":
            return f"{REIMAGE}: installed and proven; drained, as asked by {record.run.by}"
        return super()._stays(record)

    def _write(self, record: Record) -> Record:
        return self.world.store.write(record)


def _called(record: Record, installation: Installation) -> bool:
    """Return whether a node called home since it was armed. While it is installed, no earlier call is known."""
    return installation.called not in ("", record.called_before)


def _failure(record: Record) -> str:
    """Return what Slurm is told of a node that failed: sinfo -R shows it."""
    return f"{REIMAGE}: failed at {record.step.value}: {record.reason} (hal-reimage show {record.node})"


def refuse_other(kept: Record, plan: Plan, code: str) -> None:
    """Raise ReimageError when the record of a reimage that is not through is of another plan."""
    if kept.plan.fingerprint == plan.fingerprint and kept.run.code == code:
        return
    is_at = (
        f"{'is at' if kept.going else 'failed at'} {kept.step.value}, confirmed by {kept.run.by} with {kept.run.code}"
    )
    raise ReimageError(
        f"{plan.node}: another reimage of it {is_at}; that command goes on with it, "
        f"hal-reimage abort {plan.node} on the server ends it"
    )


def _again_from(step: Step) -> Step:
    """Return where to take up a node that failed: steps that touch the machine begin by asking which one it is."""
    if not before(step, Step.CONVERGE):
        return Step.CONVERGE
    return Step.START if step is Step.START else Step.IDENTITY


def _result(said: str | None, what: str) -> Fields:
    if said is None:
        raise Wait(what)
    if said:
        raise Trouble(said)
    return {}
