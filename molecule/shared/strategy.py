"""How rollouts of the virtual HAL talk to nodes: with mitogen, which keeps one Python a node instead of one a task.

Not for making nodes: mitogen binds itself, and with it the containers it would start, to one processor.

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
    found = find_spec("ansible_mitogen")
    if os.environ.get("HAL_STRATEGY") == "linear" or found is None or found.origin is None:
        return {}
    return {
        "ANSIBLE_STRATEGY_PLUGINS": str(Path(found.origin).parent / "plugins" / "strategy"),
        "ANSIBLE_STRATEGY": "mitogen_linear",
    }


def chosen() -> bool:
    """Whether a scenario's own rollouts go through mitogen: its tests' do then, too."""
    return os.environ.get("ANSIBLE_STRATEGY", "").startswith("mitogen")
