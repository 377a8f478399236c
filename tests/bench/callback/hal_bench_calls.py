"""Counts what each role does on each node: tasks, results, changes, processor time. For tests/bench/calls.py."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

CONTROLLER = ""  # in place of a node's name

DOCUMENTATION = """
name: hal_bench_calls
type: aggregate
short_description: Count tasks and ssh calls of each role on each node
description:
  - Writes a JSON file with the number of results of each role on each node.
  - Puts the role's name into the environment variable HAL_BENCH_ROLE before each task. Worker processes are forked
    after that, so the ssh that they start has it, and the counting wrapper around ssh can say whose call it was. This
    holds for strategies that run one task at a time, such as linear.
  - Reads the processor time of the nodes' containers and its own whenever another role begins, and gives what was used
    to the role before. Daemons of a node are in it.
options:
  cpu_files:
    description: A JSON object, for each node the file of the kernel that has its processor time.
    default: "{}"
    env: [{name: HAL_BENCH_CPU_FILES}]
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
        self.cpu: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.role: str | None = None
        self.used: dict[str, float] = {}

    def _begin(self, task: Any) -> None:
        self._sample(role_of(task))
        os.environ["HAL_BENCH_ROLE"] = role_of(task)

    def _sample(self, role: str | None) -> None:
        """Give the processor time since the last sample to the role that ran."""
        if role == self.role:
            return
        now = {node: cpu_seconds(Path(path)) for node, path in json.loads(self.get_option("cpu_files")).items()}
        now[CONTROLLER] = sum(os.times()[:4])
        if self.role is not None:
            for node, seconds in now.items():
                self.cpu[self.role, node] += seconds - self.used[node]
        self.role, self.used = role, now

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
        self._sample(None)
        report = {
            "results": [[role, host, kind, number] for (role, host, kind), number in sorted(self.counts.items())],
            "cpu": [[role, host, seconds] for (role, host), seconds in sorted(self.cpu.items())],
        }
        with open(self.get_option("report"), "w") as stream:
            json.dump(report, stream)


def cpu_seconds(path: Path) -> float:
    """Return what a control group has used: cpuacct.usage of version 1 is nanoseconds, cpu.stat of 2 microseconds."""
    text = path.read_text()
    if path.name == "cpu.stat":
        return int(dict(line.split() for line in text.splitlines())["usage_usec"]) / 1e6
    return int(text) / 1e9


def role_of(task: Any) -> str:
    """The role that a task belongs to, "" for a play's own task."""
    return str(task._role.get_name()) if task._role else ""
