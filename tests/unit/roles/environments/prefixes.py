"""Prefixes as tests lay them out: where they are, and what makes one finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DIGEST = "0123456789ab"
NAME = f"1.{DIGEST}"


def prefix(env: dict[str, Any], name: str, **record: Any) -> Path:
    """A prefix, finished if it has a record."""
    path = Path(env["link"]).parent / name
    (path / ".hal").mkdir(parents=True)
    (path / "bin").mkdir()
    if record:
        (path / ".hal/record.json").write_text(json.dumps(record))
        (path / ".hal/activate.lua").touch()
    return path
