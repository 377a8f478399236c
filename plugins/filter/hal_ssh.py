"""Filters of the role ssh."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from hal_cluster.filters import worded  # found through the line above
from hal_cluster.rules import ssh


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {
            "hal_ssh_losses": worded(ssh.losses),
            "hal_ssh_undecided": worded(ssh.undecided),
            "hal_ssh_foreign_keys": ssh.foreign_keys,
            "hal_ssh_said": ssh.said,
        }
