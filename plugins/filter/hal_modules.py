"""Filters for modules of Lmod."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules.lmod import declared, files, lua


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_module_problems": declared.problems,
                "hal_module_files": files.files,
                "hal_module_roots": files.roots,
                "hal_lua_text": lua.quoted,
            }
        )
