"""Ask a node whether a change of its interfaces can be kept, by one new connection after the other.

A connection that breaks in the middle of a change, or is not answered, is not a failure here: the next may get in.
"""

from __future__ import annotations

import time
from typing import Any

from ansible.errors import AnsibleConnectionFailure

from hal_cluster.expect.answers import BoundedAction

PAUSE_SECONDS = 1


class ActionModule(BoundedAction):
    """Everything but phase=confirm is the module's alone."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module said; of a confirmation, once it is decided or the time is over."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        asked = self._task.args
        if asked["phase"] != "confirm" or self._task.check_mode:
            result.update(self._execute_module(task_vars=task_vars))
            return result
        end = time.monotonic() + float(asked.get("wait_seconds", 105))
        answer: dict[str, Any] = {"changed": False, "confirmed": False, "got_in": False}
        while time.monotonic() < end:
            time.sleep(PAUSE_SECONDS)
            try:
                self._connection.reset()  # a connection that stays open, as Mitogen's, proves nothing
                said = self._execute_module(task_vars=task_vars)
            except AnsibleConnectionFailure:
                answer["got_in"] = False
                continue
            if said.get("confirmed") or said.get("failed"):
                result.update(said)
                return result
            answer["got_in"] = True
        return result | answer
