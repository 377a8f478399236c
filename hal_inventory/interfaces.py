"""Cross-checks of the interfaces of a profile: each belongs to one network, and a bond is complete."""

from __future__ import annotations

from collections.abc import Mapping

from hal_inventory.checks import Checks
from hal_inventory.declared import Interface, Profile
from hal_inventory.model import Network
from hal_inventory.reader import Path_


def check_interfaces(name: str, profile: Profile, networks: Mapping[str, Network], checks: Checks) -> None:
    """Note what does not fit together in the interfaces of a profile."""
    owner: dict[str, str] = {}
    for network_name, interface in profile.interfaces.items():
        path: Path_ = ("profiles", name, "interfaces", network_name)
        network = networks.get(network_name)
        if network is None:
            checks.unknown(path, "unknown network", network_name, networks, "networks")
        elif network.kind == "bmc":
            checks.fault(path, "a BMC has an interface of its own; take it away")
        elif network.kind == "infiniband" and interface.bond_mode not in (None, "active-backup"):
            checks.fault((*path, "bond_mode"), "a bond of InfiniBand ports is active-backup")
        _check_bond(path, interface, checks)
        for device in (interface.name, *interface.members):
            if device in owner:
                checks.fault(path, f"{device} is in network {owner[device]} already")
            owner.setdefault(device, network_name)


def _check_bond(path: Path_, interface: Interface, checks: Checks) -> None:
    if interface.members and interface.bond_mode is None:
        checks.fault(path, "a bond needs its bond_mode, such as active-backup")
    if interface.bond_mode is not None and len(interface.members) < 2:
        checks.fault(path, "a bond needs at least two members")
    if len(set(interface.members)) != len(interface.members) or interface.name in interface.members:
        checks.fault((*path, "members"), "an interface is named twice")
