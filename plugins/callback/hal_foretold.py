"""Ansible callback plugin: what a check leaves open. Decided in hal_cluster.rollout.foretold."""

from __future__ import annotations

from typing import Any

from ansible.plugins.callback import CallbackBase

from hal_cluster.audit.observer import in_check_mode
from hal_cluster.rollout.foretold import Foretold

DOCUMENTATION = r"""
name: hal_foretold
type: notification
short_description: What a check leaves open
description:
  - >-
    A check makes nothing, so it leaves out the steps that need what an earlier one would have made. At the end of a run
    with C(--check) this says how many they are, by role, and on which nodes.
  - Without C(--check) it does nothing.
requirements: [Enabled in C(callbacks_enabled) of ansible.cfg]
author: HAL toolkit
"""


class CallbackModule(CallbackBase):
    """Thin: hal_cluster.rollout.foretold decides."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "hal_foretold"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.disabled = not in_check_mode()
        self._foretold = Foretold()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """A play begins."""
        self._foretold.begins(play)

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task ended well."""
        if result.is_changed():
            self._foretold.changes(result._task, result._host.get_name())

    def v2_runner_on_skipped(self, result: Any) -> None:
        """A task was left out."""
        if "results" not in result._result:
            self._foretold.leaves_out(result._task, result._host, result._result)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        """An item of a loop was left out."""
        self._foretold.leaves_out(result._task, result._host, result._result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The run is over."""
        for line in self._foretold.lines():
            self._display.display(line)
