"""Filters of the roles nfs_server and nfs_client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hal_cluster.filters import worded
from hal_cluster.rules import nfs


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return worded(
            {
                "hal_nfs_exports": nfs.exports,
                "hal_nfs_export_problems": nfs.export_problems,
                "hal_nfs_exports_text": nfs.exports_text,
                "hal_nfs_mounts": nfs.mounts,
                "hal_nfs_mount_problems": nfs.mount_problems,
                "hal_unit_name": nfs.unit_name,
            }
        )
