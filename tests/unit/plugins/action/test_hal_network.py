"""How the controller asks for a confirmation: by one new connection after the other."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

PATH = Path(__file__).resolve().parents[4] / "plugins" / "action" / "hal_network.py"
UNREACHABLE = AnsibleConnectionFailure("no route to host")
NOT_YET = {"changed": False, "confirmed": False}
KEPT = {"changed": True, "confirmed": True}


class Clock:
    """A time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("hal_network_action", PATH)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    monkeypatch.setattr(loaded, "time", Clock())
    monkeypatch.setattr(ActionBase, "run", lambda *_: {})
    return loaded


def asked(plugin: ModuleType, answers: list[Any], phase: str = "confirm", seconds: float = 60) -> tuple[Any, list[str]]:
    """What the task returns, and what it did."""
    log: list[str] = []
    remaining: Iterator[Any] = iter(answers)

    def execute(**_: Any) -> Any:
        log.append("ask")
        answer = next(remaining)
        if isinstance(answer, Exception):
            raise answer
        return answer

    action = plugin.ActionModule.__new__(plugin.ActionModule)
    action._task = SimpleNamespace(args={"phase": phase, "wait_seconds": seconds}, check_mode=False)
    action._connection = SimpleNamespace(reset=lambda: log.append("new connection"))
    action._execute_module = execute
    return action.run(task_vars={}), log


def test_it_asks_until_the_change_is_kept_each_time_by_a_new_connection(plugin: ModuleType) -> None:
    result, log = asked(plugin, [NOT_YET, UNREACHABLE, NOT_YET, KEPT])
    assert result == KEPT
    assert log == ["new connection", "ask"] * 4


def test_what_the_node_refuses_is_the_answer(plugin: ModuleType) -> None:
    refused = {"failed": True, "msg": "eno1 is down: files and interfaces are put back"}
    assert asked(plugin, [NOT_YET, refused, KEPT])[0] == refused


@pytest.mark.parametrize(("answer", "got_in"), [(UNREACHABLE, False), (NOT_YET, True)])
def test_it_gives_up_before_the_timer_does(plugin: ModuleType, answer: Any, got_in: bool) -> None:
    """What counts is the end: before the change of the interface that it comes in by, anybody gets in."""
    result, log = asked(plugin, [NOT_YET, *[answer] * 9], seconds=4.5)
    assert result == {"changed": False, "confirmed": False, "got_in": got_in}
    assert log == ["new connection", "ask"] * 5


def test_other_phases_are_the_modules_alone(plugin: ModuleType) -> None:
    assert asked(plugin, [{"changed": True}], phase="write") == ({"changed": True}, ["ask"])
