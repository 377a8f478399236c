"""Ansible lookup plugin: the files of the provisioning server. What is in them is decided in hal_cluster.provision."""

from __future__ import annotations

import json
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.provision import boot, dhcp
from hal_cluster.provision.nodes import boot_nodes
from hal_inventory.errors import HalError

DOCUMENTATION = r"""
name: hal_provision
author: HAL toolkit
short_description: Files of DHCP and of boot configurations, for all nodes of the model
description:
  - V(dnsmasq) gives the file that names no node.
  - V(leases) gives the small files of dnsmasq, V(nodes) those of hal-provision, each a list of C(path) and C(content).
  - V(without_mac) gives the names of nodes that nothing can be done for, because the model has no MAC of them.
options:
  _terms:
    description: V(dnsmasq), V(leases), V(nodes) or V(without_mac).
    required: true
  nodes:
    description: The nodes, as C(lookup('hal', 'boot')).
    type: list
    elements: dict
    required: true
  network:
    description: The network that nodes boot in.
    type: str
    required: true
  folder:
    description: For V(nodes), where their files are.
    type: str
  server:
    description: For V(dnsmasq) and V(leases), the arguments of hal_cluster.provision.dhcp.Server.
    type: dict
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_provision', 'without_mac', nodes=lookup('hal', 'boot'), network='management') }}"
"""

RETURN = r"""
_raw:
  description: A text, or one list.
  type: list
  elements: raw
"""


class LookupModule(LookupBase):
    """Thin: asks hal_cluster.provision."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return what is asked for as one value."""
        if len(terms) != 1 or terms[0] not in ("dnsmasq", "leases", "nodes", "without_mac"):
            raise AnsibleError("lookup hal_provision: dnsmasq, leases, nodes and without_mac are all it knows")
        network = kwargs["network"]
        try:
            nodes = boot_nodes(kwargs["nodes"])
            served = [node for node in nodes if network in node.macs and network in node.addresses]
            if terms == ["without_mac"]:
                return [[node.name for node in nodes if node not in served]]
            if terms == ["nodes"]:
                return [
                    [
                        {
                            "path": f"{kwargs['folder']}/{node.name}",
                            "content": json.dumps(boot.known(node, network), indent=1, sort_keys=True) + "\n",
                        }
                        for node in served
                    ]
                ]
            given = dict(kwargs["server"])
            given["networks"] = [dhcp.Served(**entry) for entry in given["networks"]]
            given["lease_seconds"] = int(given["lease_seconds"])
            server = dhcp.Server(boot_network=network, **given)
            if terms == ["dnsmasq"]:
                return [dhcp.main_file(server)]
            return [[{"path": path, "content": text} for path, text in dhcp.files(nodes, server).items()]]
        except HalError as error:
            raise AnsibleError(f"lookup hal_provision: {error}") from None
