"""The site as the rest of the project sees it: expanded, checked, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from hal_inventory.declared import Array, External, FileSystem, Partition, Profile, RaidSet
    from hal_inventory.users import User

IPAddress: TypeAlias = IPv4Address | IPv6Address
IPNetwork: TypeAlias = IPv4Network | IPv6Network

MANAGEMENT = "management"
"""The network that Ansible, Slurm and DHCP use. Every node has an address in it."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network; ``rate_gbps`` in Gb/s, ``mtu`` in bytes."""

    name: str
    kind: str
    cidr: IPNetwork
    rate_gbps: int | None = None
    gateway: IPAddress | None = None
    mtu: int | None = None
    vlan: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One server. ``placeholders`` names the fields (``serial``, ``addresses.bmc``) that nobody has filled in yet.

    ``parts`` are the identities of its parts: GUIDs of ports, world-wide names of disks, UUIDs of GPUs, each by name.
    """

    name: str
    role: str
    profile: str
    addresses: Mapping[str, IPAddress]
    macs: Mapping[str, str]
    serial: str | None = None
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    placeholders: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FabricPort:
    """A port of a node or an array in the fabric, by its own name (``mlx5_0/1``), with the other end of its cable."""

    owner: str
    name: str
    guid: str
    rate_gbps: int | None
    switch: str | None
    switch_port: int | None


@dataclass(frozen=True, slots=True)
class FabricSwitch:
    """A switch of the fabric, with the nodes or the switches below it."""

    name: str
    model: str | None
    guid: str | None
    ports: int | None
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FabricLink:
    """A cable between two switches."""

    switch: str
    port: int
    other: str
    other_port: int


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A value that nobody has filled in yet."""

    field: str
    line: int
    value: str


@dataclass(frozen=True, slots=True)
class Site:
    """A whole site. Mappings keep the order of the file; every node name in them is a key of ``nodes``.

    ``members`` has the nodes of every name that an expression may use: roles, profiles, architectures, ``gpu``,
    services and groups. ``declared_nodes`` are the nodes before a restriction.
    """

    name: str
    domain: str
    networks: Mapping[str, Network]
    profiles: Mapping[str, Profile]
    nodes: Mapping[str, Node]
    arrays: Mapping[str, Array]
    external: Mapping[str, External]
    services: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, tuple[str, ...]]
    partitions: Mapping[str, tuple[Partition, tuple[str, ...]]]
    switches: Mapping[str, FabricSwitch]
    file_systems: Mapping[str, FileSystemUse]
    raid_sets: tuple[RaidSet, ...]
    members: Mapping[str, tuple[str, ...]]
    declared_nodes: frozenset[str]
    placeholders: tuple[Placeholder, ...] = ()
    virtual: bool = False
    array_addresses: Mapping[str, str] = field(default_factory=dict)
    fabric_ports: tuple[FabricPort, ...] = ()
    fabric_links: tuple[FabricLink, ...] = ()
    users: tuple[User, ...] = ()

    def profile_of(self, node: str) -> Profile:
        """Return the profile of a node."""
        return self.profiles[self.nodes[node].profile]

    def fqdn(self, node: str) -> str:
        """Return a node's full name."""
        return f"{node}.{self.domain}"


@dataclass(frozen=True, slots=True)
class FileSystemUse:
    """A file system with its nodes and arrays expanded, and the network that carries it."""

    declared: FileSystem
    servers: tuple[str, ...]
    clients: tuple[str, ...]
    arrays: tuple[str, ...]
    network: str

    @property
    def mounted_on(self) -> tuple[str, ...]:
        """The clients without those that export the very folder where it would be mounted: these have it."""
        exported = self.declared.export or self.declared.mount
        if self.declared.kind != "nfs" or exported != self.declared.mount:
            return self.clients
        return tuple(node for node in self.clients if node not in self.servers)
