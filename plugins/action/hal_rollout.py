"""Hold a node for this rollout, or ask who does, and judge here whether that rollout still lives."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from hal_cluster.expect.answers import BoundedAction
from hal_cluster.rollout import words
from hal_cluster.rollout.processes import Here, Life, judge


class ActionModule(BoundedAction):
    """The node tells who holds it; only a controller can see whether that process is there."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module said, `taken_over` where somebody was replaced, `refused` where somebody holds it."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        taken_over = ""
        reply = self._ask(arguments, task_vars)
        if reply.get("failed") or arguments.get("state") == "released":
            return {**result, **reply}
        other = reply.get("other")
        if not isinstance(other, dict) or (other and not isinstance(other.get("mark"), str)):
            return {**result, "failed": True, "msg": "the module's answer cannot be used"}
        if other and not reply.get("held"):
            life = judge(other, Here.look())
            permitted = life is Life.UNKNOWN and boolean(arguments.get("take_over", False), strict=False)
            if life is not Life.OVER and not permitted:
                return {**result, "failed": True, "refused": True, "msg": words.refused(other, life)}
            if arguments["state"] == "free":
                return {**result, "changed": False}
            reply = self._ask({**arguments, "former": other["mark"]}, task_vars)
            if reply.get("failed"):
                return {**result, **reply}
            if not reply.get("held"):
                return {**result, "failed": True, "refused": True, "msg": "another rollout has just taken it"}
            taken_over = words.taken_over(other, life)
        return {**result, "changed": False, "taken_over": taken_over}

    def _ask(self, arguments: dict[str, Any], variables: dict[str, Any] | None) -> dict[str, Any]:
        reply: dict[str, Any] = self._execute_module("hal_rollout", module_args=arguments, task_vars=variables)
        return reply
