"""Where file systems and RAID sets are mounted: one at a place, and of two the outer one first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from hal_inventory.checks import Checks, those
from hal_inventory.declared import ClusterFile
from hal_inventory.model import FileSystemUse, Node
from hal_inventory.reader import Path_

_RAID_SET = "raid set"
_BY_ITS_DAEMON = "spectrum_scale"
"""The kind that its own daemon mounts. systemd mounts all others, and of two the outer one first (systemd.mount(5))."""


class _Mount(NamedTuple):
    """Something that is mounted; ``place`` is its number in the order of the model."""

    place: int
    field: Path_
    name: str
    kind: str
    at: str
    nodes: tuple[str, ...]


def check_mounts(
    cluster: ClusterFile, file_systems: Mapping[str, FileSystemUse], nodes: Mapping[str, Node], checks: Checks
) -> None:
    """Note faults: two at one place of a node, and one inside another that may be mounted later."""
    mounts = _mounts(cluster, file_systems, nodes)
    first: dict[tuple[str, str], _Mount] = {}
    for mount in mounts:
        for node in mount.nodes:
            first.setdefault((node, mount.at), mount)
    for mount in mounts:
        met: dict[int, list[str]] = {}
        here_and_above = (mount.at, *map(str, PurePosixPath(mount.at).parents))
        for node in mount.nodes:
            others = (first[node, at] for at in here_and_above if (node, at) in first)
            if other := next((candidate for candidate in others if candidate is not mount), None):
                met.setdefault(other.place, []).append(node)
        for place, on in met.items():
            other = mounts[place]
            if why := _why_not(mount, other):
                checks.fault(mount.field, f"{those(on, 'has', 'have')} {other.name} at {other.at} {why}")


def _mounts(cluster: ClusterFile, file_systems: Mapping[str, FileSystemUse], nodes: Mapping[str, Node]) -> list[_Mount]:
    """Return what is mounted, in the order of the model; RAID sets come first, as they do at boot."""
    mounts: list[_Mount] = []
    for at, raid in enumerate(cluster.raid_sets):
        if raid.mount is not None and raid.node in nodes:
            field: Path_ = ("raid_sets", at, "mount")
            mounts.append(_Mount(len(mounts), field, f"RAID set {raid.name}", _RAID_SET, raid.mount, (raid.node,)))
    for name, use in file_systems.items():
        field = ("file_systems", name, "mount")
        mounts.append(
            _Mount(len(mounts), field, f"file system {name}", use.declared.kind, use.declared.mount, use.mounted_on)
        )
    return mounts


def _why_not(inner: _Mount, outer: _Mount) -> str:
    """Say why a node cannot have both; "" if the outer one is declared first, and is mounted first."""
    if inner.at == outer.at:
        return "already"
    if outer.kind != _RAID_SET and inner.kind == _RAID_SET:
        return "around it, and local disks are mounted before any network's; write another folder"
    if outer.kind != _RAID_SET and _BY_ITS_DAEMON in (inner.kind, outer.kind) and inner.kind != outer.kind:
        return "around it, and Spectrum Scale's daemon and systemd do not wait for each other; write another folder"
    if outer.place > inner.place:
        return "around it; declare that before this one, if it is meant"
    return ""
