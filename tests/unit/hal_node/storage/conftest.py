"""A node of the role local_storage without a machine: what /sys, mdadm and the other programs of a real one said."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[4]
sys.path.insert(0, str(PROJECT))

from hal_cluster.rules.local_storage.layout import layout  # noqa: E402  found through the line above
from tests.unit.alike import alike  # noqa: E402

alike("hal_node.storage.plan")

plan_module = importlib.import_module("ansible.module_utils.hal_node.storage.plan")


def disks(*names: str) -> dict[str, str]:
    """World-wide names by name."""
    return {name: f"0x5024{at:012x}" for at, name in enumerate(names)}


def raid(name: str, level: str, names: list[str], wwns: Mapping[str, str], **changes: Any) -> dict[str, Any]:
    """A RAID set as lookup('hal', 'raid_sets') gives it."""
    return {
        "node": "data01",
        "name": name,
        "level": level,
        "drives": len(names),
        "controller": "md",
        "chunk_kb": None,
        "file_system": "xfs",
        "mount": f"/{name}",
        "devices": [f"/dev/disk/by-id/wwn-{wwns[one]}" for one in names],
        **changes,
    }


def sets(*raids: dict[str, Any], wwns: Mapping[str, str]) -> list[dict[str, Any]]:
    """What is made of them."""
    return layout(raids, "data01", wwns, {})


def volume(path: str, **changes: Any) -> dict[str, Any]:
    """An empty disk, with changes."""
    return {
        "device": "/dev/" + path.rsplit("/", 1)[-1].replace("wwn-0x5024", "sd"),
        "size": 8_000_000_000_000,
        "model": "ST8000NM0055",
        "serial": "ZA1" + path[-4:],
        "partitions": [],
        "signatures": [],
        "superblock": {},
        "file_system": {},
        "uses": [],
        "blank": True,
        **changes,
    }
