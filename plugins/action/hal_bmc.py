"""Run the module hal_bmc at the controller, with the project's code."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase

from hal_inventory.settings import PROJECT


class ActionModule(ActionBase):
    """The module's arguments are the task's."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module said."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._connection.transport != "local":
            where = "hal_bmc runs at the controller, from which BMCs are reached: delegate_to: localhost"
            return result | {"failed": True, "msg": where}
        places = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
        self._task.environment = [*(self._task.environment or []), {"PYTHONPATH": places}]
        said: dict[str, Any] = self._execute_module("hal_bmc", task_vars=task_vars)
        return result | said
