"""Filter for messages: node names as people write them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from hal_inventory.ranges import fold  # found through the line above


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[[Iterable[str]], str]]:
        """Return the filters by name."""
        return {"hal_fold": fold}
