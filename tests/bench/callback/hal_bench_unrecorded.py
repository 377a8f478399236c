"""Has our playbooks run unrecorded: for what tests/bench measures without, and for tests/unit/playing.py."""

from __future__ import annotations

from ansible.plugins.callback import CallbackBase

from hal_cluster.audit import active

DOCUMENTATION = """
name: hal_bench_unrecorded
type: aggregate
short_description: Have our playbooks run unrecorded
description: [Stands for the callbacks without which our playbooks refuse to run, and does nothing.]
author: HAL toolkit
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """Nothing but its name."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "hal_bench_unrecorded"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        """Take part in place of the others."""
        super().__init__()
        for name in active.NEEDED["rollout"]:
            active.takes_part(name)
