"""One task beside a play: on every host that is asked for, and the play goes on as if nothing had been."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible import context
from ansible.executor.task_queue_manager import TaskQueueManager
from ansible.inventory.manager import InventoryManager
from ansible.module_utils.common.collections import ImmutableDict
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play import Play
from ansible.plugins.callback import CallbackBase
from ansible.vars.manager import VariableManager

from hal_cluster import aside


class Run:
    """A run with three hosts, and a play of it."""

    def __init__(self) -> None:
        self.loader = DataLoader()
        self.inventory = InventoryManager(self.loader, parse=False)
        for name in ("hal01", "hal02", "hal03"):
            self.inventory.add_host(name)
            self.inventory.get_host(name).set_variable("ansible_connection", "local")
        self.inventory.reconcile_inventory()
        self.variables = VariableManager(self.loader, self.inventory)

    def play(self, hosts: str) -> Any:
        return Play().load({"name": "Late", "hosts": hosts}, variable_manager=self.variables, loader=self.loader)

    def names(self, pattern: Any = "all") -> list[str]:
        return [host.get_name() for host in self.inventory.get_hosts(pattern)]


class Answers(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """Prints nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}

    def v2_runner_on_ok(self, result: Any) -> None:
        self.said[result._host.get_name()] = result._result["msg"]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    words = ImmutableDict(start_at_task="Another", tags=["other"], skip_tags=["always"], forks=2, verbosity=0)
    monkeypatch.setattr(context, "CLIARGS", words)
    monkeypatch.setattr(aside, "strategy", lambda: "linear")  # no loader of collections is at work here
    return Run()


def test_hosts_outside_of_the_batch_are_asked_and_the_batch_stays(run: Run) -> None:
    play = run.play("all")
    run.inventory.restrict_to_hosts(run.inventory.get_hosts("hal02"))
    answers = Answers()
    task = {"name": "Say it", "debug": {"msg": "{{ inventory_hostname }}"}}
    aside.play_aside(["hal01", "hal02"], task, play, {}, answers)
    assert answers.said == {"hal01": "hal01", "hal02": "hal02"}
    assert run.names() == run.names(play.hosts) == ["hal02"]


def test_what_fails_leaves_the_batch_as_it_was(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.inventory.restrict_to_hosts(run.inventory.get_hosts("hal03"))
    seen: list[list[str]] = []

    def fails(_queue: Any, play: Any) -> None:
        seen.append(run.names())
        raise KeyError(play.get_name())

    monkeypatch.setattr(TaskQueueManager, "run", fails)
    with pytest.raises(KeyError, match="Say it"):
        aside.play_aside(["hal01"], {"name": "Say it", "debug": {}}, run.play("all"), {}, Answers())
    assert seen == [["hal01", "hal02", "hal03"]]
    assert run.names() == ["hal03"]


def test_a_localhost_that_no_inventory_names_stays_in_its_batch(run: Run) -> None:
    play = run.play("localhost,hal01")
    run.inventory.restrict_to_hosts(run.inventory.get_hosts("localhost,hal01"))
    with aside._every_host(run.inventory, play):
        assert run.names() == ["hal01", "hal02", "hal03"]
    assert sorted(run.names("localhost,hal01,hal02")) == ["hal01", "localhost"]


def test_a_host_that_a_batch_has_and_its_play_leaves_out_stays_in_the_batch(run: Run) -> None:
    play = SimpleNamespace(hosts=["all", "!hal01"])
    run.inventory.restrict_to_hosts(run.inventory.get_hosts("hal01,hal02"))
    with aside._every_host(run.inventory, play):
        pass
    assert run.names() == ["hal01", "hal02"]


def test_ansible_still_has_what_is_private_and_needed(run: Run) -> None:
    """Where it has gone: docstring of hal_cluster/aside.py."""
    assert run.variables._inventory is run.inventory
    queue = TaskQueueManager(run.inventory, run.variables, run.loader, {})
    assert queue._start_at_done is False
    queue.cleanup()
