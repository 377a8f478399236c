"""Ansible lookup plugin: the interfaces of a node and their files. Decided in hal_cluster.rules.network."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.rules.network import Policy, devices
from hal_inventory.errors import HalError
from hal_inventory.settings import PROJECT

DOCUMENTATION = r"""
name: hal_network
short_description: The interfaces of a node, and their files for EL7's network scripts
description:
  - Makes an interface of each network that the node has an address in, and of each member of a bond.
  - The result is what module P(hal_network#module) takes as O(hal_network#module:devices).
options:
  _terms:
    description: V(devices), or V(competing) for the program that prints files that bring up one of them, too.
    required: true
  node:
    description: The node, as C(hal_node). V(competing) takes nothing else.
    type: dict
  networks:
    description: All networks of the model, as lookup('hal', 'networks').
    type: dict
  interfaces:
    description: By network, the interface with C(name), C(members), C(bond_mode); that of the node if none are given.
    type: dict
  route_order:
    description: Networks whose gateway may be the default route; the first that has one and that the node is in.
    type: list
    elements: str
    default: []
  ipoib_mode:
    description: V(datagram) or V(connected); nothing is said of it if it is null.
    type: str
  bonding_options:
    description: Options of every bond, beside its mode.
    type: str
    default: ""
  zones:
    description: Networks that are a zone of the firewall.
    type: list
    elements: str
    default: []
  extra:
    description: Further settings by network.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_network', 'devices', node=hal_node, networks=lookup('hal', 'networks')) }}"
"""

RETURN = r"""
_raw:
  description: >-
    The text of a program, or one list of interfaces with C(name), C(network), C(path) and C(text) of the file, and
    what is true when it is in force: C(address), C(mtu), C(mac), C(gateway), C(mode), C(master), C(members),
    C(bond_mode).
  type: list
  elements: list
"""

_COMPETING = PROJECT / "hal_node/network/files.py"
_POLICY = frozenset(("route_order", "ipoib_mode", "bonding_options", "zones", "extra"))


class LookupModule(LookupBase):
    """Thin: asks hal_cluster.rules.network."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return the interfaces as one list."""
        if terms == ["competing"]:
            return [_COMPETING.read_text()]
        if terms != ["devices"]:
            raise AnsibleError("lookup hal_network: devices and competing are all it knows")
        node, networks = kwargs.pop("node"), kwargs.pop("networks")
        interfaces = kwargs.pop("interfaces", node["interfaces"])
        if unknown := sorted(set(kwargs) - _POLICY):
            raise AnsibleError(f"lookup hal_network: unknown argument {unknown[0]}")
        try:
            made = devices(node, networks, interfaces, Policy(**kwargs))
        except HalError as error:
            raise AnsibleError(f"lookup hal_network: {node['name']}: {error}") from None
        return [[device.plain() for device in made]]
