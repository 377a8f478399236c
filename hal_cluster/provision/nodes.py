"""A node as DHCP and boot configurations see it, made of the model's slice ``boot``."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hal_cluster.provision.errors import ProvisionError

POWER, X86 = "ppc64le", "x86_64"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class BootNode:
    """One server. ``mac`` and ``address`` by network; ``disk`` is the world-wide name of the declared system disk.

    ``disks``: the world-wide names of all declared disks by name, that one among them. ``reimage``: what its profile
    says, ``allowed`` or ``refused``.
    """

    name: str
    fqdn: str
    arch: str
    macs: Mapping[str, str]
    addresses: Mapping[str, str]
    disk: str | None = None
    kernel: str | None = None
    placeholders: tuple[str, ...] = ()
    disks: Mapping[str, str] = field(default_factory=dict)
    profile: str = ""
    reimage: str = "refused"

    def mac(self, network: str) -> str:
        """Return the MAC in a network; ProvisionError when the model has none."""
        if network not in self.macs:
            raise ProvisionError(f"{self.name}: cluster.yml has no macs.{network} for it")
        return self.macs[network]

    def address(self, network: str) -> str:
        """Return the address in a network; ProvisionError when the model has none."""
        if network not in self.addresses:
            raise ProvisionError(f"{self.name}: cluster.yml has no addresses.{network} for it")
        return self.addresses[network]

    def check_reimage(self) -> None:
        """Raise ProvisionError unless its profile allows that it is installed anew."""
        if self.reimage != "allowed":
            raise ProvisionError(f"{self.name}: its profile {self.profile} says reimage: {self.reimage}")


def boot_node(declared: Mapping[str, Any]) -> BootNode:
    """Return a node of the slice ``boot``; ProvisionError names what no boot file could be made of."""
    name = str(declared["name"])
    if not _NAME.fullmatch(name):
        raise ProvisionError(f"{name!r} is not a name of a node: small letters, digits and -")
    if declared["arch"] not in (POWER, X86):
        raise ProvisionError(
            f"{name}: nothing boots {declared['arch']} over the network here; {POWER} and {X86} are known"
        )
    macs = {network: str(mac).lower() for network, mac in declared["macs"].items()}
    for network, mac in macs.items():
        if not _MAC.fullmatch(mac):
            raise ProvisionError(f"{name}: macs.{network} is {mac}; write six pairs such as 02:48:41:4c:02:05")
    # DHCP and petitboot's names of files are IPv4's here; others are left out, not guessed.
    addresses = {
        network: str(address)
        for network, address in declared["addresses"].items()
        if ipaddress.ip_address(address).version == 4
    }
    return BootNode(
        name=name,
        fqdn=str(declared["fqdn"]),
        arch=str(declared["arch"]),
        macs=macs,
        addresses=addresses,
        disk=declared.get("disk"),
        kernel=declared.get("kernel"),
        placeholders=tuple(declared.get("placeholders", ())),
        disks=dict(declared.get("disks", {})),
        profile=str(declared.get("profile", "")),
        reimage=str(declared.get("reimage", "refused")),
    )


def boot_nodes(declared: Iterable[Mapping[str, Any]]) -> list[BootNode]:
    """Return all nodes of the slice ``boot``."""
    return [boot_node(entry) for entry in declared]
