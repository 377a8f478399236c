"""Keep what is on a node before roles change it: hal_cluster.rollout.naming works out here what that is."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError

from hal_cluster.audit.store import Store, pack
from hal_cluster.expect.answers import BoundedAction
from hal_cluster.rollout import naming
from hal_inventory.errors import HalError

NOTHING = {"changed": False, "kept": [], "lost": [], "uncovered": []}


class ActionModule(BoundedAction):
    """Asks no node to keep anything whose record covers its roles."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module returns, and `uncovered`."""
        variables = task_vars or {}
        result: dict[str, Any] = super().run(tmp, variables)
        host, arguments = str(variables["inventory_hostname"]), dict(self._task.args)
        uncovered: list[str] = []
        try:
            store = Store(str(self._templar.template(variables["hal_audit_dir"])))
            copy = store.copy(host)
            things = arguments.pop("things", None)
            if things:
                role = self._task._role.get_name() if self._task._role else ""
                arguments["resources"] = [{"resource": str(thing), "declared": {}, "role": role} for thing in things]
            elif arguments.get("state") == "kept" and "resources" not in arguments:
                only = arguments.pop("roles", None)
                roles = [role for role in self._roles(host, variables, store, copy) if not only or role.name in only]
                if not roles:
                    return {**result, **NOTHING}
                wanted = naming.wanted(roles, variables["hostvars"]._inventory.get_host(host))
                arguments["resources"], uncovered = wanted.resources, wanted.uncovered
            reply = self._execute_module(
                module_name="hal_originals",
                module_args={**arguments, "node": host, "copy": pack(copy) if copy else ""},
                task_vars=variables,
            )
            if "record" in reply and "digest" in reply:
                store.keep_record(host, str(reply.pop("record")), str(reply.pop("digest")))
        except (HalError, AnsibleError, OSError, ValueError, KeyError) as error:
            return {**result, "failed": True, "msg": f"what will be replaced on {host} cannot be told: {error}"}
        return {**result, **reply, **({"uncovered": uncovered} if arguments.get("state") == "kept" else {})}

    def _roles(self, host: str, variables: dict[str, Any], store: Store, copy: bytes) -> list[Any]:
        """Roles of the run that the node's record does not cover."""
        inventory, manager = variables["hostvars"]._inventory, variables["hostvars"]._variable_manager
        every = naming.RUNNING.roles(self._loader, manager)
        return naming.unrecorded(naming.of_host(every, inventory.get_host(host)), variables, store, copy)
