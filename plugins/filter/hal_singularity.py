"""Filters of the role singularity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules.singularity import conf, ledger, registry


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_container_problem": registry.name_problem,
                "hal_registry_taken": registry.taken,
                "hal_singularity_conf": conf.text,
                "hal_singularity_conf_problems": conf.problems,
                "hal_slot_problems": ledger.slot_problems,
                "hal_slots": ledger.slots,
                "hal_slots_new": ledger.slots_new,
                "hal_subid_line": ledger.subid_line,
            }
        )
