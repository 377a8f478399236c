"""Compare the declared slots with those ever given, keep them, and then ask the node.

What is compared: hal_singularity.ledger.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from hal_singularity.ledger import LedgerError, remember  # noqa: E402  found only now


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible has no types
    """The ledger first: a slot counts as given from the moment at which a node may have it."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module said; a failure with one line a fault when users.yml contradicts the ledger."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        users = {user["name"]: {"slot": None, **user} for user in self._task.args["users"]}
        try:
            remember(Path(self._task.args["ledger"]), users, dry=bool(self._task.check_mode))
        except LedgerError as error:
            return result | {"failed": True, "changed": False, "msg": str(error)}
        return result | self._execute_module(task_vars=task_vars)
