"""The benchmark of the audit: what is made of its numbers, without a node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.bench import audit
from tests.bench.audit import Cost, OnNode
from tests.bench.calls import Counting
from tests.bench.part import NotMeasured

from running.ansible_run import Run  # isort: skip  # tests.bench has made it findable

OPENSSH = "HostKeyAlias=hal01"


@pytest.fixture
def measuring(tmp_path: Path) -> audit.Measuring:
    """Counts calls below a temporary folder; there is no cluster."""
    return audit.Measuring(Counting(SimpleNamespace(), tmp_path))  # type: ignore[arg-type]


def test_a_run_costs_its_time_its_children_and_its_calls(measuring: audit.Measuring) -> None:
    def busy(environment: Any) -> Run:
        ssh = environment["ANSIBLE_SSH_EXECUTABLE"]
        for words in (["-V"], ["-o", OPENSSH, "-V"], ["-O", "check", "nowhere"]):
            subprocess.run(
                [ssh, *words], env={**environment, "PATH": "/usr/bin:/bin"}, capture_output=True, check=False
            )
        code = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
        subprocess.run([sys.executable, "-c", code], check=True)
        assert environment["MORE"] == "yes"
        return Run(0, "")

    cost = measuring.cost(busy, {"MORE": "yes"})
    assert cost.calls == 2, "-O asks the connection, not the node"
    assert 0.3 <= cost.cpu_seconds < 3
    assert cost.seconds >= 0.3
    assert measuring.cost(lambda environment: Run(0, "")).calls == 0, "each run has a log of its own"


def test_a_run_that_failed_has_no_cost(measuring: audit.Measuring) -> None:
    with pytest.raises(NotMeasured, match="fatal"):
        measuring.cost(lambda environment: Run(2, "fatal: [hal01]"))
    measuring.cost(lambda environment: Run(2, "fatal: [hal01]"), expected=audit.AUDITED)
    with pytest.raises(NotMeasured):
        measuring.cost(lambda environment: Run(4, "unreachable"), expected=audit.AUDITED)


def test_ways_take_turns_and_the_median_of_each_number_counts() -> None:
    order = []

    def way(name: str) -> Any:
        def run() -> Cost:
            order.append(name)
            return Cost(len(order), 10 - len(order), 6)

        return run

    costs = audit.rounds(3, {"a": way("a"), "b": way("b")})
    assert "".join(order) == "abbaab"
    assert [cost.seconds for cost in costs["a"]] == [1, 4, 5]
    assert audit.median(costs["a"]) == Cost(4, 6, 6)


COSTS = {
    audit.PING: [Cost(2, 1, 6)],
    audit.AUDIT: [Cost(2.5, 2, 6), Cost(2.4, 2, 6), Cost(9, 9, 6)],
    audit.CHECK: [Cost(100, 50, 660)],
}


def test_the_audit_is_held_against_a_ping_and_check_mode() -> None:
    goals = audit.comparison_goals(COSTS)
    assert [(goal.value, goal.met) for goal in goals] == [(1.25, True), (110, True)]


def test_the_table_says_the_ratios_and_what_was_looked_at() -> None:
    summary = {"resources": 180, "expectations": 170, "watched_files": 60, "drift": 1, "unknown": 0}
    node = {"seconds": 0.4, "cpu_seconds": 0.3, "memory_mb": 21.5}
    document = {"summary": summary, "nodes": {"hal01": node, "hal02": {**node, "memory_mb": 30}}}
    table = audit.comparison_table(COSTS, document)
    assert "110 times the calls, 40 times the wall time, 25 times the controller's CPU" in table
    assert "180 resources, 170 expectations and 60 files in watched folders: 1 differ, 0 unknown" in table
    assert "21.5 to 30 MB" in table


def test_recording_is_what_a_rollout_costs_more() -> None:
    costs = {audit.ON: [Cost(60, 20.8, 606)], audit.OFF: [Cost(59, 20, 600)]}
    goals = audit.recording_goals(costs, nodes=6)
    assert [(round(goal.value or 0, 6), goal.met) for goal in goals] == [(4, True), (1, True)]
    assert "20.8" in audit.recording_table(costs, nodes=6)


@pytest.mark.parametrize(("most", "known"), [(20.9, True), (21.1, False)])
def test_runs_that_spread_more_than_recording_may_cost_say_nothing_of_it(most: float, known: bool) -> None:
    costs = {audit.ON: [Cost(60, 20, 606)] * 3, audit.OFF: [Cost(60, cpu, 600) for cpu in (20, 20, most)]}
    for pair in (costs, {audit.ON: costs[audit.OFF], audit.OFF: costs[audit.ON]}):
        cpu = audit.recording_goals(pair, nodes=6)[0]
        assert cpu.met is (True if known else None)


def test_a_thousand_resources_are_a_thousand() -> None:
    found = audit.entries(["package:a", "package:a", "service:b.service", "file:/c", "file:/d"], 3)
    assert [one["resource"] for one in found] == ["package:a", "service:b.service", "file:/c"]
    assert [one["declared"] for one in found] == [{"state": "present"}, {}, {"state": "present"}]
    with pytest.raises(NotMeasured, match="only 2 of 3"):
        audit.entries(["file:/c", "file:/d", "file:/d"], 3)


ANSWER: dict[str, Any] = {
    "counts": {"resources": 3},
    "differences": [],
    "problems": [],
    **{"cpu_seconds": 0.5, "memory_mb": 30, "seconds": 0.6},
}


def test_the_process_is_measured_beside_the_module() -> None:
    found = audit.read_on_node([ANSWER, ANSWER], ["[9, 99]", "[0.7, 35.5]", "[0.9, 36.5]"], {"file": 3})
    assert found[0] == OnNode(0.5, 30, 0.7, 35.5, 0.6, {"file": 3})
    assert [(goal.value, goal.met) for goal in audit.on_node_goals(found)] == [(0.8, True), (36, True)]
    assert "3 resources (3 files)" in audit.on_node_table(found)


@pytest.mark.parametrize(
    "wrong", [{"counts": {"resources": 2}}, {"differences": [{"kind": "mode"}]}, {"problems": ["no rpm"]}]
)
def test_a_look_that_did_not_see_everything_is_no_measurement(wrong: dict[str, Any]) -> None:
    with pytest.raises(NotMeasured, match="looked at"):
        audit.read_on_node([{**ANSWER, **wrong}], ["[9, 99]", "[1, 1]"], {"file": 3})


def test_what_each_can_see_is_counted_by_kind() -> None:
    faults = [
        {"finds": [{"kind": "mode"}], "check": True},
        {"finds": [{"kind": "extra"}, {"kind": "changed"}], "check": False},
        {"finds": [{"kind": "extra"}], "check": True},
    ]
    found = audit.seen(faults)
    assert found == {"extra": (2, 2, 1), "mode": (1, 1, 1)}
    assert audit.seen_table(found).splitlines()[-1].split() == ["all", "3", "3", "2"]
