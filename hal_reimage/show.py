"""What an administrator reads: the plan, lines while it goes on, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hal_inventory.ranges import fold
from hal_reimage.record import STEPS, Plan, Record, State
from hal_reimage.world import SlurmNode

_STEPS = len(STEPS) - 1


@dataclass(frozen=True, slots=True)
class Shown:
    """One node of a plan: where it stands, what Slurm has of it, what its BMC said, the record of its last reimage."""

    plan: Plan
    place: str
    slurm: SlurmNode
    bmc: str
    last: Record | None


def plan_of(nodes: Sequence[Shown], how: str) -> str:
    """Return the plan as text: for each node what is erased, and what else an administrator wants to know before."""
    lines = []
    for one in nodes:
        plan = one.plan
        lines.append(f"{plan.node}  serial {plan.serial}{f', {one.place}' if one.place else ''}; BMC: {one.bmc}")
        lines.append(f"    erased     system disk {plan.disk}" + "".join(f", disk {wwn}" for wwn in plan.wipe))
        lines.append(f"    installed  {plan.image.folder} (kernel {plan.image.kernel}, {plan.image.sha256[:12]})")
        lines.append(f"    Slurm      {_slurm(one.slurm)}")
        if one.last is not None:
            lines.append(f"    last       {_last(one.last)}")
    return "\n".join([*lines, how])


def _slurm(seen: SlurmNode) -> str:
    if not seen.known:
        return "does not know it"
    jobs = f"{len(seen.jobs)} job{'' if len(seen.jobs) == 1 else 's'}, which end first" if seen.jobs else "no jobs"
    listed = "".join(f"; {job.id} of {job.user} ends by {job.end}" for job in seen.jobs)
    if seen.drained and not seen.ours:
        return f"{jobs}{listed}; drained by {seen.by}: {seen.reason}. So it stays afterwards"
    if seen.reboot:
        return f"{jobs}{listed}; a reboot was asked for: {seen.reason}"
    return f"{jobs}{listed}" + (f"; drained: {seen.reason}" if seen.drained else "")


def _last(record: Record) -> str:
    if record.going:
        return f"goes on: {record.step.value}, {record.waiting or 'at work'}"
    at = f" at {record.step.value}: {record.reason}" if record.state is not State.DONE else ""
    return f"{record.state.value} {record.ended}{at}"


def line_of(record: Record) -> str:
    """Return where a node is, in one line."""
    if record.state is State.DONE:
        return f"{record.node}  done in {_minutes(sum(record.seconds.values()))}"
    if not record.going:
        return f"{record.node}  {record.state.value} at {record.step.value}: {record.reason}"
    step = f"{STEPS.index(record.step):2}/{_STEPS} {record.step.value:<8}"
    words = f"failing: {record.reason}" if record.reason else record.waiting and f"waits for {record.waiting}"
    return f"{record.node}  {step} {words}".rstrip()


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def end_of(records: Mapping[str, Record], server: str) -> str:
    """Return how all of it ended: nodes with the same end in one line, and what to do about those that did not."""
    done = [name for name, one in records.items() if one.state is State.DONE]
    lines = []
    for name in done:
        steps = ", ".join(f"{step} {_minutes(spent)}" for step, spent in records[name].seconds.items() if spent >= 1)
        lines.append(f"{name}: done in {_minutes(sum(records[name].seconds.values()))} ({steps})")
    others: dict[str, list[str]] = {}
    for name, one in records.items():
        if one.state is not State.DONE:
            others.setdefault(_last(one), []).append(name)
    for said, names in others.items():
        lines.append(f"{fold(names)}: {said}")
    if others:
        left = fold([name for names in others.values() for name in names])
        lines.append(
            f"Look: ssh {server} hal-reimage show NODE. Again: the same command. Give up: hal-reimage abort {left}"
        )
    return "\n".join(lines)
