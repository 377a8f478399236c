"""Tell a node what the runs did there that it has not been told yet, and keep a copy of its record."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

PROJECT = str(Path(__file__).resolve().parents[2])
if PROJECT not in sys.path:
    sys.path.append(PROJECT)

from hal_audit.errors import AuditError  # noqa: E402  found through the lines above
from hal_audit.sealing import requests  # noqa: E402
from hal_audit.store import Store, pack  # noqa: E402


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible has no types
    """Called by the callback hal_provenance at the end of a run: `run`, and the state folder of each host."""

    TRANSFERS_FILES = False
    _supports_check_mode = False
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return how many resources the node observed; a spool goes when the node has it."""
        variables = task_vars or {}
        result: dict[str, Any] = super().run(tmp, variables)
        host = str(variables["inventory_hostname"])
        store = Store(self._task.args["folders"][host])
        problems: list[str] = []
        observed = 0
        try:
            for spool, arguments in requests(store, host, self._task.args["run"]):
                copy = store.record(host)
                told = {**arguments, "copy": pack(copy.read_bytes()) if copy.is_file() else ""}
                reply = self._execute_module(module_name="hal_record", module_args=told, task_vars=variables)
                if reply.get("failed") or "record" not in reply:
                    return {**result, **reply, "failed": True}
                store.keep_record(host, reply["record"], reply["digest"])
                store.done(spool)
                observed = reply.get("observed", 0)
                problems.extend(reply.get("problems") or [])
        except (AuditError, OSError) as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False, "observed": observed, "problems": problems}
