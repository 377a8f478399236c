"""Filters of the role ssh."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import ssh


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_ssh_losses": ssh.losses,
                "hal_ssh_undecided": ssh.undecided,
                "hal_ssh_foreign_keys": ssh.foreign_keys,
                "hal_ssh_said": ssh.said,
            }
        )
