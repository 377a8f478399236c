"""Run the module hal_bmc at the controller, with the project's code."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from hal_inventory.settings import PROJECT


class ActionModule(ActionBase):
    """The module's arguments, and ``project``."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module said."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        if self._connection.transport != "local":
            where = "hal_bmc runs at the controller, from which BMCs are reached: delegate_to: localhost"
            return result | {"failed": True, "msg": where}
        arguments = dict(self._task.args, project=str(PROJECT))
        said: dict[str, Any] = self._execute_module("hal_bmc", module_args=arguments, task_vars=task_vars)
        return result | said
