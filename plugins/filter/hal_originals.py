"""Filters of playbooks/originals.yml and playbooks/giveback.yml."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.audit import originals
from hal_cluster.filters import worded


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_originals_lost": originals.lost_lines,
                "hal_originals_plan": originals.plan_of,
            }
        )
