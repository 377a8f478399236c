"""Filters of the roles nvidia_driver and cuda: what goes together, decided by hal_cluster.rules.cuda."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from hal_cluster.filters import worded


def _of(module: str, name: str) -> Callable[..., Any]:
    """A function of hal_cluster.rules.cuda; a fault of the table, or a version that is none, is a sentence.

    Loaded when it is called: Ansible loads every filter plugin anew in each of its workers, and the table's checks
    (pydantic) took more processor time that way than all else.
    The sentence of a fault is an AnsibleFilterError.
    """

    def ask(*arguments: Any, **named: Any) -> Any:
        return worded(getattr(import_module(f"hal_cluster.rules.cuda.{module}"), name))(*arguments, **named)

    return ask


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_driver_problems": _of("driver", "driver_problems"),
            "hal_driver_remarks": _of("driver", "driver_remarks"),
            "hal_cuda_problems": _of("toolkits", "cuda_problems"),
            "hal_cuda_remarks": _of("toolkits", "cuda_remarks"),
            "hal_cuda_minimum_driver": _of("toolkits", "minimum_driver"),
            "hal_cuda_packages": _of("packages", "toolkit_packages"),
            "hal_cuda_modules": _of("modules", "modules"),
            "hal_cuda_releases": _of("packages", "releases"),
            "hal_cuda_undeclared": _of("packages", "undeclared"),
            "hal_cuda_with_driver": _of("packages", "with_driver"),
        }
