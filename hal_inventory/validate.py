"""Cross-checks: what is declared in one place has to exist in another. Makes the expanded site on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hal_inventory.checks import Checks
from hal_inventory.declared import Array, ClusterFile, Partition
from hal_inventory.expand import expand_addresses, expand_networks, expand_nodes, in_order
from hal_inventory.expressions import Names
from hal_inventory.fabric import expand_cables, expand_switches
from hal_inventory.hardware import check_profile
from hal_inventory.interfaces import check_interfaces
from hal_inventory.model import Node, Placeholder, Site
from hal_inventory.names import ARCHITECTURES, GPU_GROUP, RESERVED, ROLES
from hal_inventory.reader import Document, Path_, field_name
from hal_inventory.shape import LeftOut
from hal_inventory.storage import check_raid_sets, expand_file_systems

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
        file_systems=expand_file_systems(cluster, nodes, networks, arrays, names, checks),
        raid_sets=cluster.raid_sets,
        members=members,
        declared_nodes=frozenset(nodes),
        placeholders=tuple(Placeholder(field_name(path), line, text) for path, line, text in document.placeholders()),
    )
    check_raid_sets(cluster, nodes, checks)
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
