"""What stands in for a policy: its own values, those that a site has set, and those in effect."""

from __future__ import annotations

import json
import os
from pathlib import Path

FILE = Path(os.environ["SELINUX_STAND_IN"])
Values = dict[str, dict[str, int]]


def load() -> Values:
    """{"policy": {...}, "local": {...}, "live": {...}}."""
    values: Values = json.loads(FILE.read_text())
    return values


def save(values: Values) -> None:
    """Keep them."""
    FILE.write_text(json.dumps(values))
