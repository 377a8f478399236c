"""Filters of the roles nvidia_driver and cuda: what goes together, decided by hal_cluster.rules.cuda."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules.cuda import driver, packages, toolkits


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_driver_problems": driver.driver_problems,
                "hal_driver_remarks": driver.driver_remarks,
                "hal_cuda_problems": toolkits.cuda_problems,
                "hal_cuda_remarks": toolkits.cuda_remarks,
                "hal_cuda_minimum_driver": toolkits.minimum_driver,
                "hal_cuda_packages": packages.toolkit_packages,
                "hal_cuda_modules": packages.modules,
                "hal_cuda_releases": packages.releases,
                "hal_cuda_undeclared": packages.undeclared,
                "hal_cuda_with_driver": packages.with_driver,
            }
        )
