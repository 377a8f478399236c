"""What an audit costs beside a ping and beside check mode, what recording adds to a rollout, what a node pays.

All on the same rolled-out nodes in one run, the ways in turn; check mode once, because it is slow.
"""

from __future__ import annotations

import json
import resource
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.bench.calls import CALLBACK, UNRECORDED, Counting
from tests.bench.instance import PROJECT, Instance
from tests.bench.part import Goal, Measured, NotMeasured, Session

from running.ansible_run import JSON_OUTPUT, Run  # isort: skip  # tests.bench.instance has made it findable

FAULTS = PROJECT / "tests" / "rollout" / "faults.yml"
CALLBACKS = "ANSIBLE_CALLBACKS_ENABLED"
PING, AUDIT, CHECK = "ping", "audit", "check mode"
ON, OFF = "recording", "not recording"
RESOURCES, UNITS = 1000, 100
MOST_RECORDING = 5  # percent
# A finding on a node that is as declared would be one of the toolkit; the audit then ends with Ansible's 2.
AUDITED = (0, 2)


@dataclass(frozen=True)
class Cost:
    """Of one run, or the median of several: wall time, processor time at the controller, ssh and sftp calls."""

    seconds: float
    cpu_seconds: float
    calls: float

    def __str__(self) -> str:
        """The columns of a table."""
        return f"{self.seconds:>9.1f}{self.cpu_seconds:>17.1f}{self.calls:>8g}"


class Measuring:
    """Runs Ansible and says what it cost. Connections that are kept open do not end with the run, nor count."""

    def __init__(self, counting: Counting) -> None:
        """`counting` has the wrappers around ssh and their log."""
        self.counting = counting

    def cost(
        self,
        run: Callable[[Mapping[str, str]], Run],
        more: Mapping[str, str] | None = None,
        expected: Sequence[int] = (0,),
    ) -> Cost:
        """What `run` cost, given its environment and `more` of it. NotMeasured when it ends otherwise."""
        environment = {**self.counting.environment(), **(more or {})}
        used, began = cpu_seconds(), time.monotonic()
        done = run(environment)
        seconds, used = time.monotonic() - began, cpu_seconds() - used
        if done.status not in expected:
            raise NotMeasured(f"a run failed:\n{done.explain()}")
        return Cost(seconds, used, len(self.counting.log.read_text().splitlines()))


