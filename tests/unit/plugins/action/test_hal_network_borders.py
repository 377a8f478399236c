"""How long the controller asks for a confirmation, and when it leaves everything to the module."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.plugins.action import ActionBase

from tests.unit.modules import loaded
from tests.unit.plugins.action.test_hal_network import NOT_YET, UNREACHABLE, Clock


class Asking:
    """A task that asks a node which always says the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plugin = loaded("hal_network", "action")
        self.clock, self.asked = Clock(), 0
        monkeypatch.setattr(self.plugin, "time", self.clock)
        monkeypatch.setattr(ActionBase, "run", lambda *_: {"base": True})

    def __call__(self, answer: Any, *, check_mode: bool = False, **arguments: Any) -> dict[str, Any]:
        def execute(task_vars: Any) -> Any:
            assert task_vars == {"a": 1}
            self.asked += 1
            if isinstance(answer, Exception):
                raise answer
            return answer

        action = self.plugin.ActionModule.__new__(self.plugin.ActionModule)
        action._task = SimpleNamespace(args=arguments, check_mode=check_mode)
        action._connection = SimpleNamespace(reset=lambda: None)
        action._execute_module = execute
        result: dict[str, Any] = action.run(task_vars={"a": 1})
        return result


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Asking:
    return Asking(monkeypatch)


@pytest.mark.parametrize(
    ("given", "asked"), [({}, 105), ({"wait_seconds": "3"}, 3), ({"wait_seconds": 2.5}, 3), ({"wait_seconds": 0}, 0)]
)
def test_it_asks_once_a_second_for_as_long_as_it_was_told(asking: Asking, given: dict[str, Any], asked: int) -> None:
    result = asking(NOT_YET, phase="confirm", **given)
    assert (asking.asked, result["got_in"]) == (asked, asked > 0)
    assert (result["base"], result["changed"], result["confirmed"]) == (True, False, False)


def test_a_node_that_never_answers_was_never_got_into(asking: Asking) -> None:
    result = asking(UNREACHABLE, phase="confirm", wait_seconds=2)
    assert (asking.asked, result["got_in"]) == (2, False)


@pytest.mark.parametrize("phase", ["apply", "write", "look", "confirm"])
def test_check_mode_and_other_phases_are_the_modules_alone(asking: Asking, phase: str) -> None:
    assert asking(NOT_YET, phase=phase, check_mode=phase == "confirm") == {"base": True, **NOT_YET}
    assert (asking.asked, asking.clock.now) == (1, 0)
