"""Filters of the role nvidia_driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import nvidia_driver


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_nvidia_rows_unlike": nvidia_driver.rows_unlike,
                "hal_udev_without_memory": nvidia_driver.udev_without_memory,
            }
        )
