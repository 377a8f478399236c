"""Ansible inventory plugin: the site model as hosts and groups. What it says is decided in hal_inventory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError, AnsibleParserError
from ansible.inventory import manager
from ansible.plugins.inventory import BaseInventoryPlugin

# The one place where the project's code is found: docs/design.md, "How plugins find the project"
PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))
for _name in ("hal_inventory", "hal_cluster", "hal_node"):
    _file = getattr(sys.modules.get(_name), "__file__", None)
    if _file and Path(_file).resolve().parents[1] != PROJECT:
        raise AnsibleError(f"{_name} of {Path(_file).parents[1]} is loaded, which is not {PROJECT}")

from hal_inventory.ansible_inventory import fill, refuse_another_site, remember_bases, understand_ranges  # noqa: E402
from hal_inventory.compiled import Compiled  # noqa: E402
from hal_inventory.connection import MOVED, connection  # noqa: E402
from hal_inventory.errors import FindingsError, HalError  # noqa: E402
from hal_inventory.variables import endless  # noqa: E402

DOCUMENTATION = r"""
name: hal
short_description: Hosts and groups from a site model (cluster.yml)
description:
  - Reads the site model that O(cluster) names, checks it, and gives every node the variables C(hal_node) and
    C(ansible_host), and how it is reached by ssh, as plain values.
  - Groups are the nodes' roles, profiles and architectures, C(gpu), the services, and what the model declares under
    C(groups).
  - Of several sources the last one decides. Hosts that an earlier one added and the last one does not have are removed.
    Sources of two sites in one call are refused.
  - Patterns may have ranges of nodes, as in C(--limit 'hal[05-06]'). One with a name that no node has is refused.
  - A model with a fault is refused as a whole, with every finding. Nothing in a model is ever evaluated as a template.
options:
  plugin:
    description: Marks the file as a source for this plugin.
    type: str
    required: true
    choices: [hal]
  base:
    description:
      - Another source, relative to this file. What this one does not say, that one does.
      - Its group_vars and host_vars apply, and those beside this file after them.
    type: str
  cluster:
    description: The site model, relative to this file. Required where there is no O(base).
    type: str
  virtual:
    description:
      - The nodes are virtual ones, so placeholder addresses may be contacted.
      - Without it a node whose management address is a placeholder gets an C(ansible_host) that cannot be resolved.
    type: bool
    default: false
  only:
    description: An expression such as V(login or hal[01-02]). The site is what it selects; nothing else exists.
    type: str
  networks:
    description: Moves networks, by name, to another CIDR of the same size. The host parts of all addresses stay.
    type: dict
    default: {}
  state:
    description:
      - Folder of the controller for this site, relative to this file. It has the authorities and known_hosts.
      - Without it C(.state/<name of the site>) beside ansible.cfg. Every host has it as C(hal_state_dir).
    type: str
  ssh:
    description:
      - How nodes are reached. C(user), by default V(root); C(key), by default C(ca/admin) in O(state),
        relative to this file. Host keys are believed by the C(known_hosts) in O(state), and by no other.
    type: dict
    default: {}
  users:
    description: Path of the users.yml, relative to this file. Without it the one beside the cluster.yml, if any.
    type: str
"""

EXAMPLES = r"""
---
# inventory/hal/hal.yml
plugin: hal
cluster: cluster.yml

---
# a part of it, virtual and on networks of its own
plugin: hal
base: ../../inventory/virtual/hal.yml
only: login or hal[01-02]
networks: {management: 10.65.3.0/24}
"""

VARS_PLUGIN = "hal_base"


class InventoryModule(BaseInventoryPlugin):
    """Thin: reads by hal_inventory, reports in Ansible's way."""

    NAME = "hal"

    def verify_file(self, path: str) -> bool:
        """Claim every YAML file, so that one that is not a source is refused with a reason."""
        return bool(super().verify_file(path)) and path.endswith((".yml", ".yaml"))

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Add hosts and groups. A model that cannot be used: all findings, one a line, then AnsibleParserError."""
        super().parse(inventory, loader, path, cache)
        for name in sorted(self._vars.keys() & MOVED.keys()):
            raise AnsibleParserError(
                f"{name} as an extra variable (-e) does not count for all that uses it: leave it away, and write"
                f" {MOVED[name]} into the source, hal.yml, where the default is not right, or into one of your own with"
                " this one as base"
            )
        try:
            compiled = Compiled(path)
            refuse_another_site(inventory, compiled.source)
            packed = compiled.inventory()
            sources = (*compiled.source.bases, compiled.source.path)
            if unread := endless(list(dict.fromkeys(source.parent for source in sources))):
                raise FindingsError(unread)
        except FindingsError as error:
            # Ansible wraps the text of an exception into a paragraph; a finding is a line, to be read and searched.
            for finding in error.findings:
                self.display.display(str(finding), color=constants.COLOR_ERROR, stderr=True)
            number = len(error.findings)
            raise AnsibleParserError(f"{number} finding{'s' if number > 1 else ''}, said above") from error
        except HalError as error:
            raise AnsibleParserError(str(error)) from error
        if compiled.source.bases and VARS_PLUGIN not in constants.VARIABLE_PLUGINS_ENABLED:
            raise AnsibleParserError(
                f"{path} has a base, whose group_vars the vars plugin {VARS_PLUGIN} loads: write vars_plugins_enabled ="
                f" {VARS_PLUGIN}, host_group_vars into {constants.CONFIG_FILE or 'ansible.cfg'}"
            )
        remember_bases(compiled.source)
        beside = Path(constants.CONFIG_FILE).parent if constants.CONFIG_FILE else None
        fill(inventory, packed, connection(compiled.source, packed["site"], beside))
        understand_ranges(manager)
