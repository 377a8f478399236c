"""The inventory as Ansible reads it: which nodes, and where the controller keeps what it knows of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hal_cluster.audit.cli import playbook
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.store import Store


class Inventory:
    """Read once."""

    def __init__(self, sources: Sequence[str]) -> None:
        """Raises AuditError with one line if a source cannot be read."""
        playbook.configure()
        from ansible import constants, context
        from ansible.errors import AnsibleError
        from ansible.inventory.manager import InventoryManager
        from ansible.module_utils.common.collections import ImmutableDict
        from ansible.parsing.dataloader import DataLoader
        from ansible.plugins.loader import init_plugin_loader
        from ansible.vars.manager import VariableManager

        chosen = [os.path.abspath(source) for source in sources] or list(constants.DEFAULT_HOST_LIST)
        self.sources = [str(source) for source in chosen]
        context.CLIARGS = ImmutableDict(inventory=chosen)
        init_plugin_loader()
        self._loader = DataLoader()
        try:
            self._manager = InventoryManager(self._loader, chosen)
        except AnsibleError as error:
            raise AuditError(str(error)) from None
        self._variables = VariableManager(self._loader, self._manager)

    def nodes(self, pattern: str = "") -> list[str]:
        """Return the nodes of a pattern, all without one."""
        from ansible.errors import AnsibleError

        try:
            hosts: list[Any] = self._manager.get_hosts(pattern or "all")
        except AnsibleError as error:
            raise AuditError(str(error)) from None
        return sorted(host.get_name() for host in hosts)

    def variable(self, node: str, name: str) -> Any:
        """Return a variable of a node as it is written, None if it has none."""
        return self._values(node).get(name)

    def _values(self, node: str) -> dict[str, Any]:
        from ansible.errors import AnsibleError

        try:
            values: dict[str, Any] = self._variables.get_vars(host=self._manager.get_host(node))
        except AnsibleError as error:
            raise AuditError(str(error)) from None
        return values

    def store(self, node: str) -> Store:
        """Return where the controller keeps what it knows of a node."""
        from ansible.errors import AnsibleError
        from ansible.template import Templar

        values = self._values(node)
        try:
            folder = Templar(self._loader, values).template(values["hal_audit_dir"])
        except (KeyError, AnsibleError) as error:
            raise AuditError(f"hal_audit_dir of {node} cannot be told: {error}") from None
        return Store(str(folder))
