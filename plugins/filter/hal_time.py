"""Filters of the role time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import time


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_chrony_problems": time.chrony_problems,
                "hal_time_foreign": time.foreign,
            }
        )
