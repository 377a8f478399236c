"""A store of archives, and what a test has in it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

DAY = 86400
NOON = int(time.mktime((2026, 11, 21, 12, 0, 0, 0, 0, -1)))  # a Saturday


def settings(folder: Path) -> dict[str, Any]:
    """Make a store in a folder; return its settings."""
    (folder / "store").mkdir()
    return {"root": str(folder / "store"), "reserve_mb": 0, "keep_daily": 3, "keep_weekly": 2, "quota_mb": 9}


def name(number: int, node: str = "hal01") -> str:
    """The name of an archive, by the second of its minute."""
    return f"{node}-20261121T0230{number:02d}Z.tar.gz.gpg"


def has(programs: Any, config: dict[str, Any], *stamps: int, damaged: tuple[int, ...] = ()) -> Path:
    """Archives of these times are there; return their folder."""
    folder = Path(config["root"]) / "hal01"
    folder.mkdir(exist_ok=True)
    for number, stamp in enumerate(stamps):
        beside = {"archive": name(number), "at": stamp, "sha256": "", "size": 0, "word": ""}
        (folder / name(number)).touch()
        programs.common.save(f"{folder / name(number)}.json", dict(beside, damaged="x" if number in damaged else ""))
    return folder


def numbers(folder: Path) -> list[int]:
    """Which archives are there."""
    return [number for number in range(60) if (folder / name(number)).exists()]
