"""How rollouts of the virtual HAL talk to nodes: with mitogen, which keeps one Python a node instead of one a task.

By a strategy of our own (strategies), which is mitogen's but that it leaves processes to the kernel's scheduler.

Opt-in for real sites, and proven equal here: what mitogen rolled out, plain Ansible finds nothing to change in
(tests/rollout). HAL_STRATEGY=linear runs everything plainly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path


def environment() -> Mapping[str, str]:
    """Variables for ansible-playbook; none when HAL_STRATEGY says linear or mitogen is not installed."""
    if os.environ.get("HAL_STRATEGY") == "linear" or find_spec("ansible_mitogen") is None:
        return {}
    return {
        "ANSIBLE_STRATEGY_PLUGINS": str(Path(__file__).parents[1] / "strategies"),
        "ANSIBLE_STRATEGY": "mitogen_linear",
    }


def chosen() -> bool:
    """Whether a scenario's own rollouts go through mitogen: its tests' do then, too."""
    return os.environ.get("ANSIBLE_STRATEGY", "").startswith("mitogen")
