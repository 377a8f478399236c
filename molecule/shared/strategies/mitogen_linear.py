"""mitogen's strategy of that name, but for one thing: it binds no process to a processor.

With fewer than four processors mitogen binds Ansible, its workers and what they start to one of them, of every run on
the machine to the same one (ansible_mitogen/affinity.py, FixedPolicy): two runs beside each other get half of it each.
"""

from __future__ import annotations

from typing import Any

import ansible_mitogen.affinity

ansible_mitogen.affinity.policy = ansible_mitogen.affinity.Policy()  # which leaves it to the kernel

import ansible_mitogen.loaders  # noqa: E402  looks at the policy
import ansible_mitogen.strategy  # noqa: E402

Base: Any = ansible_mitogen.loaders.strategy_loader.get("linear", class_only=True)


class StrategyModule(ansible_mitogen.strategy.StrategyMixin, Base):  # type: ignore[misc]  # they have no types
    """Ansible's linear strategy, through mitogen."""