def cpu_seconds() -> float:
    """Processor time of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def median(costs: Sequence[Cost]) -> Cost:
    """The median of each number."""
    rows = [(cost.seconds, cost.cpu_seconds, cost.calls) for cost in costs]
    return Cost(*(statistics.median(column) for column in zip(*rows, strict=True)))


def rounds(number: int, ways: Mapping[str, Callable[[], Cost]]) -> dict[str, list[Cost]]:
    """Every way `number` times, in turn; every second round begins with the last way."""
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for at in range(number):
        for name in list(ways)[:: -1 if at % 2 else 1]:
            costs[name].append(ways[name]())
    return costs


def everything(costs: Mapping[str, Sequence[Cost]]) -> dict[str, Any]:
    """For --json: medians and every run."""
    return {
        name: {"median": asdict(median(runs)), "runs": [asdict(run) for run in runs]} for name, runs in costs.items()
    }


# ---------------------------------------------------------------- an audit, a ping, check mode


def compare(instance: Instance, measuring: Measuring, number: int) -> tuple[dict[str, list[Cost]], dict[str, Any]]:
    """Costs of all three, and the document of the last audit."""
    document = measuring.counting.state / "document.json"
    document.unlink(missing_ok=True)
    play = instance.ansible.playbook

    def audit() -> Cost:
        report = {CALLBACKS: "hal_printable,hal_provenance,hal_audit_report", "HAL_AUDIT_DOCUMENT": str(document)}
        return measuring.cost(lambda more: play("playbooks/audit.yml", environment=more), report, AUDITED)

    def ping() -> Cost:
        return measuring.cost(instance.ansible.ping)

    ping()  # opens the connections, which all keep open
    costs = rounds(number, {PING: ping, AUDIT: audit})
    found: dict[str, Any] = json.loads(document.read_text())
    if set(found["nodes"]) != set(instance.names):
        raise NotMeasured(f"the audit looked at {', '.join(found['nodes']) or 'nothing'}")
    costs[CHECK] = [measuring.cost(lambda more: play("playbooks/site.yml", "--check", environment=more))]
    return costs, found


def comparison_table(costs: Mapping[str, Sequence[Cost]], document: Mapping[str, Any]) -> str:
    """The three below each other; what the audit looked at, and what a node says that it cost."""
    found, nodes = document["summary"], document["nodes"]
    lines = [
        f"All {len(nodes)} nodes, as declared, connections open (medians of {len(costs[PING])}; check mode once,"
        " pipelined)",
        f"  {'':<14}{'wall s':>9}{'controller CPU s':>17}{'calls':>8}",
        *(f"  {name:<14}{median(runs)}" for name, runs in costs.items()),
        f"  The audit looked at {found['resources']} resources, {found['expectations']} expectations and"
        f" {found['watched_files']} files in watched folders: {found['drift']} differ, {found['unknown']} unknown.",
    ]
    for what, unit in (("cpu_seconds", " s CPU"), ("seconds", " s"), ("memory_mb", " MB")):
        values = sorted(float(node.get(what) or 0) for node in nodes.values())
        lines.append(f"  on a node: {values[0]:g} to {values[-1]:g}{unit}")
    audit, check = median(costs[AUDIT]), median(costs[CHECK])
    lines.append(
        f"  check mode / audit: {check.calls / audit.calls:.0f} times the calls,"
        f" {check.seconds / audit.seconds:.0f} times the wall time,"
        f" {check.cpu_seconds / audit.cpu_seconds:.0f} times the controller's CPU"
    )
    return "\n".join(lines)


def comparison_goals(costs: Mapping[str, Sequence[Cost]]) -> list[Goal]:
    """What the audit is held against."""
    ping, audit, check = (median(costs[name]) for name in (PING, AUDIT, CHECK))
    return [
        Goal("audit / ping, wall", audit.seconds / ping.seconds, 1.3),
        Goal("pipelined check mode / audit, remote calls", check.calls / audit.calls, 100, at_least=True),
    ]


# ---------------------------------------------------------------- what recording adds


def record(instance: Instance, measuring: Measuring, number: int) -> dict[str, list[Cost]]:
    """A rollout without changes, recorded and not."""

    def rollout(callbacks: str) -> Callable[[], Cost]:
        def play(more: Mapping[str, str]) -> Run:
            return instance.ansible.playbook("playbooks/site.yml", environment=more)

        return lambda: measuring.cost(play, {CALLBACKS: callbacks, "ANSIBLE_CALLBACK_PLUGINS": str(CALLBACK)})

    return rounds(number, {ON: rollout(f"{UNRECORDED},hal_provenance"), OFF: rollout(UNRECORDED)})


def recording_table(costs: Mapping[str, Sequence[Cost]], nodes: int) -> str:
    """Both below each other, and the spread, which says how far the difference can be trusted."""
    lines = [
        f"A rollout without changes on {nodes} nodes (medians of {len(costs[ON])})",
        f"  {'':<14}{'wall s':>9}{'controller CPU s':>17}{'calls':>8}   CPU s, least and most",
    ]
    for name, runs in costs.items():
        cpu = sorted(run.cpu_seconds for run in runs)
        lines.append(f"  {name:<14}{median(runs)}   {cpu[0]:.1f} {cpu[-1]:.1f}")
    return "\n".join(lines)


def spread_percent(runs: Sequence[Cost]) -> float:
    """Processor time from least to most, in percent of the median."""
    cpu = [run.cpu_seconds for run in runs]
    return 100 * (max(cpu) - min(cpu)) / statistics.median(cpu)


def recording_goals(costs: Mapping[str, Sequence[Cost]], nodes: int) -> list[Goal]:
    """What recording may cost. Of runs that differ by more than that among themselves, nothing can be said."""
    on, off = median(costs[ON]), median(costs[OFF])
    more = 100 * (on.cpu_seconds / off.cpu_seconds - 1)
    steady = max(spread_percent(runs) for runs in costs.values()) <= MOST_RECORDING
    return [
        Goal("recording, more controller CPU", more if steady else None, MOST_RECORDING, unit=" %"),
        Goal("recording, more remote calls a node", (on.calls - off.calls) / nodes, 1),
    ]


# ---------------------------------------------------------------- a thousand resources on a node

# Stands in for the node's Python: the same, and what it and all that it started used. The module's own numbers leave
# out the start of Python and the unpacking.
PYTHON = """\
#!{real}
import json, resource, subprocess, sys
status = subprocess.call([{real!r}] + sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open({log!r}, "a") as log:
    log.write(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0]) + "\\n")
