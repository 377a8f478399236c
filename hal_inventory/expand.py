"""Nodes from their declarations: ranges expanded, one value a node, nothing used twice."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hal_inventory.checks import Checks
from hal_inventory.declared import ClusterFile, Nodes
from hal_inventory.model import MANAGEMENT, IPAddress, Network, Node
from hal_inventory.names import RESERVED, is_node_name
from hal_inventory.ranges import MAX_NAMES
from hal_inventory.reader import Path_

PARTS = {"port_guids": "GUID", "disks": "WWN", "gpu_uuids": "UUID"}
"""Fields with the identities of a node's parts, and what one of them is called."""

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")


def expand_networks(cluster: ClusterFile, checks: Checks) -> dict[str, Network]:
    """Return the networks; faults: overlaps, a gateway that is not inside."""
    made: dict[str, Network] = {}
    for name, declared in cluster.networks.items():
        path: Path_ = ("networks", name)
        try:
            cidr = ipaddress.ip_network(declared.cidr)
        except ValueError:
            continue  # its shape was reported
        for other in made.values():
            if other.cidr.version == cidr.version and other.cidr.overlaps(cidr):
                checks.fault((*path, "cidr"), f"{cidr} overlaps network {other.name} ({other.cidr})")
        gateway = ipaddress.ip_address(declared.gateway) if declared.gateway else None
        if gateway is not None:
            _inside(gateway, name, cidr, (*path, "gateway"), checks)
            checks.once("address", str(gateway), (*path, "gateway"), f"the gateway of {name}")
        made[name] = Network(name, declared.kind, cidr, declared.rate_gbps, gateway, declared.mtu, declared.vlan)
    if MANAGEMENT not in cluster.networks and checks.complete:
        checks.fault(("networks",), f'a network "{MANAGEMENT}" is missing: Ansible and Slurm reach nodes by it')
    return made


def _inside(address: IPAddress, name: str, cidr: object, path: Path_, checks: Checks) -> None:
    if not isinstance(cidr, (ipaddress.IPv4Network, ipaddress.IPv6Network)):
        return
    if address.version != cidr.version or address not in cidr:
        checks.fault(path, f"{address} is outside network {name} ({cidr})")
    elif cidr.num_addresses > 2 and address in (cidr.network_address, cidr.broadcast_address):
        checks.fault(path, f"{address} is the network's own or its broadcast address ({name}, {cidr})")


def expand_nodes(cluster: ClusterFile, networks: Mapping[str, Network], checks: Checks) -> dict[str, Node]:
    """Return the nodes in the order of the file."""
    made: dict[str, Node] = {}
    origin: dict[str, str] = {}
    for key, declared in cluster.nodes.items():
        path: Path_ = ("nodes", key)
        names = checks.range(path, key)
        if not names:
            checks.left_out.sections = True  # nobody knows which nodes were meant
            continue
        if len(made) + len(names) > MAX_NAMES:
            checks.fault(path, f"more than {MAX_NAMES} nodes; that is taken for a slip")
            break
        for node in _expand_entry(path, names, declared, cluster, networks, checks):
            if node.name in made:
                line = checks.document.line(("nodes", origin[node.name]))
                checks.fault(
                    path, f"node {node.name} is declared twice: first in nodes.{origin[node.name]}, line {line}"
                )
                continue
            origin[node.name] = key
            made[node.name] = node
    for node in made.values():
        for alias in node.aliases:
            if alias in made:
                checks.fault(("nodes", origin[node.name], "aliases"), f'alias "{alias}" is the name of a node')
    return made


def _expand_entry(
    path: Path_,
    names: Sequence[str],
    declared: Nodes,
    cluster: ClusterFile,
    networks: Mapping[str, Network],
    checks: Checks,
) -> list[Node]:
    for name in names:
        if not is_node_name(name) or name in RESERVED:
            why = "is a reserved word" if name in RESERVED else "is not a host name; write small letters, digits and -"
            checks.fault(path, f'"{name}" {why}')
            checks.left_out.sections = True
            return []
    profile = cluster.profiles.get(declared.profile)
    if profile is None:
        checks.unknown((*path, "profile"), "unknown profile", declared.profile, cluster.profiles, "profiles")
    addresses = _addresses(path, names, declared, networks, checks)
    for name, network in networks.items():
        if network.kind == "bmc" and profile is not None and profile.bmc is None and name in declared.addresses:
            checks.fault(
                (*path, "addresses", name), f"profile {declared.profile} has no bmc; name its kind there (bmc: ipmi)"
            )
    macs = _macs(path, names, declared, networks, checks)
    serials = _serials(path, names, declared, checks)
    if declared.aliases and len(names) > 1:
        checks.fault((*path, "aliases"), f"aliases are for one node, and this entry has {len(names)}")
    for alias in declared.aliases:
        if not is_node_name(alias):
            checks.fault((*path, "aliases"), f'"{alias}" is not a host name; write small letters, digits and -')
        checks.once("alias", alias, (*path, "aliases"), names[0] if names else "")
    parts = {kind: _parts(path, names, declared, kind, checks) for kind in PARTS}
    placeholders = _placeholders(path, declared, checks)
    return [
        Node(
            name=name,
            role=declared.role,
            profile=declared.profile,
            addresses={network: column[at] for network, column in addresses.items()},
            macs={network: column[at] for network, column in macs.items()},
            serial=serials[at] if serials else None,
            parts={kind: {part: column[at] for part, column in columns.items()} for kind, columns in parts.items()},
            aliases=declared.aliases if len(names) == 1 else (),
            placeholders=placeholders,
        )
        for at, name in enumerate(names)
    ]


