"""Filters of the roles nvidia_driver and cuda: what goes together, decided by hal_cuda."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleFilterError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from hal_cuda import driver, packages, toolkits  # found through the line above
from hal_cuda.errors import HalCudaError


def _in_words(function: Callable[..., Any]) -> Callable[..., Any]:
    """A fault of the table, or a version that is none, is a sentence."""

    @functools.wraps(function)
    def worded(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except HalCudaError as error:
            raise AnsibleFilterError(str(error)) from None

    return worded


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_driver_problems": _in_words(driver.driver_problems),
            "hal_driver_remarks": _in_words(driver.driver_remarks),
            "hal_cuda_problems": _in_words(toolkits.cuda_problems),
            "hal_cuda_remarks": _in_words(toolkits.cuda_remarks),
            "hal_cuda_minimum_driver": _in_words(toolkits.minimum_driver),
            "hal_cuda_packages": _in_words(packages.toolkit_packages),
            "hal_cuda_releases": _in_words(packages.releases),
            "hal_cuda_undeclared": _in_words(packages.undeclared),
            "hal_cuda_with_driver": _in_words(packages.with_driver),
        }
