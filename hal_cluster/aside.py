"""One task on nodes beside the plays of a run: by the same process, variables and connections, and printed nowhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible import constants, context
from ansible.executor.task_queue_manager import TaskQueueManager
from ansible.playbook.play import Play
from ansible.plugins.callback import CallbackBase


class AsidePlay(Play):  # type: ignore[misc]  # Ansible has no types
    """Runs whatever --tags and --skip-tags said."""

    def __init__(self) -> None:
        """As a play without tags."""
        super().__init__()
        self.only_tags = frozenset({"all"})
        self.skip_tags: set[str] = set()


def play_aside(
    names: Sequence[str],
    task: Mapping[str, Any],
    play: Any,
    passwords: Mapping[str, str],
    results: CallbackBase,
    **keywords: Any,
) -> None:
    """Run a task, which has a name, on hosts of a play's inventory. `keywords`: of the play that is run for it.

    AnsibleError when it cannot be run at all. What hosts answer goes to `results`.
    """
    manager, loader = play._variable_manager, play._loader
    inventory = manager._inventory
    restriction = inventory._restriction
    inventory.remove_restriction()
    queue = TaskQueueManager(
        inventory=inventory,
        variable_manager=manager,
        loader=loader,
        passwords=dict(passwords),
        stdout_callback=results,
        run_additional_callbacks=False,
        forks=context.CLIARGS.get("forks"),
    )
    queue._start_at_done = True  # --start-at-task was for the run
    try:
        content = {
            "name": task["name"],
            "hosts": list(names),
            "gather_facts": "no",
            "strategy": strategy(),
            "any_errors_fatal": "no",
            "tasks": [dict(task)],
            **keywords,
        }
        queue.run(AsidePlay().load_data(content, variable_manager=manager, loader=loader))
    finally:
        queue.cleanup()
        inventory._restriction = restriction


def strategy() -> str:
    """The plain one, or mitogen's when the run goes through it: its connections are there."""
    configured = str(constants.DEFAULT_STRATEGY)
    return "mitogen_linear" if configured.startswith("mitogen") else "ansible.builtin.linear"
