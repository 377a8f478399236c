"""One task on nodes beside the plays of a run: by the same process, variables and connections, and printed nowhere.

Two things that it needs are private in Ansible. They are used here alone, and a test notices when they go
(tests/unit/hal_cluster/test_aside.py):

* `VariableManager._inventory`: the inventory of the run. A second one would be read anew, for minutes, and without what
  plays have added.
* `TaskQueueManager._start_at_done`: --start-at-task was for the run. No argument says that it has begun.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    manager, loader = play.get_variable_manager(), play.get_loader()
    inventory = manager._inventory
    queue = TaskQueueManager(
        inventory=inventory,
        variable_manager=manager,
        loader=loader,
        passwords=dict(passwords),
        stdout_callback=results,
        run_additional_callbacks=False,
        forks=context.CLIARGS.get("forks"),
    )
    queue._start_at_done = True
    content = {
        "name": task["name"],
        "hosts": list(names),
        "gather_facts": "no",
        "strategy": strategy(),
        "any_errors_fatal": "no",
        "tasks": [dict(task)],
        **keywords,
    }
    with _every_host(inventory, play):
        try:
            queue.run(AsidePlay().load_data(content, variable_manager=manager, loader=loader))
        finally:
            queue.cleanup()


@contextmanager
def _every_host(inventory: Any, play: Any) -> Iterator[None]:
    """Lift the restriction to the batch of a play that runs, and put it back."""
    # "all" does not match a localhost that no inventory names. The play's pattern does.
    batch = [*inventory.get_hosts("all"), *inventory.get_hosts(play.hosts)]
    inventory.remove_restriction()
    try:
        yield
    finally:
        inventory.restrict_to_hosts(batch)


def strategy() -> str:
    """The plain one, or mitogen's when the run goes through it: its connections are there."""
    configured = str(constants.DEFAULT_STRATEGY)
    return "mitogen_linear" if configured.startswith("mitogen") else "ansible.builtin.linear"
