"""lsblk -P of util-linux 2.23, which has no JSON: disks with their world-wide names."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PAIR = re.compile(r'([A-Z:-]+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Disk:
    """A disk; ``wwn`` is None where the disk, or udev, does not say one."""

    name: str
    bytes: int
    model: str
    serial: str | None
    wwn: str | None


def parse(text: str) -> tuple[Disk, ...]:
    """Return the disks, without partitions, loops and what is made of disks."""
    made: list[Disk] = []
    for line in text.splitlines():
        pairs = {
            name: re.sub(r"\\x([0-9a-f]{2})", lambda hit: chr(int(hit[1], 16)), text)
            for name, text in _PAIR.findall(line)
        }
        size = pairs.get("SIZE", "")
        if pairs.get("TYPE") == "disk" and size.isdigit() and int(size):
            made.append(
                Disk(
                    name=pairs["NAME"],
                    bytes=int(size),
                    model=pairs.get("MODEL", "").strip(),
                    serial=pairs.get("SERIAL", "").strip() or None,
                    wwn=pairs.get("WWN", "").strip().lower() or None,
                )
            )
    return tuple(made)
