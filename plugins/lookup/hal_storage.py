"""Ansible lookup plugin: what is made of the drives of a node. Decided in hal_cluster.rules.local_storage."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.rules.local_storage.layout import layout
from hal_inventory.derive.slices import disk_path
from hal_inventory.errors import HalError
from hal_inventory.settings import PROJECT

DOCUMENTATION = r"""
name: hal_storage
author: HAL toolkit
short_description: The RAID sets of a node as md arrays and file systems
description:
  - C(sets) gives what the module P(hal_raid_set#module) takes.
  - C(paths) gives the paths of all disks that the model has for the node.
  - C(program) gives the text of the program that compares them with the node, for expectations.
options:
  _terms:
    description: C(sets), C(paths) or C(program).
    required: true
  node:
    description: The node, as C(hal_node).
    type: dict
  raid_sets:
    description: RAID sets of the site, as C(lookup('hal', 'raid_sets')).
    type: list
    elements: dict
    default: []
  scratch:
    description: C(local_storage_scratch); with a disk it is one set more.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_storage', 'sets', node=hal_node, raid_sets=lookup('hal', 'raid_sets')) }}"
"""

RETURN = r"""
_raw:
  description: One list of sets, or the text of a program.
  type: list
  elements: raw
"""

_PROGRAM = PROJECT / "hal_node/storage/state.py"


class LookupModule(LookupBase):
    """Thin: asks hal_cluster.rules.local_storage."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return the sets as one list, or the program."""
        if terms == ["program"]:
            return [_PROGRAM.read_text()]
        node = kwargs.get("node", {})
        if terms == ["paths"]:
            return [sorted(map(disk_path, node["disks"].values()))]
        if terms != ["sets"]:
            raise AnsibleError("lookup hal_storage: sets, paths and program are all it knows")
        try:
            sets = layout(kwargs.get("raid_sets", []), node["name"], node["disks"], kwargs.get("scratch", {}))
        except HalError as error:
            raise AnsibleError(f"{node['name']}: {error}") from None
        return [sets]
