"""A reboot: a reimage's way out of Slurm and back into it. playbooks/reboot.yml reboots and checks in between.

Nobody keeps its record: the reason of the drain says that a node is ours, so the same command goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from hal_cluster.reimage.draining import Draining
from hal_cluster.reimage.errors import Trouble
from hal_cluster.reimage.record import Image, Plan, Record, Run, State, Step, stamp
from hal_cluster.reimage.stepping import UNSAID, WAITED, Fields, Limits, Stepping, Wait
from hal_cluster.reimage.world import SlurmNode
from hal_inventory.errors import HalError
from hal_inventory.printable import one_line
from hal_node.slurm.drains import REBOOT, reason_line

_REGISTER_SECONDS = 300  # from the boot on until slurmd has registered
_RETURN_SECONDS = 120  # slurmctld asks a node that was DOWN once more before it counts as answering
_PAUSE_SECONDS = {Step.START: 5.0, Step.RETURN: 2.0}
_NOT_DRAINED = "not drained: "


class Reboot(Stepping):
    """Brings one node through the steps drain, start and return; the machine reboots after the first."""

    def __init__(
        self,
        slurm: Draining,
        reason: str,
        *,
        wait_seconds: float,
        poll_seconds: float,
        say: Callable[[str], object] = lambda line: None,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``reason``: of the drain, without our mark. ``wait_seconds``: for jobs. ``say``: given what is waited for."""
        steps = {Step.DRAIN: self._drain, Step.START: self._start, Step.RETURN: self._return}
        super().__init__(slurm, steps, Limits(drain=wait_seconds, start=_REGISTER_SECONDS, job=_RETURN_SECONDS), now)
        self._draining, self._why, self._poll = slurm, reason, poll_seconds
        self._say, self._sleep = say, sleep

    def begun(self, node: str) -> Record:
        """Return a node's record at the first step; Trouble when slurmctld does not answer."""
        nothing = Plan(node, "", "", Image("", "", "", ""))
        return Record(node, nothing, Run("", "", ""), Step.DRAIN, in_slurm=self.slurm.see(node).known)

    def through(self, record: Record) -> Record:
        """Bring a node through the step that it is at; return its record as it is then."""
        step, waiting = record.step, ""
        record = replace(record, since=stamp(self.now()))  # it begins now, however long the machine took to boot
        while record.going and record.step is step:
            record = self.look(record)
            if record.waiting and record.waiting != waiting:
                self._say(one_line(f"{record.node}: waits for {record.waiting}"))
            if waiting := record.waiting:
                self._sleep(_PAUSE_SECONDS.get(step, self._poll))
        return record

    def _start(self, record: Record) -> Fields:
        seen = self._see(record)
        if seen.known and (not seen.answers or seen.started == record.old_boot_id):
            raise Wait("its slurmd to register")
        return {}

    def _reason(self, record: Record) -> str:
        return f"{REBOOT}: {reason_line(self._why) or 'playbooks/reboot.yml'}"  # without words it would not be ours

    def _not_now(self, why: str) -> HalError:
        # Nodes of one call go to their reboots together: one that waited for another would wait for ever.
        return Trouble(f"{_NOT_DRAINED}{why}")

    def _about_to_go(self, record: Record, seen: SlurmNode) -> Fields:
        return {"old_boot_id": seen.started}

    def _give_back(self, node: str, stays: str) -> None:
        self._draining.give_back(node, stays)

    def _write(self, record: Record) -> Record:
        return record

    def _fail(self, record: Record, reason: str) -> Record:
        return replace(self._ended(record, State.FAILED), reason=one_line(reason))


def plan_of(slurm: Draining, nodes: Sequence[str], in_slurm: Collection[str]) -> tuple[str, str]:
    """Return what would be done to nodes, a line each, and why they may not all be drained now, or "".

    ``in_slurm``: those that may have jobs. Trouble when slurmctld does not answer.
    """
    seen = {name: slurm.see(name) if name in in_slurm else SlurmNode(known=False) for name in nodes}
    wanted = [name for name, node in seen.items() if node.known and (node.unhealthy or not node.drained)]
    refusal = slurm.refusal(wanted) if wanted else ""
    text = "\n".join(one_line(f"{name}: {_planned(node)}") for name, node in seen.items())
    return text, f"{','.join(wanted)}: {_NOT_DRAINED}{refusal}" if refusal else ""


def _planned(seen: SlurmNode) -> str:
    if not seen.known:
        return "reboot at once, Slurm has no jobs there"
    jobs = "".join(f" (job {job.id} of {job.user}, ends by {job.end})" for job in seen.jobs)
    after = f"reboot after {len(seen.jobs)} jobs"
    if seen.drained and not (seen.ours or seen.unhealthy):
        return f"{after}; stays drained, as {seen.by or 'somebody'} wished: {seen.reason or UNSAID}{jobs}"
    drain = f"drained for {seen.reason}" if seen.unhealthy else "drained by an earlier run" if seen.drained else "drain"
    return f"{drain}, {after}, give back{jobs}"


def end_of(record: Record) -> str:
    """Return how it ended for a node, and what to do where it failed."""
    node, before = record.node, record.drained_before
    if record.state is State.DONE:
        stays = f"stays drained: {before.reason or UNSAID}" if before else "takes jobs again"
        return one_line(f"{node}: rebooted, {stays}" if record.in_slurm else f"{node}: rebooted")
    if record.reason.startswith(_NOT_DRAINED):
        return f"{node}: {record.reason}"
    back = f"the same command continues, scontrol update NodeName={node} State=RESUME gives it back"
    if record.step is Step.RETURN and not before:
        return f"{node} was rebooted, and takes no jobs: {record.reason}; {back}."
    how = "was not rebooted" if record.step is Step.DRAIN else "was rebooted, and is not given back"
    drained = record.step is not Step.DRAIN or record.reason.startswith(WAITED)
    then = f"{'It' if drained else 'If it was drained, it'} stays drained; {back}"
    if before:
        then = f"It stays drained, as it was: {before.reason or UNSAID}; the same command continues"
    return one_line(f"{node} {how}: {record.reason}. {then}.")
