"""Ansible vars plugin: the group_vars and host_vars of the sources that an inventory source begins with."""

from __future__ import annotations

import os
import sys
from typing import Any

from ansible.plugins.loader import vars_loader
from ansible.plugins.vars import BaseVarsPlugin
from ansible.utils.vars import combine_vars

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from hal_inventory.ansible_inventory import folders_before  # noqa: E402  found only now

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


class VarsModule(BaseVarsPlugin):  # type: ignore[misc]
    """Thin: which folders is remembered in hal_inventory, what is in them is Ansible's own plugin's to read."""

    REQUIRES_ENABLED = True
    is_stateless = True

    def get_vars(self, loader: Any, path: str, entities: Any) -> dict[str, Any]:
        """Return the variables of hosts and groups from the folders before ``path``, the first of them first."""
        found: dict[str, Any] = {}
        for folder in folders_before(path):
            found = combine_vars(found, vars_loader.get("host_group_vars").get_vars(loader, folder, entities))
        return found
