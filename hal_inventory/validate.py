"""Cross-checks: what is declared in one place has to exist in another. Makes the expanded site on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hal_inventory.checks import Checks
from hal_inventory.declared import Array, ClusterFile, FileSystem, Partition
from hal_inventory.expand import expand_addresses, expand_networks, expand_nodes, in_order
from hal_inventory.expressions import Names
from hal_inventory.fabric import expand_cables, expand_switches
from hal_inventory.hardware import check_profile
from hal_inventory.interfaces import check_interfaces
from hal_inventory.model import FileSystemUse, Node, Placeholder, Site
from hal_inventory.names import ARCHITECTURES, GPU_GROUP, RESERVED, ROLES
from hal_inventory.reader import Document, Path_, field_name
from hal_inventory.shape import LeftOut

_LEAST_DRIVES = {
    "raid0": 1, "raid1": 2, "raid5": 3, "raid6": 4, "raid10": 4, "raid50": 6, "raid60": 8,
    "raidz1": 2, "raidz2": 3, "raidz3": 4,
}  # fmt: skip

SLURM_NODE = "slurm_node"
"""The group of nodes that run slurmd, when a site declares it."""


def build_site(cluster: ClusterFile, document: Document, left_out: LeftOut) -> Site:
    """Return the expanded site. Its faults are added to the document; with any, the site must not be used."""
    checks = Checks(document, left_out)
    networks = expand_networks(cluster, checks)
    nodes = expand_nodes(cluster, networks, checks)
    for name, profile in cluster.profiles.items():
        check_profile(name, profile, checks)
        check_interfaces(name, profile, networks, checks)
    _check_group_names(cluster, nodes, checks)

    members = _basic_members(cluster, nodes)
    services = _services(cluster, nodes, members, checks)
    members.update(services)
    groups = _groups(cluster, nodes, members, checks)
    members.update(groups)
    names = Names({*nodes, *left_out.names}, members)

    arrays, array_addresses = _arrays(cluster, checks)
    switches = expand_switches(cluster, nodes, names, checks)
    fabric_ports, fabric_links = expand_cables(cluster, nodes, switches, checks)
    site = Site(
        name=cluster.name,
        domain=cluster.domain,
        networks=networks,
        profiles=cluster.profiles,
        nodes=nodes,
        arrays=arrays,
        array_addresses=array_addresses,
        external=cluster.external,
        services=services,
        groups=groups,
        partitions=_partitions(cluster, nodes, names, checks),
        switches=switches,
        fabric_ports=fabric_ports,
        fabric_links=fabric_links,
        file_systems=_file_systems(cluster, nodes, arrays, names, checks),
        raid_sets=cluster.raid_sets,
        members=members,
        declared_nodes=frozenset(nodes),
        placeholders=tuple(Placeholder(field_name(path), line, text) for path, line, text in document.placeholders()),
    )
    _check_raid_sets(cluster, nodes, checks)
    checks.close()
    return site


def _basic_members(cluster: ClusterFile, nodes: Mapping[str, Node]) -> dict[str, tuple[str, ...]]:
    lists: dict[str, list[str]] = {name: [] for name in (*ROLES, *cluster.profiles, *ARCHITECTURES, GPU_GROUP)}
    for name, node in nodes.items():
        profile = cluster.profiles.get(node.profile)
        of: set[str] = {node.role}
        if profile is not None:
            of |= {node.profile, profile.arch} | ({GPU_GROUP} if profile.gpus else set())
        for group in of:
            lists[group].append(name)
    return {name: tuple(found) for name, found in lists.items()}


def _check_group_names(cluster: ClusterFile, nodes: Mapping[str, Node], checks: Checks) -> None:
    owners: dict[str, str] = dict.fromkeys(RESERVED, "a reserved word")
    owners.update(dict.fromkeys(ROLES, "a role of nodes"))
    owners.update(dict.fromkeys((*ARCHITECTURES, GPU_GROUP), "a group that every site has"))
    owners.update(dict.fromkeys(nodes, "the name of a node"))
    for section, names, kind in (
        ("profiles", cluster.profiles, "a profile"),
        ("services", cluster.services, "a service"),
        ("groups", cluster.groups, "a group"),
    ):
        for name in names:
            if name in owners:
                checks.fault((section, name), f'"{name}" is {owners[name]}; {kind} needs a name of its own')
            owners.setdefault(name, kind)
    for name in (*ROLES, *ARCHITECTURES, GPU_GROUP):
        if name in nodes:
            checks.fault(("nodes",), f'node "{name}" has the name of a group that every site has; rename it')


def _services(
    cluster: ClusterFile, nodes: Mapping[str, Node], members: Mapping[str, tuple[str, ...]], checks: Checks
) -> dict[str, tuple[str, ...]]:
    names = Names({*nodes, *checks.left_out.names}, members)
    made: dict[str, tuple[str, ...]] = {}
    for name, expression in cluster.services.items():
        path: Path_ = ("services", name)
        selected = checks.select(path, expression, names)
        if selected is not None and not selected and checks.complete:
            checks.fault(path, f'"{expression}" selects no node; a service runs on at least one')
        made[name] = in_order(selected or (), nodes)
    return made


def _groups(
    cluster: ClusterFile, nodes: Mapping[str, Node], members: Mapping[str, tuple[str, ...]], checks: Checks
) -> dict[str, tuple[str, ...]]:
    """Return the declared groups. They may name each other in any order, but not in a circle."""
    made: dict[str, tuple[str, ...]] = {}
    waiting = dict(cluster.groups)
    while waiting:
        ready = [name for name, text in waiting.items() if not (_needs(text, cluster.groups) & waiting.keys())]
        if not ready:
            for name in waiting:
                checks.fault(("groups", name), f"is defined by itself: in a circle with {', '.join(sorted(waiting))}")
                made[name] = ()
            checks.left_out.names.update(waiting)
            break
        for name in ready:
            selected = checks.select(
                ("groups", name), waiting.pop(name), Names({*nodes, *checks.left_out.names}, {**members, **made})
            )
            made[name] = in_order(selected or (), nodes)
    return {name: made[name] for name in cluster.groups}


def _needs(expression: str, groups: Mapping[str, str]) -> set[str]:
    return {part for part in re.split(r"[\s(),]+", expression) if part in groups}


def _partitions(
    cluster: ClusterFile, nodes: Mapping[str, Node], names: Names, checks: Checks
) -> dict[str, tuple[Partition, tuple[str, ...]]]:
    made: dict[str, tuple[Partition, tuple[str, ...]]] = {}
    default: str | None = None
    for name, partition in cluster.partitions.items():
        path: Path_ = ("partitions", name)
        selected = checks.select((*path, "nodes"), partition.nodes, names)
        if selected is not None and not selected and checks.complete:
            checks.fault((*path, "nodes"), f'"{partition.nodes}" selects no node; a partition has at least one')
        if partition.default:
            if default is not None:
                checks.fault((*path, "default"), f'partition "{default}" is the default already; there is one')
            default = default or name
        if _seconds(partition.default_time) > _seconds(partition.max_time):
            checks.fault(
                (*path, "default_time"), f"{partition.default_time} is longer than max_time {partition.max_time}"
            )
        outside = (selected or frozenset()) - set(names.groups.get(SLURM_NODE, nodes))
        if outside and checks.complete:
            first = in_order(outside, nodes)[0]
            checks.fault((*path, "nodes"), f"{first} is not in group {SLURM_NODE}, whose nodes run slurmd")
        made[name] = (partition, in_order(selected or (), nodes))
    return made


def _seconds(duration: str) -> float:
    if duration == "unlimited":
        return float("inf")
    days, _, clock = duration.rpartition("-")
    hours, minutes, seconds = clock.split(":")
    return ((int(days or 0) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)


def _arrays(cluster: ClusterFile, checks: Checks) -> tuple[dict[str, Array], dict[str, str]]:
    made: dict[str, Array] = {}
    addresses: dict[str, str] = {}
    for key, array in cluster.arrays.items():
        path: Path_ = ("arrays", key)
        names = checks.range(path, key)
        for name in names:
            if name in made:
                checks.fault(path, f"array {name} is declared twice")
            made[name] = array
        if array.address is not None:
            column = expand_addresses((*path, "address"), array.address, names, checks)
            addresses.update(zip(names, column, strict=False))
    return made, addresses


def _file_systems(
    cluster: ClusterFile, nodes: Mapping[str, Node], arrays: Mapping[str, Array], names: Names, checks: Checks
) -> dict[str, FileSystemUse]:
    made: dict[str, FileSystemUse] = {}
    for name, declared in cluster.file_systems.items():
        path: Path_ = ("file_systems", name)
        clients = checks.select((*path, "clients"), declared.clients, names)
        servers = checks.select((*path, "servers"), declared.servers, names) if declared.servers else frozenset()
        if declared.server is not None:
            if declared.server in nodes:
                servers = frozenset({declared.server})
            else:
                checks.unknown((*path, "server"), "unknown node", declared.server, nodes, "nodes")
        used = checks.range((*path, "arrays"), declared.arrays) if declared.arrays else []
        for array in used:
            if array not in arrays:
                checks.unknown((*path, "arrays"), "unknown array", array, arrays, "arrays")
        if declared.network is not None and declared.network not in cluster.networks:
            checks.unknown((*path, "network"), "unknown network", declared.network, cluster.networks, "networks")
        _check_served(path, declared, checks)
        made[name] = FileSystemUse(
            declared, in_order(servers or (), nodes), in_order(clients or (), nodes), tuple(used)
        )
    return made


_SERVED_BY = {
    "nfs": ("server", "arrays"),
    "spectrum_scale": ("arrays", "servers"),
    "gluster": ("servers",),
    "lustre": ("arrays", "servers"),
}


def _check_served(path: Path_, declared: FileSystem, checks: Checks) -> None:
    wanted = _SERVED_BY[declared.kind]
    given = [name for name in ("server", "servers", "arrays") if getattr(declared, name) is not None]
    if not set(given) & set(wanted):
        checks.fault(path, f"nothing serves it; a file system of kind {declared.kind} needs {' or '.join(wanted)}")
    for name in given:
        if name not in wanted:
            checks.fault((*path, name), f"does not go with kind {declared.kind}; it needs {' or '.join(wanted)}")
    if declared.layout is not None and declared.kind != "gluster":
        checks.fault((*path, "layout"), "is for kind gluster only")


def _check_raid_sets(cluster: ClusterFile, nodes: Mapping[str, Node], checks: Checks) -> None:
    first: dict[tuple[str, str], int] = {}
    for at, raid in enumerate(cluster.raid_sets):
        path: Path_ = ("raid_sets", at)
        if raid.node not in nodes:
            checks.unknown((*path, "node"), "unknown node", raid.node, nodes, "nodes")
        earlier = first.setdefault((raid.node, raid.name), at)
        if earlier != at:
            checks.fault((*path, "name"), f'{raid.node} has a RAID set "{raid.name}" already: raid_sets[{earlier}]')
        least = _LEAST_DRIVES[raid.level]
        if raid.drives < least:
            checks.fault((*path, "drives"), f"{raid.level} needs at least {least} drives, not {raid.drives}")
