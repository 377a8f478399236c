"""Images that a site sealed, for tests of who checks them, and what damages one."""

from __future__ import annotations

import importlib
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hal_cluster.provision.images import seal

provision_images: Any = importlib.import_module("provision_images")
WHEN = datetime(2026, 11, 22, 10, 0, tzinfo=timezone.utc)


def image(into: Path, key: Path, version: str = "20261122", **changes: Any) -> Path:
    into.mkdir(exist_ok=True)
    root = into / "root.tar.xz"
    root.write_bytes(b"root of " + version.encode() * 1000)
    given: dict[str, Any] = {
        "name": "compute",
        "version": version,
        "arch": "ppc64le",
        "kernel": "4.18.0-80.7.2.el7",
        "packages": ["kernel-4.18.0-80.7.2.el7.ppc64le", "bash-4.2.46-33.el7.ppc64le"],
        "created": WHEN,
    }
    return seal(root, into, key, **(given | changes))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
