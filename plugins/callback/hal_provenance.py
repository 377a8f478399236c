"""Note what roles manage on each node, and have every node store it at the end of a run."""

from __future__ import annotations

import atexit
import contextlib
import os
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.callback import CallbackBase

from hal_cluster.audit import active, sealing
from hal_cluster.audit.observer import Observer, in_check_mode
from hal_cluster.rollout import naming
from hal_cluster.rollout.holding import CURRENT

DOCUMENTATION = r"""
name: hal_provenance
type: aggregate
short_description: Record what roles manage on each node
description:
  - Notes for every task of a role which resources it manages, and who owns them. When the run ends, well or not, one
    call a node observes these resources and stores the record there; a copy stays in C(hal_audit_dir).
  - What could not be told to a node stays at the controller and is told at the next run that reaches it.
  - In check mode nothing is recorded. With C(HAL_PROVENANCE=propose) in the environment check mode writes what it found
    to be as declared into C(hal_audit_dir)/proposals.
  - Of tasks with C(no_log), and of arguments that come from vaulted variables, only names, owners and modes are kept.
requirements: [Enabled in C(callbacks_enabled) of ansible.cfg]
author: HAL toolkit
"""


class CallbackModule(CallbackBase):
    """Thin: hal_cluster.audit.observer decides what is noted, hal_cluster.audit.sealing stores it."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "hal_provenance"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        """Idle in check mode, unless it is asked for proposals."""
        super().__init__()
        proposing = in_check_mode() and os.environ.get("HAL_PROVENANCE") == "propose"
        self.disabled = in_check_mode() and not proposing
        self.passwords: dict[str, str] = {}
        self.observer = Observer(proposing=proposing)
        if not self.disabled:
            atexit.register(self.observer.spool)
        active.takes_part(self.CALLBACK_NAME)

    def set_play_context(self, play_context: Any) -> None:
        """Keep the passwords that were asked for: the closing step logs in with them, too."""
        self.passwords = {"conn_pass": play_context.password, "become_pass": play_context.become_pass}

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """A play ends where the next begins."""
        self.observer.spool()
        self.observer.play_starts(play)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """Time of its packages. What works out names for each host finds the roles read."""
        self.observer.task_starts(task)
        if task.action == naming.ACTION and task.args.get("state") == "kept" and self.observer.play is not None:
            with contextlib.suppress(AnsibleError):  # each host says what is wrong with it
                naming.RUNNING.roles(self.observer.play._loader, self.observer.play._variable_manager)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """Time of its packages."""
        self.observer.task_starts(task)

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task was done."""
        self.observer.ok(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task failed."""
        self.observer.failed(result, ignored=ignore_errors)

    def v2_runner_on_skipped(self, result: Any) -> None:
        """A task was left out."""
        self.observer.skipped(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host does not answer."""
        self.observer.lost(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """An item was done."""
        self.observer.item_ok(result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        """An item failed."""
        self.observer.item_incomplete(result)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        """An item was left out."""
        self.observer.item_skipped(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The closing step. It changes nothing about how the run ended."""
        observer = self.observer
        observer.spool()
        if observer.proposing or observer.play is None:
            return
        told = {
            host: store
            for host, store in observer.stores.items()
            if host not in observer.unreachable and store.pending(host, observer.run.id)
        }
        outcome = sealing.seal(told, observer.run.id, observer.logins, observer.play, self.passwords, CURRENT.id)
        CURRENT.let_go(outcome.released)
        observer.end()
        for reason, hosts in observer.troubles.items():
            outcome.problem(reason, hosts)
        lines, warnings = sealing.words(outcome)
        for line in lines:
            self._display.display(line)
        for line in warnings:
            self._display.warning(line, formatted=True)
