"""Ask roles what they refuse, for all hosts at once, without any of them. Decided in hal_cluster.rollout.refusals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase

from hal_cluster.rollout import refusals
from hal_inventory.settings import PROJECT

SITE = PROJECT / "playbooks" / "site.yml"
VALIDATE = PROJECT / "playbooks" / "validate.yml"

ASKED = "hal_validated"
"""What validate.yml registers. It has, as `asked`, the hosts for which each role was asked before the first change."""


class ActionModule(ActionBase):
    """In a role it asks that one for the host of the task; outside, all roles of the playbook for their hosts."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return remarks as warnings; failed with one line a refusal and role."""
        variables = task_vars or {}
        result: dict[str, Any] = {**super().run(tmp, variables), "changed": False}
        self.validate_argument_spec(argument_spec={})
        inventory = variables["hostvars"]._inventory
        if self._task._role is None:
            roles = refusals.roles_of(_playbooks(), self._loader, variables["hostvars"]._variable_manager)
            said, asked = refusals.ask(roles, inventory)
            text = f"roles asked: {len(roles)}"
        else:
            own = refusals.Role(self._task._role._play, self._task._role, self._task)
            hosts = self._not_asked(own, variables)
            said, asked = [line for name in hosts for line in own.says(inventory.get_host(name))], None
            text = "asked" if hosts else f"{own.name} was asked before the first change"
        result["warnings"] = refusals.lines((line for line in said if not line.refused), PROJECT)
        if refused := refusals.lines((line for line in said if line.refused), PROJECT):
            return {**result, "failed": True, "msg": "\n".join(refused)}
        return {**result, "msg": text, **({"asked": asked} if asked is not None else {})}

    def _not_asked(self, own: refusals.Role, variables: Mapping[str, Any]) -> list[str]:
        """The hosts for which the role is to be asked now. With other variables than its play's it was never asked."""
        hosts = variables["ansible_play_hosts"] if self._task.run_once else [variables["inventory_hostname"]]
        listed = any(own.role is role for role in own.play.roles) and not self._task.get_vars()
        asked = variables.get(ASKED, {}).get("asked", {}).get(own.name, ()) if listed else ()
        return [name for name in hosts if name not in asked]


def _playbooks() -> list[str]:
    """The playbooks that run; validate.yml alone is about the site."""
    running: list[str] = list(context.CLIARGS.get("args") or [])
    return [str(SITE)] if [Path(playbook).resolve() for playbook in running] == [VALIDATE] else running
