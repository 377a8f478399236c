"""Filters of the role munge."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from hal_cluster.rules import munge  # found through the line above


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_munge_key_problem": munge.key_problem,
            "hal_munge_keys": munge.keys,
        }
