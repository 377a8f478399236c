"""What deciding on the attributes of a Spectrum Scale cluster costs: 500 attributes, 1,000 nodes of a class.

No node is needed: the text of mmlsconfig -Y is made, read, held against what is declared, and calls of mmchconfig come
out. Each case runs in a process of its own, as the module does on a node.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.part import Goal, Measured, NotMeasured, Session

PROJECT = Path(__file__).resolve().parents[2]
ATTRIBUTES, NODES = 500, 1000
MOST_SECONDS, MOST_MB = 1, 100
HEADER = "mmlsconfig::HEADER:version:reserved:reserved:configParameter:value:nodeList:"


@dataclass(frozen=True)
class Cost:
    """One case: processor seconds and memory of the process, the calls that it found, the size of what it read."""

    seconds: float
    memory_mb: float
    calls: int
    text_mb: float


def attribute(number: int) -> str:
    """The name of an attribute."""
    return f"benchAttribute{number:03d}"


def node(number: int) -> str:
    """The name of a node."""
    return f"node{number:04d}"


def as_declared() -> list[str]:
    """Every attribute is as it should be on the whole class, by one list of nodes."""
    nodes = ",".join(node(number) for number in range(NODES))
    return [f"mmlsconfig::0:1:::{attribute(one)}:{one}:{nodes}:" for one in range(ATTRIBUTES)]


def nothing_yet() -> list[str]:
    """No attribute was ever set."""
    return []


def one_node_differs() -> list[str]:
    """One node has all attributes otherwise."""
    rows = [row.replace(f",{node(7)},", ",") for row in as_declared()]
    return rows + [f"mmlsconfig::0:1:::{attribute(one)}:{one + 1}:{node(7)}:" for one in range(ATTRIBUTES)]


def a_row_for_each_node() -> list[str]:
    """The longest text: the nodes are not in lists, each has rows of its own."""
    return [f"mmlsconfig::0:1:::{attribute(one)}:{one}:{node(at)}:" for one in range(ATTRIBUTES) for at in range(NODES)]


CASES: dict[str, tuple[Callable[[], list[str]], int]] = {
    "as declared": (as_declared, 0),
    "nothing set yet": (nothing_yet, 1),
    "one node differs": (one_node_differs, 1),
    "a row for each node": (a_row_for_each_node, 0),
}


def decide(name: str) -> Cost:
    """Read, compare and plan one case."""
    import ansible.module_utils

    ansible.module_utils.__path__.append(str(PROJECT / "plugins" / "module_utils"))
    from ansible.module_utils.hal_node.scale.plan import Configured, calls, changes
    from ansible.module_utils.hal_node.scale.text import configured

    text = "\n".join([HEADER, *CASES[name][0](), ""])
    declared = {attribute(one): one for one in range(ATTRIBUTES)}
    classes = {"clients": {"nodes": [node(number) for number in range(NODES)], "attributes": declared}}
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = calls(changes(Configured(configured(text), {}), {}, classes)[1])
    seconds = time.process_time() - began
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return Cost(seconds, used / 1024, len(found), len(text) / 2**20)


def measure(name: str, number: int) -> Cost:
    """The median of some runs. NotMeasured when the calls are not what they have to be."""
    costs = []
    for _ in range(number):
        argv = [sys.executable, "-m", "tests.bench.scale_config", name]
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NotMeasured(f"{name}: {done.stderr.strip()}")
        costs.append(Cost(**json.loads(done.stdout)))
    if {cost.calls for cost in costs} != {CASES[name][1]}:
        raise NotMeasured(f"{name}: {costs[0].calls} calls of mmchconfig, {CASES[name][1]} are needed")
    return sorted(costs, key=lambda cost: cost.seconds)[len(costs) // 2]


def table(costs: dict[str, Cost]) -> str:
    """The cases below each other."""
    lines = [
        f"Attributes of Spectrum Scale: {ATTRIBUTES} on a class of {NODES} nodes, read, compared and planned",
        f"  {'':<22}{'CPU s':>8}{'MB':>8}{'calls':>8}{'text MB':>10}",
    ]
    lines += [
        f"  {name:<22}{cost.seconds:>8.2f}{cost.memory_mb:>8.0f}{cost.calls:>8}{cost.text_mb:>10.1f}"
        for name, cost in costs.items()
    ]
    return "\n".join(lines)


def part(session: Session) -> Measured:
    """Every case, held against a second; one row for each node, which Scale does not print, against memory alone."""
    costs = {name: measure(name, session.options.rounds) for name in CASES}
    print(table(costs), flush=True)
    usual = [cost.seconds for name, cost in costs.items() if name != "a row for each node"]
    return Measured(
        {name: asdict(cost) for name, cost in costs.items()},
        [
            Goal("attributes by class, CPU of the slowest case", max(usual), MOST_SECONDS, unit=" s"),
            Goal("attributes by class, memory", statistics.median(one.memory_mb for one in costs.values()), MOST_MB),
        ],
    )


if __name__ == "__main__":
    print(json.dumps(asdict(decide(sys.argv[1]))))
