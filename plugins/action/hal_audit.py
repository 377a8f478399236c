"""Audit one node: ask it about its record and all expectations in one call, and make findings of the answer."""

from __future__ import annotations

import functools
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.utils.unsafe_proxy import wrap_var

from hal_cluster.audit import active
from hal_cluster.audit.examine import Examination
from hal_cluster.audit.findings import CLEAN, Finding, exit_status
from hal_cluster.audit.plan import planned
from hal_cluster.audit.redeclare import declared_now
from hal_cluster.expect.answers import BoundedAction
from hal_inventory.errors import HalError

ARGUMENTS = {
    "node": {"type": "str"},
    "roles": {"type": "list", "elements": "str", "default": []},
    "takeover": {"type": "bool", "default": False},
}


class ActionModule(BoundedAction):
    """Only looks, so it does the same in check mode. The findings are for the callback hal_audit_report."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return ok for a clean node; else failed with one short line, or unreachable."""
        variables = task_vars or {}
        result: dict[str, Any] = super().run(tmp, variables)
        _valid, options = self.validate_argument_spec(argument_spec=ARGUMENTS)
        if why := active.problem("hal_audit_report"):
            return {**result, "failed": True, "msg": why}
        host = str(variables["inventory_hostname"])
        examination = Examination(host, self._loader, variables, self._task.get_vars(), tuple(options["roles"]))
        examination.takeover = options["takeover"]
        examination.planner = functools.partial(planned, self._task, host, texts=bool(self._task.diff))
        unreachable = False
        try:
            arguments = examination.arguments()
            reply = self._execute_module(module_name="hal_audit", module_args=arguments, task_vars=variables)
            payload = examination.payload(reply, None if examination.takeover else declared_now(self._task, host))
        except AnsibleConnectionFailure as error:
            unreachable = True
            payload = examination.unreachable(str(error.message))
        except (HalError, AnsibleError, OSError) as error:
            payload = examination.unreadable(str(error))
        if unreachable:
            result.update(unreachable=True)
        elif exit_status(map(Finding.read, payload["findings"]), nodes=1) != CLEAN:
            result.update(failed=True)
        number = len(payload["findings"])
        words = f"{number} finding{'' if number == 1 else 's'}, see the report below" if number else "as declared"
        # Ansible prints what failed as a whole, but not how it was called: the report is printed once for all nodes.
        return wrap_var({**result, "changed": False, "msg": words, "invocation": {"audit": payload}})  # type: ignore[no-any-return]
