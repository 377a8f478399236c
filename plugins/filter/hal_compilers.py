"""Filters of the role compilers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from hal_cluster.rules import compilers  # found through the line above


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_compiler_modules": compilers.modules,
            "hal_pgi_problems": compilers.pgi_problems,
            "hal_pgi_table": compilers.pgi_table,
            "hal_toolchain_problems": compilers.toolchain_problems,
            "hal_toolchain_table": compilers.toolchain_table,
            "hal_toolchain_undeclared": compilers.toolchain_undeclared,
        }
