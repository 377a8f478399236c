"""How often Ansible goes to a node and what that costs: ssh calls and processor time by role, and pipelining.

ssh and sftp are replaced by wrappers that note each call and then run the real program. Starting the wrapper costs
about a millisecond, in both ways alike.
"""

from __future__ import annotations

import json
import shlex
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.instance import PROJECT, Instance
from tests.bench.part import Measured, NotMeasured, Session

CALLBACK = PROJECT / "tests" / "bench" / "callback"
UNRECORDED = "hal_bench_unrecorded"  # without it or the callbacks of rollouts site.yml refuses to run
PIPELINING = {"pipelining": "True", "no pipelining": "False"}
PROGRAMS = ("ssh", "sftp", "scp")

# `-O` asks an open connection something, nothing goes to the node. The node is known by HostKeyAlias.
WRAPPER = """\
#!/bin/sh
# Notes the call, then is {program}.
node=
for word in "$@"; do
  case "$word" in
    -O) exec {real} "$@" ;;
    HostKeyAlias=*) node=${{word#HostKeyAlias=}} ;;
  esac
done
echo "$HAL_BENCH_ROLE/$node/{program}" >>"$HAL_BENCH_CALLS"
exec {real} "$@"
"""


@dataclass(frozen=True)
class Calls:
    """One run: ssh and sftp calls, tasks and processor seconds by (role, node), wall time in seconds.

    The controller's processor seconds are those of the node "".
    """

    seconds: float
    calls: Mapping[tuple[str, str], int]
    tasks: Mapping[tuple[str, str], int]
    changed: int
    cpu_seconds: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def of_role(self, role: str) -> list[int]:
        """The calls of a role, one number for each node that it ran on."""
        return sorted(number for (name, _), number in self.calls.items() if name == role)

    def roles(self) -> list[str]:
        """The roles that ran, in alphabetical order; "" for tasks of plays."""
        return sorted({role for role, _ in self.calls} | {role for role, _ in self.tasks})


@dataclass
class Comparison:
    """The same converged role by both ways of sending modules, in alternating runs."""

    role: str
    seconds: dict[str, list[float]]
    calls_per_node: dict[str, float]

    def ratio(self) -> float:
        """Wall time without pipelining by wall time with it, of the medians."""
        return statistics.median(self.seconds["no pipelining"]) / statistics.median(self.seconds["pipelining"])

    def as_json(self) -> dict[str, Any]:
        """Everything measured."""
        return {**asdict(self), "no_pipelining_over_pipelining": self.ratio()}


class Counting:
    """Runs playbooks whose ssh calls are counted."""

    def __init__(self, instance: Instance, state: Path) -> None:
        """`state`: a folder for the wrappers and their log."""
        self.instance, self.state = instance, state
        self.log, self.report = state / "calls", state / "tasks.json"
        for program in PROGRAMS:
            real = shutil.which(program)
            if real is None:
                continue
            wrapper = state / "bin" / program
            wrapper.parent.mkdir(parents=True, exist_ok=True)
            wrapper.write_text(WRAPPER.format(program=program, real=shlex.quote(real)))
            wrapper.chmod(0o755)

    def environment(self) -> dict[str, str]:
        """What makes Ansible use the wrappers. Their log begins anew."""
        self.log.write_text("")
        programs = {f"ANSIBLE_{program.upper()}_EXECUTABLE": str(self.state / "bin" / program) for program in PROGRAMS}
        return {**programs, "HAL_BENCH_CALLS": str(self.log)}

    def run(self, *arguments: str, pipelining: bool = True) -> Calls:
        """Roll site.yml out with these arguments. NotMeasured when it fails."""
        environment = {
            **self.environment(),
            "ANSIBLE_PIPELINING": str(pipelining),
            "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACK),
            "ANSIBLE_CALLBACKS_ENABLED": f"hal_bench_calls,{UNRECORDED}",
            "HAL_BENCH_REPORT": str(self.report),
            "HAL_BENCH_CPU_FILES": json.dumps(self.instance.cpu_files()),
        }
        began = time.monotonic()
        done = self.instance.ansible.playbook("playbooks/site.yml", *arguments, environment=environment)
        seconds = time.monotonic() - began
        if done.status != 0:
            raise NotMeasured(f"the rollout failed:\n{done.explain()}")
        return read_calls(seconds, self.log.read_text().splitlines(), json.loads(self.report.read_text()))


