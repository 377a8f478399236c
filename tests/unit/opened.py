"""What a process has open: one that waits for a lock has its file."""

from __future__ import annotations

import os
from pathlib import Path


def opened(number: int, path: Path) -> bool:
    """Whether a process has a file open now; a process that has ended has none."""
    try:
        return any(os.path.realpath(one) == str(path) for one in Path(f"/proc/{number}/fd").iterdir())
    except OSError:
        return False
