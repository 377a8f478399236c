"""The virtual HAL from nothing to a job on every GPU, and the rollout that finds nothing to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from tests.bench.instance import Instance
from tests.bench.part import Goal, Measured, Session

from running.ansible_run import Run  # isort: skip
from demo.run import job  # isort: skip  # tests.bench.instance has made it findable
from running.stages import Runner  # isort: skip


@dataclass
class Rollout:
    """Wall times in seconds by stage, in order; what failed, if anything did."""

    nodes: int
    seconds: dict[str, float] = field(default_factory=dict)
    changed: int | None = None
    memory_mb: int | None = None
    failed: str = ""

    @property
    def whole(self) -> float:
        """From nothing to the job's end; the second rollout is not in it."""
        return sum(seconds for name, seconds in self.seconds.items() if name != NO_CHANGE)

    def as_json(self) -> dict[str, Any]:
        """Everything measured, and the ratios."""
        return {**asdict(self), "whole_seconds": self.whole, "ratios": self.ratios()}

    def ratios(self) -> dict[str, float]:
        """Shares of the whole, and what a rollout without changes costs of the first one."""
        found = {name: seconds / self.whole for name, seconds in self.seconds.items() if name != NO_CHANGE}
        if self.seconds.get(FIRST) and NO_CHANGE in self.seconds:
            found["no-change rollout / first rollout"] = self.seconds[NO_CHANGE] / self.seconds[FIRST]
        return found


MEMORY_MB = 8192
FIRST = "rollout of site.yml"
NO_CHANGE = "rollout without changes"


def measure(instance: Instance) -> Rollout:
    """Build what is missing, start the nodes, roll out, run the job, roll out again."""
    result, runner = Rollout(len(instance.names)), Runner("bench")
    stages = [*instance.images(), instance.create(), instance.rollout(FIRST)]
    for stage in stages:
        if not runner.run(stage):
            break
    else:
        job(instance.cluster, runner)
        if runner.outcomes[-1].passed:
            runner.run(instance.rollout(NO_CHANGE))
            last = runner.outcomes[-1]
            result.changed = sum(Run(last.status, last.log.read_text(errors="replace")).changes.values())
        result.memory_mb = instance.memory_mb()
    result.seconds = {outcome.stage.name: outcome.seconds for outcome in runner.outcomes}
    result.failed = ", ".join(outcome.stage.name for outcome in runner.outcomes if not outcome.passed)
    return result


def table(result: Rollout) -> str:
    """The stages, their seconds and their share of the whole."""
    lines = [f"Virtual HAL, {result.nodes} nodes, from nothing to a job on every GPU"]
    lines += [
        f"  {name:<28} {seconds:8.1f} s  {seconds / result.whole:5.0%}"
        for name, seconds in result.seconds.items()
        if name != NO_CHANGE
    ]
    lines.append(f"  {'all':<28} {result.whole:8.1f} s")
    if NO_CHANGE in result.seconds:
        ratio = result.ratios()["no-change rollout / first rollout"]
        said = f"{ratio:.2f} of the first, {result.changed} tasks changed"
        lines.append(f"  {NO_CHANGE:<28} {result.seconds[NO_CHANGE]:8.1f} s  {said}")
    if result.memory_mb is not None:
        lines.append(f"  memory of all processes in the nodes: {result.memory_mb} MB")
    if result.failed:
        lines.append(f"  FAILED: {result.failed}; what comes after it was not measured")
    return "\n".join(lines)


def part(session: Session) -> Measured:
    """From nothing to the job on nodes of its own."""
    result = measure(session.bare())
    print(table(result), flush=True)
    goal = Goal(f"{result.nodes} nodes, memory of all processes in them", result.memory_mb, MEMORY_MB, unit=" MB")
    return Measured(result.as_json(), [goal], result.failed)
