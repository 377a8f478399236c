"""Filters of the role notebooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import notebooks


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_kernel_files": notebooks.kernel_files,
                "hal_kernel_problems": notebooks.kernel_problems,
                "hal_kernel_table": notebooks.kernel_table,
                "hal_notebook_modules": notebooks.modules,
            }
        )
