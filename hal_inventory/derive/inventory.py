"""The Ansible inventory: host variables and groups."""

from __future__ import annotations

from typing import Any

from hal_inventory.declared import Profile
from hal_inventory.model import MANAGEMENT, Node, Site
from hal_inventory.names import PLACEHOLDER_ADDRESS
from hal_inventory.packed import Packed, runs


def pack(site: Site) -> Packed:
    """Return the inventory of a site. A host gets ``hal_node`` and ``ansible_host``; the rest is ``connection``'s.

    Hosts are in the order of the model, groups sorted by name; a group without nodes is there too.
    """
    services: dict[str, list[str]] = {name: [] for name in site.nodes}
    for service, nodes in sorted(site.services.items()):
        for name in nodes:
            services[name].append(service)
    bmc_networks = [network.name for network in site.networks.values() if network.kind == "bmc"]
    position = {name: at for at, name in enumerate(site.nodes)}
    return {
        "site": site.name,
        "common": {
            name: {**_profile(name, profile), "virtual": site.virtual} for name, profile in site.profiles.items()
        },
        "hosts": [
            (
                name,
                _contact(site, node),
                node.profile,
                {
                    "name": name,
                    "fqdn": site.fqdn(name),
                    "role": node.role,
                    "serial": node.serial,
                    "addresses": {network: str(address) for network, address in node.addresses.items()},
                    "macs": dict(node.macs),
                    **node.parts,
                    "bmc": _bmc(site, node, bmc_networks),
                    "services": services[name],
                },
            )
            for name, node in site.nodes.items()
        ],
        "groups": {name: runs(site.members[name], position) for name in sorted(site.members)},
    }


def _contact(site: Site, node: Node) -> str:
    """Return the address to which Ansible connects: never a placeholder address of a real site."""
    if not site.virtual and f"addresses.{MANAGEMENT}" in node.placeholders:
        return f"{node.name}{PLACEHOLDER_ADDRESS}"
    return str(node.addresses[MANAGEMENT])


def _bmc(site: Site, node: Node, networks: list[str]) -> dict[str, str] | None:
    """Return kind and address of the BMC: never a placeholder address of a real site."""
    kind = site.profiles[node.profile].bmc
    network = next((name for name in networks if name in node.addresses), None)
    if not kind or network is None:
        return None
    if not site.virtual and f"addresses.{network}" in node.placeholders:
        return {"kind": kind, "address": f"{node.name}{PLACEHOLDER_ADDRESS}"}
    return {"kind": kind, "address": str(node.addresses[network])}


def _profile(name: str, profile: Profile) -> dict[str, Any]:
    """Return what all nodes of a profile have in common."""
    return {
        "profile": name,
        "arch": profile.arch,
        "model": profile.model,
        "kernel": profile.kernel,
        "cpus": {**profile.cpus.model_dump(), "total": profile.cpus.total},
        "memory_mb": profile.memory_mb,
        "numa": [numa.model_dump() for numa in profile.numa],
        "gpus": [gpu.model_dump() for gpu in profile.gpus],
        "hcas": [hca.model_dump(exclude={"devices"}) for hca in profile.hcas],
        "interfaces": {
            network: {**interface.model_dump(), "members": list(interface.members)}
            for network, interface in profile.interfaces.items()
        },
        "reimage": profile.reimage,
    }
