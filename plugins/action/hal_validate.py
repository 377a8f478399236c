"""Ask roles what they refuse, for all hosts at once and without any of them. Decided in hal_rollout.refusals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase

PROJECT = Path(__file__).resolve().parents[2]
if str(PROJECT) not in sys.path:
    sys.path.append(str(PROJECT))

from hal_rollout import refusals  # noqa: E402  found through the lines above

ASKED = "hal_validated"
"""The fact that has for each role the hosts for which it was asked before the first change of the run."""


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible has no types
    """In a role it asks that one for the hosts of the play; outside, all roles of the playbook for theirs."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return remarks as warnings; failed with one line a refusal and role."""
        variables = task_vars or {}
        result: dict[str, Any] = super().run(tmp, variables)
        self.validate_argument_spec(argument_spec={})
        inventory, manager = variables["hostvars"]._inventory, variables["hostvars"]._variable_manager
        own = self._task._role
        if own is None:
            running, site = context.CLIARGS.get("args") or [], [str(PROJECT / "playbooks" / "site.yml")]
            # playbooks/validate.yml alone lists none, and is about the site.
            roles = refusals.roles_of(running, self._loader, manager) or refusals.roles_of(site, self._loader, manager)
            said = refusals.ask(roles, inventory)
        elif set(variables["ansible_play_hosts"]) <= set(variables.get(ASKED, {}).get(own.get_name(), ())):
            return {**result, "changed": False, "msg": f"{own.get_name()} was asked before the first change"}
        else:
            roles = [refusals.Role(own._play, own)]
            said = refusals.ask(roles, inventory, variables["ansible_play_hosts"])
        result["warnings"] = refusals.lines((one for one in said if not one.refused), PROJECT)
        if refused := refusals.lines((one for one in said if one.refused), PROJECT):
            return {**result, "failed": True, "msg": "\n".join(refused)}
        asked = {} if own else {"ansible_facts": {ASKED: refusals.asked(roles, inventory)}}
        return {**result, **asked, "changed": False, "msg": f"roles asked: {len(roles)}"}