sys.exit(status)
"""
REAL, WRAPPED, LOG = "/usr/bin/python3", "/root/bench-python", "/root/bench-python.log"
STATE = "/var/lib/hal"  # where hal_record keeps a node's record
# What there is to record: names of packages, of units, of files, in this order. Small files, as roles write them.
LISTING = f"""\
rpm -qa --qf 'package:%{{NAME}}\\n' | grep -v gpg-pubkey | sort -u
systemctl list-unit-files --type=service --no-legend |
  sed -n 's/^\\([^@ ]*[.]service\\).*/service:\\1/p' | head -n {UNITS}
find /etc /usr/lib -xdev -type f -size -64k |
  grep -v '^/etc/\\(hosts\\|resolv.conf\\)$' | sort | sed 's/^/file:/' | head -n {RESOURCES}
"""


@dataclass(frozen=True)
class OnNode:
    """One run of the module on a node: what it says of itself, and what its process used, Python's start included."""

    cpu_seconds: float
    memory_mb: float
    process_cpu_seconds: float
    process_memory_mb: float
    seconds: float
    kinds: Mapping[str, int]


def entries(listing: Sequence[str], number: int = RESOURCES) -> list[dict[str, Any]]:
    """The first `number` resources of a listing, as the closing step sends them. NotMeasured when there are fewer."""
    resources = list(dict.fromkeys(listing))[:number]
    if len(resources) < number:
        raise NotMeasured(f"the node has only {len(resources)} of {number} resources to record")
    owner = {"role": "bench", "task": "bench", "source": "bench:1", "secret": False, "units": [], "inputs_hash": ""}
    return [
        {"resource": one, "declared": {} if one.startswith("service:") else {"state": "present"}, **owner}
        for one in resources
    ]


def plays(node: str, resources: Sequence[Mapping[str, Any]], number: int) -> list[dict[str, Any]]:
    """A play that seals these resources and then looks at them `number` times, with the watched folders and checks."""
    now = time.time()
    run = {"id": "bench", "commit": "", "started": now, "now": now}
    look = {
        "node": node,
        "watched": yaml.safe_load((PROJECT / "hal_cluster" / "audit" / "watched.yml").read_text()),
        "checks": ["uid_0", "kernel", "packages", "clock"],
    }
    tasks = [{"hal_record": {"node": node, "run": run, "entries": list(resources)}}, *[{"hal_audit": look}] * number]
    return [{"hosts": node, "gather_facts": False, "tasks": tasks}]


def read_on_node(answers: Sequence[Mapping[str, Any]], log: Sequence[str], kinds: Mapping[str, int]) -> list[OnNode]:
    """Join what the module answered with what its processes used; the first line of the log is of hal_record."""
    found = []
    for answer, line in zip(answers, log[1:], strict=True):
        if answer["counts"]["resources"] != sum(kinds.values()) or answer["differences"] or answer["problems"]:
            told = [*answer["differences"], *answer["problems"]][:3]
            raise NotMeasured(f"{answer['counts']['resources']} resources were looked at, and there is {told}")
        cpu, memory = json.loads(line)
        found.append(OnNode(answer["cpu_seconds"], answer["memory_mb"], cpu, memory, answer["seconds"], kinds))
    return found


