"""Filters of the role compilers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import compilers


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_compiler_modules": compilers.modules,
                "hal_pgi_problems": compilers.pgi_problems,
                "hal_pgi_table": compilers.pgi_table,
                "hal_toolchain_problems": compilers.toolchain_problems,
                "hal_toolchain_table": compilers.toolchain_table,
                "hal_toolchain_undeclared": compilers.toolchain_undeclared,
            }
        )
