"""Filters of the role spectrum_scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import spectrum_scale


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_scale_attributes": spectrum_scale.attributes_of,
                "hal_scale_classes": spectrum_scale.classes_of,
                "hal_scale_problems": spectrum_scale.problems,
                "hal_scale_memory_problem": spectrum_scale.memory_problem,
                "hal_scale_remark": spectrum_scale.remark,
                "hal_scale_member": spectrum_scale.member,
                "hal_scale_addresses": spectrum_scale.addresses,
            }
        )
