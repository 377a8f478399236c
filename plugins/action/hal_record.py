"""Tell a node what the runs did there that it has not been told yet, and keep a copy of its record."""

from __future__ import annotations

from typing import Any

from hal_cluster.audit.sealing import requests
from hal_cluster.audit.store import Store, pack
from hal_cluster.expect.answers import BoundedAction
from hal_inventory.errors import HalError
from hal_inventory.printable import one_line

MOST_PROBLEMS = 200


class ActionModule(BoundedAction):
    """Called by the callback hal_provenance at the end of a run: `run`, and the state folder of each host.

    `rollout`: the one that holds the node; with what is told last, the node is let go (hal_cluster.rollout.holding).
    """

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
        observed, released = 0, False
        try:
            pending = requests(store, host, self._task.args["run"])
            for spool, arguments in pending:
                copy = store.copy(host)
                told = {**arguments, "copy": pack(copy) if copy else ""}
                if spool == pending[-1][0]:
                    told["rollout"] = str(self._task.args.get("rollout") or "")
                reply = self._execute_module(module_name="hal_record", module_args=told, task_vars=variables)
                if reply.get("failed") or "record" not in reply:
                    return {**result, **reply, "failed": True}
                observed = int(reply.get("observed") or 0)
                released = bool(reply.get("released"))
                problems.extend(str(problem) for problem in list(reply.get("problems") or [])[:MOST_PROBLEMS])
                store.keep_record(host, str(reply["record"]), str(reply.get("digest")))
                store.done(spool)
        except (ValueError, OverflowError, TypeError) as error:
            said = f"{host}: the module's answer cannot be used: {type(error).__name__}: {error}"
            return {**result, "failed": True, "msg": one_line(said)}
        except (HalError, OSError) as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False, "observed": observed, "problems": problems, "released": released}
