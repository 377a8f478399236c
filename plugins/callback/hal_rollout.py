"""Ansible callback plugin: one rollout a node at a time, and a killed one leaves no processes."""

from __future__ import annotations

import atexit
from typing import Any

from ansible.plugins.callback import CallbackBase

from hal_cluster.audit import active
from hal_cluster.audit.observer import in_check_mode
from hal_cluster.rollout import holding, workers

DOCUMENTATION = r"""
name: hal_rollout
type: notification
short_description: One rollout a node at a time
description:
  - >-
    Before the first play that lists roles, or has the variable C(rollout_holds), one call a node notes there who rolls
    it out. A node that another rollout holds ends the run before anything is changed.
  - At the end each node is let go, by the call that records what was managed (C(hal_provenance)) or by one of its own.
  - >-
    A rollout whose process at this controller is gone is taken over. One of another controller is refused, unless
    C(-e rollout_take_over=true) says that it is gone.
  - What a killed rollout has left at this controller is ended by the next. Workers end with their parent.
  - In check mode nothing is held.
  - A play that lists roles leaves out the hosts on which they do not act (C(managed_roles)), in check mode as well.
requirements: [Enabled in C(callbacks_enabled) of ansible.cfg, behind C(hal_provenance)]
author: HAL toolkit
"""


class CallbackModule(CallbackBase):
    """Thin: hal_cluster.rollout.holding decides."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "hal_rollout"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        """Stand where workers and plays begin."""
        super().__init__()
        workers.end_with_their_parent()
        self.disabled = in_check_mode()
        holding.stand_before_plays(holding.CURRENT, holds=not self.disabled)
        if not self.disabled:
            atexit.register(holding.CURRENT.warn)
        active.takes_part(self.CALLBACK_NAME)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host does not answer: it is not asked at the end."""
        if not result._task_fields.get("ignore_unreachable"):
            holding.CURRENT.lost(result._host.get_name())

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The run is over, well or not."""
        holding.CURRENT.end()
