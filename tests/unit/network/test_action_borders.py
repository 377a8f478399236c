"""How long the controller asks for a confirmation, and when it leaves everything to the module."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from tests.unit.modules import loaded

NOT_YET = {"changed": False, "confirmed": False}


class Playing:
    """A task on a clock that goes on only while somebody sleeps; the node always says the same."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.plugin = loaded("hal_network", "action")
        self.now, self.asked = 0.0, 0
        self.clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep)
        monkeypatch.setattr(self.plugin, "time", self.clock)
        monkeypatch.setattr(ActionBase, "run", lambda *_: {"base": True})

    def sleep(self, seconds: float) -> None:
        self.now += seconds

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
def playing(monkeypatch: pytest.MonkeyPatch) -> Playing:
    return Playing(monkeypatch)


@pytest.mark.parametrize(
    ("given", "asked"), [({}, 105), ({"wait_seconds": "3"}, 3), ({"wait_seconds": 2.5}, 3), ({"wait_seconds": 0}, 0)]
)
def test_it_asks_once_a_second_for_as_long_as_it_was_told(playing: Playing, given: dict[str, Any], asked: int) -> None:
    result = playing(NOT_YET, phase="confirm", **given)
    assert (playing.asked, result["got_in"]) == (asked, asked > 0)
    assert (result["base"], result["changed"], result["confirmed"]) == (True, False, False)


def test_a_node_that_never_answers_was_never_got_into(playing: Playing) -> None:
    result = playing(AnsibleConnectionFailure("no route"), phase="confirm", wait_seconds=2)
    assert (playing.asked, result["got_in"]) == (2, False)


@pytest.mark.parametrize("phase", ["apply", "write", "look", "confirm"])
def test_check_mode_and_other_phases_are_the_modules_alone(playing: Playing, phase: str) -> None:
    assert playing(NOT_YET, phase=phase, check_mode=phase == "confirm") == {"base": True, **NOT_YET}
    assert (playing.asked, playing.now) == (1, 0)
