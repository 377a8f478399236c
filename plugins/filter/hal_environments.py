"""Filters of roles with environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import environments


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_environment_declared": environments.declared,
                "hal_environment_modules": environments.modules,
                "hal_environment_retired": environments.retired,
            }
        )