def thousand(instance: Instance, state: Path, number: int) -> list[OnNode]:
    """Record and look at 1,000 resources of a compute node, which has its own record again afterwards."""
    node = next(name for name in instance.names if name.startswith("hal0"))
    run = instance.cluster.run
    resources = entries(run(node, LISTING).splitlines())
    nothing = state / "no-action-plugins"  # the module itself is called, not the action of the same name
    nothing.mkdir(exist_ok=True)
    playbook = state / "thousand.yml"
    playbook.write_text(json.dumps(plays(node, resources, number)))
    wrapper = PYTHON.format(real=REAL, log=LOG)
    run(node, f"cat >{WRAPPED} <<'END'\n{wrapper}END\nchmod 755 {WRAPPED}; rm -f {LOG}")
    run(node, f"rm -rf {STATE}.bench; if [ -e {STATE} ]; then mv {STATE} {STATE}.bench; fi")
    try:
        environment = {**JSON_OUTPUT, "ANSIBLE_ACTION_PLUGINS": str(nothing), CALLBACKS: ""}
        done = instance.ansible.playbook(playbook, environment=environment, ansible_python_interpreter=WRAPPED)
        if done.status != 0:
            raise NotMeasured(f"the modules failed:\n{done.output[-3000:]}")
        tasks = json.loads(done.stdout)["plays"][0]["tasks"]
        log = run(node, f"cat {LOG}").splitlines()
    finally:
        run(node, f"rm -rf {STATE} {WRAPPED} {LOG}; if [ -e {STATE}.bench ]; then mv {STATE}.bench {STATE}; fi")
    kinds = Counter(one["resource"].partition(":")[0] for one in resources)
    return read_on_node([task["hosts"][node] for task in tasks[1:]], log, kinds)


def on_node_table(runs: Sequence[OnNode]) -> str:
    """What the module says and what was measured around it."""
    kinds = ", ".join(f"{number} {kind}s" for kind, number in sorted(runs[0].kinds.items()))

    def middle(name: str) -> float:
        return statistics.median(float(getattr(run, name)) for run in runs)

    return "\n".join(
        [
            f"One node, {sum(runs[0].kinds.values())} resources ({kinds}), watched folders and checks"
            f" (medians of {len(runs)})",
            f"  {'':<34}{'CPU s':>7}{'MB':>7}",
            f"  {'the module says':<34}{middle('cpu_seconds'):>7.2f}{middle('memory_mb'):>7.1f}",
            f"  {'its process, start of Python too':<34}{middle('process_cpu_seconds'):>7.2f}"
            f"{middle('process_memory_mb'):>7.1f}",
        ]
    )


def on_node_goals(runs: Sequence[OnNode]) -> list[Goal]:
    """The whole process is held against the goal: it is what the node pays."""
    cpu = statistics.median(run.process_cpu_seconds for run in runs)
    memory = statistics.median(run.process_memory_mb for run in runs)
    return [
        Goal(f"{RESOURCES} resources, CPU on the node", cpu, 1, unit=" s"),
        Goal(f"{RESOURCES} resources, memory on the node", memory, 50, unit=" MB"),
    ]


# ---------------------------------------------------------------- what each can see


def seen(faults: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """Kind of the first finding -> faults, of them found by the audit, of them seen by check mode."""
    table: dict[str, list[int]] = {}
    for fault in faults:
        row = table.setdefault(fault["finds"][0]["kind"], [0, 0, 0])
        row[0] += 1
        row[1] += 1
        row[2] += bool(fault["check"])
    return {kind: (row[0], row[1], row[2]) for kind, row in sorted(table.items())}


def seen_table(table: Mapping[str, tuple[int, int, int]]) -> str:
    """By kind, and all."""
    rows = {**table, "all": tuple(map(sum, zip(*table.values(), strict=True)))}
    return "\n".join(
        [
            "Faults planted by the tests of the rollout, which prove each number: tests/rollout/faults.yml",
            f"  {'kind':<14}{'faults':>7}{'audit':>7}{'check mode':>12}",
            *(f"  {kind:<14}{row[0]:>7}{row[1]:>7}{row[2]:>12}" for kind, row in rows.items()),
        ]
    )


def part(session: Session) -> Measured:
    """All four, each with its table."""
    faults = seen(yaml.safe_load(FAULTS.read_text()))
    instance, number = session.rolled_out(), session.options.rounds
    measuring, nodes = Measuring(Counting(instance, session.state)), len(instance.names)
    compared, document = compare(instance, measuring, number)
    print(comparison_table(compared, document) + "\n", flush=True)
    looked = thousand(instance, session.state, number)
    print(on_node_table(looked) + "\n", flush=True)
    recorded = record(instance, measuring, number)
    print(recording_table(recorded, nodes) + "\n", flush=True)
    print(seen_table(faults), flush=True)
    return Measured(
        {
            "compared": everything(compared),
            "audited": {"summary": document["summary"], "nodes": document["nodes"]},
            "recorded": everything(recorded),
            "on_node": [asdict(run) for run in looked],
            "seen": faults,
        },
        [*comparison_goals(compared), *recording_goals(recorded, nodes), *on_node_goals(looked)],
    )
