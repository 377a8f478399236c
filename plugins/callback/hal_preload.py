"""Ansible callback plugin: what plugins load is loaded once, not by each of the processes that Ansible starts."""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: hal_preload
type: notification
short_description: What filters and lookups load is loaded once
description:
  - Ansible starts a process for each task on each host, and what that loads is forgotten with it.
  - >-
    Before the first play that has roles, this loads what their filters and lookups are slow to load, so that each
    process has it from the beginning. Nothing else changes, and nothing breaks without it.
requirements: [Enabled in C(callbacks_enabled) of ansible.cfg]
author: HAL toolkit
"""

LOADED = (
    "hal_cluster.rules.cuda.table",
    "hal_inventory.derive.slices",
    "hal_cluster.rules.local_storage.layout",
)
"""What checks data with pydantic, which is slow to load."""


class CallbackModule(CallbackBase):
    """Loads when the first roles come."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "hal_preload"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Load, and have the collector of garbage leave it alone: each process would copy what that looks through."""
        if play.get_roles() and LOADED[0] not in sys.modules:
            for name in LOADED:
                importlib.import_module(name)
            gc.freeze()
