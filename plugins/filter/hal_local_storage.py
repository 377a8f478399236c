"""Filters of the role local_storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules.local_storage import scratch


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_scratch_problem": scratch.problem,
                "hal_scratch_served": scratch.served,
            }
        )
