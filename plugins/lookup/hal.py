"""Ansible lookup plugin: cluster-wide slices of the site model. What they are is decided in hal_inventory."""

from __future__ import annotations

from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_inventory.compiled import Compiled
from hal_inventory.errors import HalError
from hal_inventory.sources import last_source

DOCUMENTATION = r"""
name: hal
short_description: Cluster-wide data from the site model
description:
  - Returns a slice of the site as the last source of plugin P(hal#inventory) among the inventory sources shows it.
  - Results are computed once and kept by content, so a lookup costs about as much as reading a file.
options:
  _terms:
    description: >-
      The slice: V(site), V(placeholders), V(networks), V(hosts), V(serials), V(boot), V(nodes), V(nodeset),
      V(services), V(service), V(arrays), V(external), V(file_systems), V(raid_sets), V(users), V(fabric.ports),
      V(fabric.cables), V(fabric.switches), V(fabric.subnet_managers), V(slurm.nodes), V(slurm.gres),
      V(slurm.partitions), V(slurm.topology), V(slurm.controllers), V(slurm.databases).
    required: true
  where:
    description: For V(nodes) and V(nodeset), an expression such as V(gpu and not hal05).
    type: str
    default: all
  node:
    description: For V(placeholders) and V(fabric.ports), only those of this node.
    type: str
  name:
    description: For V(service), the service.
    type: str
  memory_reserve_mb:
    description: For V(slurm.nodes), memory in MB that each node keeps for the system.
    type: int
    default: 0
  slurm_version:
    description: For V(slurm.gres), the version of Slurm; C(Cores=) means cores from 20.11 on and CPUs before.
    type: str
    default: 22.05.8
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal', 'slurm.nodes', memory_reserve_mb=8192) }}"

- ansible.builtin.debug:
    msg: "{{ lookup('hal', 'nodeset', where='gpu and not hal05') }}"   # hal[01-04,06-16]
"""

RETURN = r"""
_raw:
  description: The slice; a list, a mapping or text.
  type: raw
"""


class LookupModule(LookupBase):
    """Thin: finds the source, asks hal_inventory."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return one result for each slice named."""
        sources = (variables or {}).get("ansible_inventory_sources")
        sources = sources or context.CLIARGS.get("inventory") or constants.DEFAULT_HOST_LIST
        path = last_source(sources)
        if path is None:
            raise AnsibleError(f"no source of plugin hal among the inventory sources: {', '.join(sources)}")
        try:
            compiled = Compiled(path)
            return [compiled.slice(str(term), kwargs) for term in terms]
        except HalError as error:
            raise AnsibleError(f"lookup hal: {error}") from None
