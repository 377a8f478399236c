"""Counts what each role does on each node: tasks, results, changes. For tests/bench/calls.py."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: hal_bench_calls
type: aggregate
short_description: Count tasks and ssh calls of each role on each node
description:
  - Writes a JSON file with the number of results of each role on each node.
  - Puts the role's name into the environment variable HAL_BENCH_ROLE before each task. Worker processes are forked
    after that, so the ssh that they start has it, and the counting wrapper around ssh can say whose call it was. This
    holds for strategies that run one task at a time, such as linear.
options:
  report:
    description: File to write.
    required: true
    env: [{name: HAL_BENCH_REPORT}]
author: HAL toolkit
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """One counter for each kind of result, by role and host."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "hal_bench_calls"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        """Nothing counted yet."""
        super().__init__()
        self.counts: Counter[tuple[str, str, str]] = Counter()

    def _begin(self, task: Any) -> None:
        os.environ["HAL_BENCH_ROLE"] = role_of(task)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """Say whose calls come next."""
        self._begin(task)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """Handlers are their role's as well."""
        self._begin(task)

    def _count(self, kind: str, result: Any) -> None:
        self.counts[role_of(result._task), result._host.get_name(), kind] += 1

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task that ran; its loop's items are one task."""
        self._count("changed" if result._result.get("changed") else "ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task that failed."""
        self._count("failed", result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        """A task that its condition left out."""
        self._count("skipped", result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Write the report."""
        rows = [[role, host, kind, number] for (role, host, kind), number in sorted(self.counts.items())]
        with open(self.get_option("report"), "w") as stream:
            json.dump(rows, stream)


def role_of(task: Any) -> str:
    """The role that a task belongs to, "" for a play's own task."""
    return str(task._role.get_name()) if task._role else ""
