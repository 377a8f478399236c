"""One node, one step, one look at a time: the loop of a reimage and of a reboot, and the steps that both have.

Each step reads the state first and passes when it is already true.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hal_cluster.reimage.errors import Conflict, ReimageError, Trouble
from hal_cluster.reimage.record import Drained, Record, State, Step, moment, stamp
from hal_cluster.reimage.world import Drains, Job, SlurmNode
from hal_inventory.errors import HalError
from hal_inventory.printable import one_line


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a step may take, in seconds. ``begin``: from power on to the installer's word that it begins."""

    identity: float = 300
    drain: float = 172800  # two days: the longest job
    off: float = 1200
    begin: float = 1800  # an AC922 tests its memory first
    install: float = 3600
    start: float = 1800
    rollout: float = 7200  # one playbook; a node may wait as long for that of others
    job: float = 900
    safe: float = 900  # to make a failed node safe, when slurmctld or the server does not answer

    def of(self, step: Step) -> float:
        """Return how long a step may take in all."""
        return {
            Step.WAITING: float("inf"),
            Step.IDENTITY: self.identity,
            Step.DRAIN: self.drain,
            Step.OFF: self.off,
            Step.ARM: self.off,
            Step.BOOT: self.off,
            Step.INSTALL: self.begin + self.install,
            Step.START: self.start,
            Step.CONVERGE: 2 * self.rollout,  # with that of others before it
            Step.GATES: 2 * self.rollout,
            Step.JOB: self.job,
            Step.RETURN: self.job,
        }[step]


Fields = dict[str, object]
"""What a step has found out: fields of the record."""
WAITED = "waited "
"""The reason of a step whose time is over begins so: the step was begun."""
UNSAID = "drained without a reason"
"""Of a drain in slurm.conf: Slurm shows no reason with its time."""


class Wait(HalError):
    """A step is not through: what it waits for, and what it found out. It fails when its time is over."""

    def __init__(self, what: str, fields: Fields | None = None) -> None:
        super().__init__(what)
        self.what, self.fields = what, fields or {}