def read_calls(seconds: float, log: Sequence[str], report: Mapping[str, Sequence[Sequence[Any]]]) -> Calls:
    """Add up the wrapper's log (role/node/program) and the callback's report: results (role, node, kind, number), cpu.

    The same role may run twice; its calls and tasks are added up.
    """
    calls: Counter[tuple[str, str]] = Counter()
    for line in log:
        role, node, _ = line.split("/")
        calls[role, node] += 1
    tasks: Counter[tuple[str, str]] = Counter()
    for role, node, kind, number in report["results"]:
        if kind != "skipped":
            tasks[role, node] += number
    changed = sum(row[3] for row in report["results"] if row[2] == "changed")
    return Calls(seconds, calls, tasks, changed, {(role, node): used for role, node, used in report["cpu"]})


def compare(instance: Instance, state: Path, role: str, rounds: int) -> Comparison:
    """One converged role, `rounds` times each way, in turn."""
    counting = Counting(instance, state)
    seconds: dict[str, list[float]] = {name: [] for name in PIPELINING}
    calls: dict[str, float] = {}
    for _ in range(rounds):
        for name, value in PIPELINING.items():
            run = counting.run("--tags", role, pipelining=value == "True")
            seconds[name].append(run.seconds)
            calls[name] = statistics.mean(run.of_role(role) or [0])
    return Comparison(role, seconds, calls)


def table(run: Calls) -> str:
    """Tasks, calls and processor time a node by role: nodes differ, so of calls the least, the median and the most.

    A node's processor time is the median of those that the role ran on, its daemons' included.
    """
    lines = [
        f"Remote calls of a rollout without changes ({run.seconds:.1f} s, {run.changed} tasks changed)",
        f"  {'role':<14} {'nodes':>5} {'tasks a node':>13}   ssh calls a node (least, median, most)"
        f"   processor time: {'a node':>7} {'controller':>12}",
    ]
    for role in run.roles():
        calls = run.of_role(role)
        tasks = [number for (name, _), number in run.tasks.items() if name == role]
        if not calls:
            continue
        spread = f"{calls[0]:>6} {statistics.median(calls):>6g} {calls[-1]:>6}"
        cpu = [used for (name, node), used in run.cpu_seconds.items() if name == role and (role, node) in run.calls]
        own = run.cpu_seconds.get((role, ""), 0)
        lines.append(
            f"  {role or '(plays)':<14} {len(calls):>5} {statistics.mean(tasks or [0]):>13.1f}   {spread}"
            f"{statistics.median(cpu or [0]):>41.2f} s {own:>10.1f} s"
        )
    nodes = {node for _, node in run.calls}
    total = sum(run.calls.values())
    lines.append(f"  {'all':<14} {len(nodes):>5} {'':>13}   {total} calls, {total / max(1, len(nodes)):.1f} a node")
    return "\n".join(lines)


def comparison_table(result: Comparison) -> str:
    """Both ways side by side."""
    lines = [
        f"Role {result.role}, nothing to change: how modules are sent (medians of {len(result.seconds['pipelining'])})"
    ]
    for name, seconds in result.seconds.items():
        median = statistics.median(seconds)
        lines.append(f"  {name:<14} {median:7.1f} s   {result.calls_per_node[name]:6.1f} calls a node")
    lines.append(f"  without / with: {result.ratio():.2f}")
    return "\n".join(lines)


def as_json(run: Calls) -> dict[str, Any]:
    """Seconds and, by role and node ("" is the controller), tasks, calls and processor seconds."""
    rows = [
        {
            "role": role,
            "node": node,
            "calls": run.calls.get((role, node), 0),
            "tasks": run.tasks.get((role, node), 0),
            "cpu_seconds": run.cpu_seconds.get((role, node)),
        }
        for role, node in sorted(set(run.calls) | set(run.tasks) | set(run.cpu_seconds))
    ]
    return {"seconds": run.seconds, "changed": run.changed, "by_role_and_node": rows}


def part(session: Session) -> Measured:
    """The calls of a rollout that changes nothing, on every node."""
    counted = Counting(session.rolled_out(), session.state).run()
    print(table(counted), flush=True)
    return Measured(as_json(counted))


def pipelining(session: Session) -> Measured:
    """The role of --role, its modules sent both ways."""
    compared = compare(session.rolled_out(), session.state, session.options.role, session.options.rounds)
    print(comparison_table(compared), flush=True)
    return Measured(compared.as_json())
