"""Filters for modules: faults of declared ones, their files, their needs; decided by hal_cluster.rules.lmod."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def _of(module: str, name: str) -> Callable[..., Any]:
    """A function of hal_cluster.rules.lmod, loaded when called: Ansible loads every filter plugin in each worker."""

    def called(*arguments: Any, **named: Any) -> Any:
        return getattr(import_module(f"hal_cluster.rules.lmod.{module}"), name)(*arguments, **named)

    return called


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_module_problems": _of("declared", "problems"),
            "hal_module_files": _of("files", "files"),
            "hal_module_roots": _of("files", "roots"),
            "hal_lua_text": _of("lua", "quoted"),
        }
