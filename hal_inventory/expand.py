"""Nodes from their declarations: ranges expanded, one value a node, nothing used twice."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hal_inventory.checks import Checks
from hal_inventory.declared import ClusterFile, Nodes
from hal_inventory.errors import RangeError
from hal_inventory.identities import why_no_host, why_no_mac, why_no_port_guid, why_no_serial, why_no_uuid, why_no_wwn
from hal_inventory.model import MANAGEMENT, IPAddress, Network, Node
from hal_inventory.names import is_wwn
from hal_inventory.ranges import MAX_NAMES, expand_list, fold_in_order
from hal_inventory.reader import Path_

PARTS = {
    "port_guids": ("GUID", why_no_port_guid),
    "disks": ("WWN", why_no_wwn),
    "gpu_uuids": ("UUID", why_no_uuid),
}
"""Fields with the identities of a node's parts: what such an identity is called, and why a text is not one."""


def expand_networks(cluster: ClusterFile, checks: Checks) -> dict[str, Network]:
    """Return the networks; faults: overlaps, a gateway that is not inside."""
    made: dict[str, Network] = {}
    for name, declared in cluster.networks.items():
        path: Path_ = ("networks", name)
        try:
            cidr = ipaddress.ip_network(declared.cidr)
        except ValueError:
            continue  # its shape is reported already
        for other in made.values():
            if other.cidr.version == cidr.version and other.cidr.overlaps(cidr):
                checks.fault((*path, "cidr"), f"{cidr} overlaps network {other.name} ({other.cidr})")
        gateway = ipaddress.ip_address(declared.gateway) if declared.gateway else None
        made[name] = Network(name, declared.kind, cidr, declared.rate_gbps, gateway, declared.mtu, declared.vlan)
        if gateway is not None:
            _inside((*path, "gateway"), {name: gateway}, made[name], checks)
            checks.once("address", str(gateway), (*path, "gateway"), f"the gateway of {name}")
    if MANAGEMENT not in cluster.networks and checks.complete:
        checks.fault(("networks",), f'a network "{MANAGEMENT}" is missing: Ansible and Slurm reach nodes by it')
    return made


def expand_nodes(cluster: ClusterFile, networks: Mapping[str, Network], checks: Checks) -> dict[str, Node]:
    """Return the nodes in the order of the file."""
    made: dict[str, Node] = {}
    entries: dict[str, Path_] = {}
    for key, declared in cluster.nodes.items():
        path: Path_ = ("nodes", key)
        names = checks.range(path, key)
        if not names:
            checks.left_out.sections = True  # nobody knows which nodes were meant
            continue
        if not checks.distinct(path, names):
            checks.left_out.names.update(names)
            continue
        if len(made) + len(names) > MAX_NAMES:
            checks.fault(path, f"more than {MAX_NAMES} nodes; that is taken for a slip")
            break
        nodes = _expand_entry(path, names, declared, cluster, networks, checks)
        checks.declare(path, [node.name for node in nodes], entries)
        for node in nodes:
            made.setdefault(node.name, node)
    owners = {**_others(cluster), **dict.fromkeys(made, "a node")}
    for node in made.values():
        for alias in node.aliases:
            if alias in owners:
                checks.fault((*entries[node.name], "aliases"), f'alias "{alias}" is the name of {owners[alias]}')
    return made


def _others(cluster: ClusterFile) -> dict[str, str]:
    """Return what has a name and is not a node."""
    switches = [name for key in (cluster.fabric.switches if cluster.fabric else ()) for name in names_of(key)]
    arrays = [name for key in cluster.arrays for name in names_of(key)]
    return {
        **dict.fromkeys(switches, "a switch"),
        **dict.fromkeys(cluster.external, "an external machine"),
        **dict.fromkeys(arrays, "an array"),
    }


def names_of(key: str) -> list[str]:
    """Return the names for which an entry's key stands; none if it is not a range, which its reader reports."""
    try:
        return expand_list(key)
    except RangeError:
        return []