def column_of(path: Path_, values: Sequence[str], names: Sequence[str], checks: Checks) -> list[str] | None:
    """Return one value a node; a fault and None when there are more or fewer."""
    column: list[str] = []
    for text in values:
        expanded = checks.range(path, text)
        if not expanded:
            return None
        column.extend(expanded)
        if len(column) > MAX_NAMES:
            checks.fault(path, f"more than {MAX_NAMES} values; that is taken for a slip")
            return None
    if len(column) != len(names):
        right = "write one value" if len(names) == 1 else f"write a range or a list of {len(names)}"
        checks.fault(path, f"{_plural(len(column), 'value')} for {_plural(len(names), 'node')}; {right}")
        return None
    return column


def _plural(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _by_network(
    path: Path_, declared: Mapping[str, Sequence[str]], networks: Mapping[str, Network], checks: Checks
) -> Iterator[tuple[Path_, Network, Sequence[str]]]:
    """Yield where, in which network and what is declared; a fault for a network that does not exist."""
    for name, values in declared.items():
        where: Path_ = (*path, name)
        if name in networks:
            yield where, networks[name], values
        elif name != MANAGEMENT:  # that it is missing was said once
            checks.unknown(where, "unknown network", name, networks, "networks")


def _address(path: Path_, text: str, example: str, checks: Checks) -> IPAddress | None:
    """Return the address that a text is; a fault and None when it is none."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        checks.fault(path, f'"{text}" is not an address; write one such as {example}')
        return None


def _addresses(
    path: Path_, names: Sequence[str], declared: Nodes, networks: Mapping[str, Network], checks: Checks
) -> dict[str, list[IPAddress]]:
    columns: dict[str, list[IPAddress]] = {}
    for where, network, values in _by_network((*path, "addresses"), declared.addresses, networks, checks):
        column = column_of(where, values, names, checks)
        if column is None:
            continue
        parsed: list[IPAddress] = []
        example = str(next(network.cidr.hosts(), ""))
        noted = len(checks.document.findings)
        for node, text in zip(names, column, strict=True):
            address = _address(where, text, example, checks)
            if address is None:
                break
            _inside(address, network.name, network.cidr, where, checks)
            if len(checks.document.findings) > noted:
                break  # the first of a range says it all
            checks.once("address", str(address), where, node)
            parsed.append(address)
        if len(parsed) == len(names):
            columns[network.name] = parsed
    if MANAGEMENT not in declared.addresses and MANAGEMENT in networks:
        checks.fault((*path, "addresses"), f'an address in network "{MANAGEMENT}" is missing')
    return columns


def expand_addresses(path: Path_, values: Sequence[str], names: Sequence[str], checks: Checks) -> list[str]:
    """Return one address for each name, of whatever network; a fault and nothing when they do not fit."""
    column = column_of(path, values, names, checks) or []
    for name, text in zip(names, column, strict=False):
        address = _address(path, text, "10.64.0.10", checks)
        if address is None:
            return []
        checks.once("address", str(address), path, name)
    return column


def _macs(
    path: Path_, names: Sequence[str], declared: Nodes, networks: Mapping[str, Network], checks: Checks
) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for where, network, values in _by_network((*path, "macs"), declared.macs, networks, checks):
        name = network.name
        if network.kind == "infiniband":
            checks.fault(where, "an InfiniBand port has no MAC; take it away")
            continue
        if name not in declared.addresses and name != MANAGEMENT:
            checks.fault(where, f"a MAC without an address in network {name}; add addresses.{name}")
        column = column_of(where, values, names, checks)
        if column is None:
            continue
        column = [text.lower() for text in column]
        for node, text in zip(names, column, strict=True):
            if not _MAC.fullmatch(text):
                checks.fault(where, f'"{text}" is not a MAC; write six pairs such as 02:48:41:4c:00:10')
                break
            checks.once("MAC", text, where, node)
        else:
            columns[name] = column
    return columns


def _serials(path: Path_, names: Sequence[str], declared: Nodes, checks: Checks) -> list[str] | None:
    if declared.serial is None:
        return None
    where: Path_ = (*path, "serial")
    column = column_of(where, declared.serial, names, checks)
    for node, text in zip(names, column or (), strict=False):
        checks.once("serial", text, where, node)
    return column


def _parts(path: Path_, names: Sequence[str], declared: Nodes, kind: str, checks: Checks) -> dict[str, list[str]]:
    """Return one identity a node for each part of a kind; none may be used twice."""
    columns: dict[str, list[str]] = {}
    for part, values in getattr(declared, kind).items():
        where: Path_ = (*path, kind, part)
        column = column_of(where, values, names, checks)
        for node, text in zip(names, column or (), strict=False):
            checks.once(PARTS[kind], text, where, node)
        if column is not None:
            columns[part] = column
    return columns


def _placeholders(path: Path_, declared: Nodes, checks: Checks) -> frozenset[str]:
    fields: list[tuple[str, ...]] = [("serial",)]
    fields += [("addresses", network) for network in declared.addresses]
    fields += [("macs", network) for network in declared.macs]
    return frozenset(".".join(field) for field in fields if checks.document.is_placeholder((*path, *field)))


def in_order(selected: Iterable[str], nodes: Mapping[str, Node]) -> tuple[str, ...]:
    """Return selected nodes in the order of the model."""
    chosen = set(selected)
    return tuple(name for name in nodes if name in chosen)
