"""What an administrator reads: the plan, lines while it goes on, and how it ended.

Reasons are words of others: a console, Slurm, a BMC, an installer or a playbook. Each becomes a part of one line.
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hal_cluster.reimage.record import STEPS, Plan, Record, State
from hal_cluster.reimage.world import SlurmNode
from hal_inventory.printable import one_line
from hal_inventory.ranges import fold

_STEPS = len(STEPS) - 1
_WIDTH = 76  # of a terminal, without what Ansible indents by
_UNDER = " " * 15


@dataclass(frozen=True, slots=True)
class Shown:
    """One node of a plan: where it stands, what Slurm has of it, what its BMC said, the record of its last reimage.

    ``over``: the call that continues is through with it, and neither Slurm nor its BMC was asked.
    """

    plan: Plan
    place: str
    slurm: SlurmNode
    bmc: str
    last: Record | None
    over: bool = False


def plan_of(nodes: Sequence[Shown], how: str) -> str:
    """Return the plan as text: for each node what is erased, and what else an administrator wants to know before."""
    lines = []
    for node in nodes:
        plan = node.plan
        lines.append(f"{plan.node}  {node.place}".rstrip())
        if node.over and node.last is not None:
            lines += _entry("left out", [_last(node.last)])
            continue
        lines += _entry("machine", [f"serial {plan.serial}; BMC: {node.bmc}"])
        lines += _entry("erased", [f"system disk {plan.disk}", *(f"disk {wwn}" for wwn in plan.wipe)])
        image = plan.image
        lines += _entry("installed", [image.folder, f"kernel {image.kernel}, sha256 {image.sha256[:12]}"])
        lines += _entry("Slurm", _slurm(node.slurm))
        if node.last is not None:
            lines += _entry("last", [_last(node.last)])
    return "\n".join([*lines, "", how])


def _entry(name: str, parts: Sequence[str]) -> list[str]:
    """Return lines of a plan that are not longer than a terminal: its name once, parts below each other."""
    lines = [line for part in parts for line in _wrapped(one_line(part), _WIDTH - len(_UNDER))]
    return [f"{f'    {name}' if number == 0 else '':<{len(_UNDER)}}{line}" for number, line in enumerate(lines)]


def _wrapped(text: str, width: int, under: str = "") -> list[str]:
    """Return lines of whole words: paths and names are to be copied."""
    return textwrap.wrap(text, width, subsequent_indent=under, break_long_words=False, break_on_hyphens=False)


def _slurm(seen: SlurmNode) -> list[str]:
    if not seen.known:
        return ["does not know it"]
    lines = ["no jobs"]
    if seen.jobs:
        lines = ["1 job, which ends first:" if len(seen.jobs) == 1 else f"{len(seen.jobs)} jobs, which end first:"]
        lines += [f"{job.id} of {job.user} ends by {job.end}" for job in seen.jobs]
    if seen.drained and not seen.ours:
        lines.append(f"drained by {seen.by}: {seen.reason}. It stays drained afterwards")
    elif seen.reboot:
        lines.append(f"a reboot was asked for: {seen.reason}")
    elif seen.drained:
        lines.append(f"drained: {seen.reason}")
    return lines


def _last(record: Record) -> str:
    if record.going:
        return one_line(f"goes on: {record.step.value}, {record.waiting or 'at work'}")
    at = f" at {record.step.value}: {record.reason}" if record.state is not State.DONE else ""
    return one_line(f"{record.state.value} {record.ended}{at}")


def line_of(record: Record) -> str:
    """Return where a node is, in one line."""
    if record.state is State.DONE:
        return f"{record.node}  done in {_minutes(sum(record.seconds.values()))}"
    if not record.going:
        return f"{record.node}  {record.state.value} at {record.step.value}: {one_line(record.reason)}"
    step = f"{STEPS.index(record.step):2}/{_STEPS} {record.step.value:<8}"
    words = f"failing: {record.reason}" if record.reason else record.waiting and f"waits for {record.waiting}"
    return f"{record.node}  {step} {one_line(words)}".rstrip()


def _minutes(seconds: float) -> str:
    """Return a time as 12:05, from an hour on as 1:02:05."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if minutes >= 60 else f"{minutes}:{seconds:02}"


def end_of(records: Mapping[str, Record], server: str) -> str:
    """Return how all of it ended: nodes with the same end in one line, and what to do about those that did not."""
    done = [name for name, record in records.items() if record.state is State.DONE]
    lines = []
    for name in done:
        took = {step: records[name].seconds.get(step.value, 0.0) for step in STEPS}
        steps = ", ".join(f"{step.value} {_minutes(spent)}" for step, spent in took.items() if spent >= 1)
        lines.append(f"{name}: done in {_minutes(sum(records[name].seconds.values()))} ({steps})")
    others: dict[str, list[str]] = {}
    for name, record in records.items():
        if record.state is not State.DONE:
            others.setdefault(_last(record), []).append(name)
    for said, names in others.items():
        lines.append(f"{fold(names)}: {said}")
    if others:
        lines.append(f"Look: {shlex.join(['ssh', server, 'hal-reimage', 'show', 'NODE'])}")
    if left := [name for name, record in records.items() if record.state in (State.GOING, State.FAILED)]:
        lines.append("Again: the same command")
        # Each by its name: a shell takes hal[06-07] for files.
        lines.append(f"Give up: {shlex.join(['ssh', server, 'hal-reimage', 'abort', *left])}")
    return "\n".join(line for text in lines for line in _wrapped(text, _WIDTH, "    "))
