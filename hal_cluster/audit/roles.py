"""The project's own roles, by name: no other becomes a word of a command, whatever a record says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

ROLES = Path(__file__).resolve().parents[2] / "roles"


@cache
def names() -> tuple[str, ...]:
    """Return the names of all that promise something, sorted: each role of this project does."""
    return tuple(sorted(path.parent.name for path in ROLES.glob("*/expect.yml")))
