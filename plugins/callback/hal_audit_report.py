"""Print what an audit found on all nodes, once and at its end."""

from __future__ import annotations

import sys
from typing import Any

from ansible.plugins.callback import CallbackBase

from hal_cluster.audit import active
from hal_cluster.audit.collect import Collector

DOCUMENTATION = r"""
name: hal_audit_report
type: aggregate
short_description: Print what an audit found, once for all nodes
description:
  - Gathers the results of all tasks of M(hal_audit) in a run, nodes that cannot be reached included, and prints one
    report at its end. In runs without such a task it does nothing.
  - The result is also written to C(hal_audit_dir)/last.json.
  - C(hal-audit run) reads the result from the file that C(HAL_AUDIT_DOCUMENT) names, and prints it itself.
requirements: [Enabled in C(callbacks_enabled) of ansible.cfg]
author: HAL toolkit
"""


class CallbackModule(CallbackBase):
    """Thin: hal_cluster.audit.collect gathers, hal_cluster.audit.report words it."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "hal_audit_report"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        """Nothing gathered yet."""
        super().__init__()
        self.collector = Collector()
        active.takes_part(self.CALLBACK_NAME)

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Which nodes will be looked at."""
        self.collector.play_starts(play)

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """What all nodes share is read before they are looked at."""
        self.collector.task_starts(task)

    def v2_runner_on_ok(self, result: Any) -> None:
        """A node is as declared."""
        self.collector.answered(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A node is not as declared."""
        self.collector.answered(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A node did not answer."""
        self.collector.answered(result, unreachable=True)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The report."""
        text, warning = self.collector.finish(sys.stdout)
        if text:
            self._display.display(f"\n{text}")
        if warning:
            self._display.warning(warning, formatted=True)