class Stepping(ABC):
    """Brings nodes through steps, in the order of ``steps``, which says what each does."""

    def __init__(
        self,
        slurm: Drains,
        steps: Mapping[Step, Callable[[Record], Fields]],
        limits: Limits,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.slurm, self._steps = slurm, dict(steps)
        self.limits, self.now = limits, now

    def look(self, record: Record) -> Record:
        """Look at one step of a node, and do what it takes; return its record as it is then."""
        if record.reason:
            return self._fail(record, record.reason)
        try:
            passed = self._steps[record.step](record)
        except Wait as wait:
            updated: Record = replace(record, **wait.fields)  # type: ignore[arg-type]  # fields of it
            if not self._over(record):
                return self._wait(record, updated, wait.what)
            waited = round(self.limits.of(record.step) / 60, 1)
            return self._fail(updated, self._told(record, f"{WAITED}{waited:g} min for {wait.what}"))
        except Trouble as trouble:
            if trouble.passes and not self._over(record):
                return self._wait(record, record, f"an answer: {trouble.reason}")
            return self._fail(record, self._told(record, trouble.reason))
        except (Conflict, ReimageError):
            raise
        except Exception as error:  # nobody foresaw it: the node is made safe all the same, and its record says so
            return self._fail(record, f"{type(error).__name__}, which nobody foresaw: {error}")
        record = replace(record, **passed)  # type: ignore[arg-type]  # fields of it
        order = list(self._steps)
        if record.step is order[-1]:
            return self._write(self._ended(record, State.DONE))
        return self._write(record.at(order[order.index(record.step) + 1], self.now()))

    def _over(self, record: Record) -> bool:
        return self.now() - moment(record.since) >= self.limits.of(record.step)

    def _wait(self, record: Record, updated: Record, waiting: str) -> Record:
        """Write down what a node waits for and what was found out, unless the record says it already."""
        updated = replace(updated, waiting=one_line(waiting))
        return record if updated == record else self._write(updated)

    def _ended(self, record: Record, state: State) -> Record:
        ended = record.at(record.step, self.now())
        return replace(ended, state=state, ended=stamp(self.now()))

    # --- steps

    def _see(self, record: Record) -> SlurmNode:
        """Return what Slurm says of a node. Trouble when it knew the node and no longer does: there may be jobs."""
        seen = self.slurm.see(record.node)
        if record.in_slurm and not seen.known:
            raise Trouble("Slurm does not know it any more", passes=True)
        return seen

    def _drain(self, record: Record) -> Fields:
        return self._drained(record, self._see(record))

    def _drained(self, record: Record, seen: SlurmNode) -> Fields:
        """Pass once a node is drained and has no jobs. A drain of somebody else stays: it is noted."""
        if not seen.known:
            return self._about_to_go(record, seen)
        fields: Fields = {}
        if not (seen.drained and (seen.ours or record.drained_before is not None)):
            if why := self.slurm.drain(record.node, self._reason(record)):
                raise self._not_now(why)
            seen = self._see(record)
            if not seen.drained:
                raise Wait("Slurm to drain it")
            # If an administrator had drained it, it will stay so. A drain that was noted before is over by now.
            fields = {"drained_before": None if seen.ours else Drained(seen.reason, seen.by)}
        if seen.jobs:
            raise Wait(jobs_of(seen.jobs), fields)
        return {**fields, **self._about_to_go(record, seen)}

    def _return(self, record: Record) -> Fields:
        seen = self._see(record)
        if not seen.known:
            return {}
        if fields := drained_meanwhile(record, seen):
            return self._return(replace(record, **fields)) | fields  # type: ignore[arg-type]  # fields of it
        stays = self._stays(record)
        self._give_back(record.node, stays)
        if stays:
            return {}
        seen = self._see(record)
        if not seen.usable:
            raise Wait(f"Slurm to send it jobs; Slurm says: {seen.reason or 'not answering'}")
        return {}

    # --- what differs

    @abstractmethod
    def _write(self, record: Record) -> Record:
        """Keep a record, and return it as it is kept."""

    @abstractmethod
    def _fail(self, record: Record, reason: str) -> Record:
        """Make a failed node safe; return its record."""

    def _told(self, record: Record, reason: str) -> str:
        """Return a reason with what else is known of it."""
        return reason

    @abstractmethod
    def _reason(self, record: Record) -> str:
        """Return the reason of the drain."""

    @abstractmethod
    def _not_now(self, why: str) -> HalError:
        """Return what is raised when too few nodes would be left: Wait, or Trouble."""

    @abstractmethod
    def _about_to_go(self, record: Record, seen: SlurmNode) -> Fields:
        """Return what is to be known of a node before it goes."""

    @abstractmethod
    def _give_back(self, node: str, stays: str) -> None:
        """Have a node serve jobs again, or stay drained for this reason."""

    def _stays(self, record: Record) -> str:
        """Return the reason for which a node stays drained at the end; "": it serves."""
        return (record.drained_before.reason or UNSAID) if record.drained_before else ""


def drained_meanwhile(record: Record, seen: SlurmNode) -> Fields:
    """Return the drain of a node that somebody else drained since it was ours: it will have that drain again.

    The health check is not somebody else: what it finds must be gone before the node is done.
    """
    if seen.unhealthy:
        raise Wait(f"its health check, which drained it: {seen.reason}")
    if seen.drained and not seen.ours and record.drained_before is None:
        return {"drained_before": Drained(seen.reason, seen.by)}
    return {}


def jobs_of(jobs: Sequence[Job]) -> str:
    """Return jobs in words, the first three by their ids."""
    shown = ", ".join(f"{job.id} of {job.user} (ends by {job.end})" for job in jobs[:3])
    more = len(jobs) - 3
    return f"job{'' if len(jobs) == 1 else 's'} {shown}" + (f" and {more} more" if more > 0 else "")
