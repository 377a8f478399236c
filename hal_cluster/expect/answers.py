"""What a node answers to a module, before Ansible makes anything of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase

from hal_inventory.bounded import BoundError, check, deeper, limited


class BoundedAction(ActionBase):  # type: ignore[misc]  # Ansible has no types
    """An action whose modules' answers are bounded: one that is over a bound is not read, and fails in one line."""

    def _parse_returned_data(self, res: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a module said, as ActionBase does. Every answer comes through here."""
        try:
            for stream in ("stdout", "stderr"):
                limited(res.get(stream) or "")
            data: dict[str, Any] = super()._parse_returned_data(res)
            check(data)
        except BoundError as error:
            return {"failed": True, "msg": f"it answered {error}"}
        except RecursionError:
            return {"failed": True, "msg": f"it answered {deeper()}"}
        return data
