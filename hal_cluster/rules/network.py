"""What belongs into /etc/sysconfig/network-scripts for a node of the model.

Words and their meaning: sysconfig.txt and ifup-eth of initscripts 9.49 (branch rhel7-branch), rdma.ifup-ib of
rdma-core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hal_cluster.rules.errors import RuleError


class NetworkError(RuleError):
    """The message says what does not fit together."""


FOLDER = "/etc/sysconfig/network-scripts"
CONNECTED, DATAGRAM = "connected", "datagram"
# What ifup-ib makes of a file without MTU=, and of one with more: it cuts that down without a word.
LARGEST_MTU = {CONNECTED: 65520, DATAGRAM: 2044}


@dataclass(frozen=True)
class Policy:
    """What the model does not say: it is the same for all nodes of a role."""

    route_order: Sequence[str] = ()
    ipoib_mode: str | None = None
    bonding_options: str = ""
    zones: Iterable[str] = ()
    extra: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Device:
    """One interface: its file, and what is true of it when the file is in force."""

    name: str
    network: str
    settings: tuple[tuple[str, str], ...]
    address: str | None = None  # with its prefix
    mtu: int | None = None
    mac: str | None = None
    gateway: str | None = None
    mode: str | None = None  # of IPoIB
    master: str | None = None
    members: tuple[str, ...] = ()
    bond_mode: str | None = None

    @property
    def path(self) -> str:
        """Where the file belongs."""
        return f"{FOLDER}/ifcfg-{self.name}"

    def text(self) -> str:
        """The file."""
        lines = [f"{key}={_quoted(value)}" for key, value in self.settings]
        return "\n".join(["# Written by the role network; changes made here are lost.", *lines, ""])

    def plain(self) -> dict[str, Any]:
        """As the node's module and expectations get it."""
        made = {**asdict(self), "members": list(self.members), "path": self.path, "text": self.text()}
        del made["settings"]
        return made


def devices(
    node: Mapping[str, Any],
    networks: Mapping[str, Mapping[str, Any]],
    interfaces: Mapping[str, Mapping[str, Any]],
    policy: Policy,
) -> list[Device]:
    """Return the interfaces of a node (hal_node), members of bonds too, sorted by name."""
    for name in {*interfaces, *policy.route_order, *policy.extra}:
        if name not in networks:
            raise NetworkError(f"unknown network {name}; the model has {', '.join(sorted(networks))}")
    routed = default_route(node, networks, [name for name in policy.route_order if name in interfaces])
    made: dict[str, Device] = {}
    for name in sorted(set(interfaces) & set(node["addresses"])):
        gateway = networks[name]["gateway"] if name == routed else None
        for device in _of_network(node, name, networks[name], interfaces[name], gateway, policy):
            if device.name in made:
                raise NetworkError(f"{device.name} is in network {made[device.name].network} and in {name}")
            made[device.name] = device
    return [made[name] for name in sorted(made)]


def default_route(
    node: Mapping[str, Any], networks: Mapping[str, Mapping[str, Any]], order: Sequence[str]
) -> str | None:
    """Return the network whose gateway is the node's: the first of ``order`` that has one and that the node is in."""
    return next((name for name in order if name in node["addresses"] and networks[name]["gateway"]), None)


def _of_network(
    node: Mapping[str, Any],
    name: str,
    network: Mapping[str, Any],
    interface: Mapping[str, Any],
    gateway: str | None,
    policy: Policy,
) -> list[Device]:
    address = node["addresses"][name]
    if ":" in address:
        raise NetworkError(f"network {name}: {address} is of IPv6, which this role does not configure")
    device, members = interface["name"], tuple(interface.get("members") or ())
    infiniband = network["kind"] == "infiniband"
    mode = policy.ipoib_mode if infiniband else None
    if mode and network["mtu"] and network["mtu"] > LARGEST_MTU[mode]:
        raise NetworkError(f"network {name}: MTU {network['mtu']}, and IPoIB in {mode} mode has {LARGEST_MTU[mode]}")
    mtu = network["mtu"] or (LARGEST_MTU[mode] if mode else None)
    mac = None if members or infiniband else node["macs"].get(name)
    kind = "Bond" if members else "InfiniBand" if infiniband else "Ethernet"
    settings = {"DEVICE": device, "TYPE": kind}
    if mac:
        settings["HWADDR"] = mac.upper()
    settings |= _BROUGHT_UP | {"IPV6INIT": "no", "PEERDNS": "no", "IPADDR": address, "PREFIX": str(network["prefix"])}
    if gateway:
        settings["GATEWAY"] = gateway
    settings["DEFROUTE"] = "yes" if gateway else "no"
    if mtu:
        settings["MTU"] = str(mtu)
    if members:
        options = f"mode={interface['bond_mode']} {policy.bonding_options}".rstrip()
        settings |= {"BONDING_MASTER": "yes", "BONDING_OPTS": options}
    elif mode:
        settings["CONNECTED_MODE"] = "yes" if mode == CONNECTED else "no"
    if name in policy.zones:
        settings["ZONE"] = name
    for key, value in policy.extra.get(name, {}).items():
        if key in settings and key != "PEERDNS":
            raise NetworkError(f"network {name}: {key} is the role's own; the model or another variable decides it")
        settings[key] = str(value)
    head = Device(
        device,
        name,
        tuple(settings.items()),
        address=f"{address}/{network['prefix']}",
        mtu=mtu,
        mac=mac,
        gateway=gateway,
        mode=None if members else mode,
        members=members,
        bond_mode=interface.get("bond_mode") if members else None,
    )
    return [head, *(_member(member, device, name, mode, infiniband) for member in members)]


def _member(name: str, master: str, network: str, mode: str | None, infiniband: bool) -> Device:
    settings = {"DEVICE": name, "TYPE": "InfiniBand" if infiniband else "Ethernet"} | _BROUGHT_UP
    settings |= {"MASTER": master, "SLAVE": "yes"}
    if mode:
        settings["CONNECTED_MODE"] = "yes" if mode == CONNECTED else "no"
    return Device(name, network, tuple(settings.items()), mode=mode, master=master)


_DEVICE = "${DEVICE}"
_BROUGHT_UP = {"ONBOOT": "yes", "BOOTPROTO": "none", "NM_CONTROLLED": "no"}


def _quoted(value: str) -> str:
    """As a shell reads it: the scripts source their files. ${DEVICE} means the interface: DEVICE= is the first line."""
    if value and all(letter.isalnum() or letter in ".:-_/," for letter in value):
        return value
    parts = (
        "".join(f"\\{letter}" if letter in '"$`\\' else letter for letter in part) for part in value.split(_DEVICE)
    )
    return f'"{_DEVICE.join(parts)}"'
