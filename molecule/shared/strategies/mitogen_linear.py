"""mitogen's strategy of that name, but that it binds no process to a processor, and looks for collections once.

With two processors mitogen binds Ansible, its workers and what they start to one of them, of every run on the machine
to the same one (ansible_mitogen/affinity.py, FixedPolicy): two runs beside each other get half of it each.
And it looks through all collections in each process that calls a module of one (ansible_mitogen/planner.py,
_load_collections), which Ansible starts for each task on each host: what was loaded before those is there in each.
"""

from __future__ import annotations

from typing import Any

import ansible_mitogen.affinity
import ansible_mitogen.loaders
import ansible_mitogen.strategy
from ansible.collections.list import list_collection_dirs

ansible_mitogen.affinity.policy = ansible_mitogen.affinity.Policy()  # which leaves it to the kernel

Base: Any = ansible_mitogen.loaders.strategy_loader.get("linear", class_only=True)


class StrategyModule(ansible_mitogen.strategy.StrategyMixin, Base):  # type: ignore[misc]  # they have no types
    """Ansible's linear strategy, through mitogen."""

    def run(self, *arguments: Any, **named: Any) -> Any:
        """As mitogen's, with all collections loaded."""
        list(list_collection_dirs())
        return super().run(*arguments, **named)
