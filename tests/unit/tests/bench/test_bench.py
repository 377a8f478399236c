"""Goals of the benchmark: met, not met, or not known."""

from __future__ import annotations

import pytest

from tests.bench import inventory
from tests.bench.part import Goal


@pytest.mark.parametrize(
    ("goal", "met", "line"),
    [
        (Goal("a / b", 1.3, 1.3), True, "  goal met      a / b: 1.3, wanted at most 1.3"),
        (Goal("a / b", 1.306, 1.3), False, "  goal NOT MET  a / b: 1.306, wanted at most 1.3"),
        (Goal("b / a", 3.9, 4, at_least=True), False, "  goal NOT MET  b / a: 3.9, wanted at least 4"),
        (Goal("memory", 1024, 8192, unit=" MB"), True, "  goal met      memory: 1024 MB, wanted at most 8192 MB"),
        (Goal("memory", None, 8192, unit=" MB"), None, "  goal unknown  memory: not measured, wanted at most 8192 MB"),
    ],
)
def test_a_goal_says_whether_it_is_met(goal: Goal, met: bool | None, line: str) -> None:
    assert goal.met is met
    assert str(goal) == line


def test_the_inventory_is_held_against_json_and_yaml() -> None:
    seconds = {"json": 1.0, "plugin": 1.25, "yaml": 4.0}
    goals = inventory.goals(9, {name: {"cpu_seconds": value, "wall_seconds": 9} for name, value in seconds.items()})
    assert [(goal.value, goal.met) for goal in goals] == [(1.25, True), (3.2, False)]
