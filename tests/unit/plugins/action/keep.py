"""Write a value to a file of the test's as JSON, by the controller: a copy would be two modules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible is not typed
    """Arguments: value, path."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Write it, also in check mode."""
        del tmp, task_vars
        Path(self._task.args["path"]).write_text(json.dumps(self._task.args["value"]))
        return {"changed": False}
