"""Compare the declared slots with those ever given, keep them, and then ask the node.

What is compared: hal_cluster.rules.singularity.ledger.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from hal_cluster.expect.answers import BoundedAction
from hal_cluster.rules.singularity.ledger import remember
from hal_inventory.errors import HalError


class ActionModule(BoundedAction):
    """The ledger first: a slot counts as given from the moment at which a node may have it.

    On the first node it is the other way round: that node decides whether the slot is free, and the ledger learns it.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module said; a failure with one line a fault when users.yml contradicts the ledger."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = self._task.args
        users = {user["name"]: {"slot": None, **user} for user in arguments["users"]}
        first, dry = boolean(arguments.get("first", False)), bool(self._task.check_mode)
        try:
            remember(Path(arguments["ledger"]), users, dry=dry or first)
            result |= self._execute_module(task_vars=task_vars)
            if first and not result.get("failed"):
                remember(Path(arguments["ledger"]), users, dry=dry)
        except HalError as error:
            return result | {"failed": True, "changed": False, "msg": str(error)}
        return result