def _expand_entry(
    path: Path_,
    names: Sequence[str],
    declared: Nodes,
    cluster: ClusterFile,
    networks: Mapping[str, Network],
    checks: Checks,
) -> list[Node]:
    if wrong := [name for name in names if why_no_host(name)]:
        for why in dict.fromkeys(map(why_no_host, wrong)):
            named = fold_in_order([name for name in wrong if why_no_host(name) == why])
            checks.fault(path, f'"{named}" {why}')
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
        if why := why_no_host(alias):
            checks.fault((*path, "aliases"), f'"{alias}" {why}')
        checks.once("alias", alias, (*path, "aliases"), names[0] if names else "")
    parts = {kind: _parts(path, names, declared, kind, checks) for kind in PARTS}
    if profile is not None and len(declared.gpu_uuids) > len(profile.gpus):
        checks.fault(
            (*path, "gpu_uuids"),
            f"{_plural(len(declared.gpu_uuids), 'UUID')}, and profile {declared.profile} has"
            f" {_plural(len(profile.gpus), 'GPU')}",
        )
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
    """Return one value a node; a fault and None if there are more or fewer."""
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


def _address(text: str) -> IPAddress | None:
    """Return a text as an address, None if it is not one."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _parsed(
    path: Path_, column: Sequence[str], names: Sequence[str], example: str, checks: Checks
) -> dict[str, IPAddress]:
    """Return the addresses that a column has, by name; a fault for what is not an address."""
    checks.column(
        path, names, column, lambda text: "" if _address(text) else f"is not an address; write one such as {example}"
    )
    pairs = zip(names, map(_address, column), strict=True)
    return {name: address for name, address in pairs if address is not None}


def _addresses(
    path: Path_, names: Sequence[str], declared: Nodes, networks: Mapping[str, Network], checks: Checks
) -> dict[str, list[IPAddress]]:
    columns: dict[str, list[IPAddress]] = {}
    for where, network, values in _by_network((*path, "addresses"), declared.addresses, networks, checks):
        column = column_of(where, values, names, checks)
        if column is None:
            continue
        parsed = _parsed(where, column, names, str(next(network.cidr.hosts(), "")), checks)
        inside = _inside(where, parsed, network, checks)
        for node, address in inside.items():
            checks.once("address", str(address), where, node)
        if len(inside) == len(names):
            columns[network.name] = list(inside.values())
    if MANAGEMENT not in declared.addresses and MANAGEMENT in networks:
        checks.fault((*path, "addresses"), f'an address in network "{MANAGEMENT}" is missing')
    return columns


def _inside(path: Path_, addresses: Mapping[str, IPAddress], network: Network, checks: Checks) -> dict[str, IPAddress]:
    """Return the addresses, by name, that machines can have in a network; a fault for the others."""
    name, cidr = network.name, network.cidr

    def why(address: IPAddress) -> str:
        if address.version != cidr.version or address not in cidr:
            return f"is outside network {name} ({cidr})"
        if cidr.num_addresses > 2 and address in (cidr.network_address, cidr.broadcast_address):
            return f"is the network's own or its broadcast address ({name}, {cidr})"
        return ""

    checks.column(path, list(addresses), list(addresses.values()), why)
    return {owner: address for owner, address in addresses.items() if not why(address)}


def expand_addresses(path: Path_, values: Sequence[str], names: Sequence[str], checks: Checks) -> list[str]:
    """Return one address for each name, of any network; a fault and nothing if they do not fit."""
    column = column_of(path, values, names, checks) or []
    parsed = _parsed(path, column, names[: len(column)], "10.64.0.10", checks)
    for name, address in parsed.items():
        checks.once("address", str(address), path, name)
    return column if len(parsed) == len(names) else []


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
        if checks.identities("MAC", where, names, column, why_no_mac):
            columns[name] = column
    return columns


def _serials(path: Path_, names: Sequence[str], declared: Nodes, checks: Checks) -> list[str] | None:
    if declared.serial is None:
        return None
    where: Path_ = (*path, "serial")
    column = column_of(where, declared.serial, names, checks)
    if column is not None:
        checks.identities("serial", where, names, column, why_no_serial)
    return column


def _parts(path: Path_, names: Sequence[str], declared: Nodes, kind: str, checks: Checks) -> dict[str, list[str]]:
    """Return one identity a node for each part of a kind; none may be used twice."""
    columns: dict[str, list[str]] = {}
    for part, values in getattr(declared, kind).items():
        where: Path_ = (*path, kind, part)
        column = column_of(where, values, names, checks)
        if column is None:
            continue
        what, why = PARTS[kind]
        checks.identities(what, where, names, column, why)
        # As udev writes world-wide names, and calls its links /dev/disk/by-id/wwn-... (60-persistent-storage.rules).
        columns[part] = [text.lower() if is_wwn(text) else text for text in column]
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
