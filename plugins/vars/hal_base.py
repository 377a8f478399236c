"""Ansible vars plugin: the group_vars and host_vars of the sources that an inventory source begins with."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.loader import vars_loader
from ansible.plugins.vars import BaseVarsPlugin
from ansible.utils.vars import combine_vars

try:
    from hal_inventory.ansible_inventory import variable_folders
    from hal_inventory.connection import MOVED
except ImportError as error:
    raise AnsibleError(
        f"{error}: name plugin hal in enable_plugins (ANSIBLE_INVENTORY_ENABLED), or use the Ansible that make setup"
        " installs into .venv"
    ) from error

DOCUMENTATION = r"""
name: hal_base
short_description: Variables of the sources that a source of plugin hal begins with
description:
  - Ansible loads C(group_vars) and C(host_vars) beside each inventory source. This does the same for the C(base) of a
    source of plugin P(hal#inventory), and for the C(base) of that.
  - In C(vars_plugins_enabled) it stands before P(ansible.builtin.host_group_vars#vars), so that variables beside the
    source itself win.
options:
  stage:
    ini: [{key: stage, section: vars_hal_base}]
    env: [{name: ANSIBLE_VARS_PLUGIN_STAGE}]
extends_documentation_fragment: [vars_plugin_staging]
"""


class VarsModule(BaseVarsPlugin):
    """Thin: which folders is remembered in hal_inventory, what is in them is Ansible's own plugin's to read."""

    REQUIRES_ENABLED = True
    is_stateless = True

    def get_vars(self, loader: Any, path: str, entities: Any) -> dict[str, Any]:
        """Return the variables of hosts and groups from the folders before ``path``, the first of them first.

        AnsibleError where they, or those beside the source, set what the source itself decides.
        """
        *before, own = variable_folders(path) or (None,)
        if own is None:
            return {}
        read = vars_loader.get("host_group_vars").get_vars
        combined: dict[str, Any] = {}
        for folder in before:
            values = read(loader, folder, entities)
            _refuse_moved(folder, values)
            combined = combine_vars(combined, values)
        _refuse_moved(own, read(loader, path, entities))
        return combined


def _refuse_moved(folder: str, values: dict[str, Any]) -> None:
    for name in sorted(values.keys() & MOVED.keys()):
        raise AnsibleError(
            f"{folder}: {name} in group_vars or host_vars does not count for all that uses it: take it away, and write"
            f" {MOVED[name]} into the source, hal.yml, where the default is not right"
        )
