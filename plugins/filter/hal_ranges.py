"""Filter for messages: node names as people write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hal_inventory.ranges import fold


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[[Iterable[str]], str]]:
        """Return the filters by name."""
        return {"hal_fold": fold}
