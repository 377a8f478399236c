"""Captures: what tools printed (captures/README.md), alone and put together to what one machine says."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
CAPTURES = Path(__file__).parent / "captures"
Said = dict[str, Any]


@pytest.fixture
def captured() -> Callable[[str], str]:
    """Return a function: a file of captures/ -> its text."""
    return lambda name: (CAPTURES / name).read_text()


@pytest.fixture
def machine() -> Callable[..., Said]:
    """Return a function: host, outputs by name and files -> the document that the script would print there."""

    def make(host: str, files: dict[str, str] | None = None, /, **outputs: str) -> Said:
        return {
            "format": 1,
            "kind": "node",
            "host": host,
            "taken_at": "2026-11-21T08:00:00Z",
            "outputs": {
                name: {"argv": [name], "status": 0, "stdout": text, "stderr": ""} for name, text in outputs.items()
            },
            "files": files or {},
        }

    return make


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, Said], str]:
    """Return a function: writes a document as a file, and returns its path."""

    def put(name: str, document: Said) -> str:
        (tmp_path / name).write_text(json.dumps(document))
        return str(tmp_path / name)

    return put
