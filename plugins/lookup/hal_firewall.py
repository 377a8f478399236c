"""Ansible lookup plugin: the zones of a node's firewall. What they are is decided in hal_cluster.rules.firewall."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.playbook.conditional import Conditional
from ansible.plugins.lookup import LookupBase

from hal_cluster.expect.errors import ExpectationsError
from hal_cluster.expect.roles import find_role, templar_in, variables_in
from hal_cluster.rules.firewall import openings, shares, zones
from hal_cluster.rules.firewall.openings import FirewallError
from hal_inventory.errors import HalError
from hal_inventory.settings import PROJECT

DOCUMENTATION = r"""
name: hal_firewall
short_description: What the firewall of a node lets in
description:
  - Collects C(firewall.yml) of every role that the host has (the group with the role's name), fills in its templates
    with the variables of that role, and makes zones of firewalld of it, one for each network that the node is in, and
    direct rules where an opening says how many connections one address may have.
  - So a port is written once, in the role whose daemon listens there.
options:
  _terms:
    description: V(zones), the only one.
    required: true
  interfaces:
    description: By network of the model, the interface that the node is in it by, with its C(name).
    type: dict
    required: true
  networks:
    description: Names of all networks of the model.
    type: list
    elements: str
    required: true
  trusted:
    description: Networks in which everything is let in.
    type: list
    elements: str
    default: []
  extra:
    description: Further openings, in the form of firewall.yml without O(ignore:when).
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- ansible.builtin.debug:
    msg: "{{ lookup('hal_firewall', 'zones', interfaces={'management': {'name': 'eth0'}}, networks=['management']) }}"
"""

RETURN = r"""
_raw:
  description:
    One list of zones with C(name), C(interface), C(tcp), ranges of ports that are open to everybody there, C(xml), its
    file, C(path), where that is below C(/etc/firewalld), and C(shown), what it reads as in force. Last, where there are
    any, the direct rules, as C(direct) without an interface.
  type: list
  elements: list
"""

_answers: dict[tuple[Any, ...], list[dict[str, Any]]] = {}


class LookupModule(LookupBase):
    """Reads and templates; what it means is decided in hal_cluster.rules.firewall."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return the zones as one list."""
        if terms != ["zones"]:
            raise AnsibleError("lookup hal_firewall: zones is all it knows")
        outer = variables or {}
        # Expectations ask several times. Ansible makes a process for each task and host, so nothing old is found here.
        asked = (os.getpid(), outer.get("inventory_hostname"), repr(sorted(kwargs.items())))
        if asked not in _answers:
            _answers.clear()
            _answers[asked] = self._zones(outer, kwargs)
        return [_answers[asked]]

    def _zones(self, outer: dict[str, Any], kwargs: Mapping[str, Any]) -> list[dict[str, Any]]:
        try:
            opened = [opening for name in sorted(outer.get("group_names") or []) for opening in self._role(name, outer)]
            opened += [openings.opening(entry) for entry in kwargs.get("extra") or []]
            interfaces = {network: interface["name"] for network, interface in kwargs["interfaces"].items()}
            made = zones.zones(opened, kwargs["networks"], interfaces, kwargs.get("trusted") or [])
            limits = shares.shares(opened)
        except HalError as error:
            raise AnsibleError(f"lookup hal_firewall: {error}") from None
        direct: dict[str, Any] = {
            "name": "direct",
            "path": shares.FILE,
            "interface": None,
            "tcp": [],
            "xml": shares.xml(limits),
        }
        return [
            {
                "name": zone.name,
                "path": f"zones/{zone.name}.xml",
                "interface": zone.interface,
                "tcp": [{"first": ports.first, "last": ports.last} for ports in zone.ports if ports.protocol == "tcp"],
                "xml": zone.xml(),
                "shown": zone.shown(),
            }
            for zone in made
        ] + ([{**direct, "shown": shares.shown(limits)}] if limits else [])

    def _role(self, name: str, outer: dict[str, Any]) -> Iterator[openings.Opening]:
        """Yield the openings of the role that a group has the name of; none where there is no role or no file."""
        try:
            folder = find_role(name, self._loader, None)
        except ExpectationsError:
            return  # a group without a role of its own
        path = os.path.join(folder, "firewall.yml")
        if not os.path.isfile(path):
            return
        seen = variables_in(folder, self._loader, outer, {})
        templar = templar_in(folder, self._loader, seen)
        for entry in self._loader.load_from_file(path) or []:
            try:
                openings.check_fields(entry)
                if self._applies(entry, templar, seen):
                    yield openings.opening({key: templar.template(value) for key, value in _declared(entry)})
            except (HalError, AnsibleError) as error:
                raise FirewallError(f"{os.path.relpath(path, PROJECT)}: {error}") from None

    def _applies(self, entry: Mapping[str, Any], templar: Any, variables: dict[str, Any]) -> bool:
        condition = Conditional(loader=self._loader)
        condition.when = [entry.get("when", True)]
        return bool(condition.evaluate_conditional(templar, variables))


def _declared(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in entry.items() if key != "when")
