"""Cross-checks: what one place names must exist in another. Makes the expanded site on the way."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hal_inventory.checks import Checks, those
from hal_inventory.declared import Array, ClusterFile, Partition
from hal_inventory.dependencies import ordered
from hal_inventory.errors import HalInventoryError
from hal_inventory.expand import expand_addresses, expand_networks, expand_nodes, in_order
from hal_inventory.expressions import Names, words
from hal_inventory.fabric import expand_cables, expand_switches
from hal_inventory.hardware import check_profile
from hal_inventory.interfaces import check_interfaces
from hal_inventory.model import Node, Placeholder, Site
from hal_inventory.mounts import check_mounts
from hal_inventory.names import ARCHITECTURES, GPU_GROUP, RESERVED, ROLES
from hal_inventory.ranges import cut, expand_list
from hal_inventory.reader import Document, Path_, field_name
from hal_inventory.shape import LeftOut
from hal_inventory.storage import check_raid_sets, expand_file_systems

SLURM_NODE = "slurm_node"
"""The group of nodes that run slurmd, if a site declares it."""


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
    defined = _defined(cluster, nodes, members, checks)
    members.update(defined)
    names = Names({*nodes, *left_out.names}, members)

    arrays, array_addresses = _arrays(cluster, nodes, checks)
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
        services={name: defined[name] for name in cluster.services},
        groups={name: defined[name] for name in cluster.groups},
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
    check_mounts(cluster, site.file_systems, nodes, checks)
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
    return {name: tuple(members) for name, members in lists.items()}


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


def _defined(
    cluster: ClusterFile, nodes: Mapping[str, Node], members: Mapping[str, tuple[str, ...]], checks: Checks
) -> dict[str, tuple[str, ...]]:
    """Return the nodes of services and groups. They may name each other in any order, but not in a circle."""
    texts = {name: ("services", text) for name, text in cluster.services.items()}
    texts |= {name: ("groups", text) for name, text in cluster.groups.items()}
    order, circles = ordered({name: _needs(text, texts) for name, (_, text) in texts.items()})
    for name, circle in circles.items():
        checks.fault((texts[name][0], name), f"is defined by itself: in a circle with {cut(', '.join(circle))}")
    made: dict[str, tuple[str, ...]] = dict.fromkeys(circles, ())
    complete, unsure = checks.complete, checks.left_out.names
    unsure.update(circles)
    for name in order:
        section, expression = texts[name]
        selected = checks.select((section, name), expression, Names({*nodes, *unsure}, {**members, **made}))
        if selected is None or _needs(expression, unsure):
            unsure.add(name)  # this is reported: what names it is not at fault
        elif section == "services" and not selected and complete:
            checks.fault((section, name), f'"{expression}" selects no node; a service runs on at least one')
        made[name] = in_order(selected or (), nodes)
    return {name: made[name] for name in texts}


def _needs(expression: str, names: Collection[str]) -> set[str]:
    """Return which of these names an expression has, in a range or not; none if it cannot be read."""
    try:
        return {name for word in words(expression) for name in (word, *expand_list(word)) if name in names}
    except HalInventoryError:
        return set()


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
        members = in_order(selected or (), nodes)
        profiles = {node: cluster.profiles.get(nodes[node].profile) for node in members}
        cpus = {node: profile.cpus.total for node, profile in profiles.items() if profile is not None}
        _check_most_cpus(path, partition, cpus, checks)
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
            are = those(in_order(outside, nodes), "is", "are")
            checks.fault((*path, "nodes"), f"{are} not in group {SLURM_NODE}, whose nodes run slurmd")
        made[name] = (partition, members)
    return made


def _check_most_cpus(path: Path_, partition: Partition, cpus: Mapping[str, int], checks: Checks) -> None:
    """Note a fault if jobs may have more CPUs of a node than any node has: other partitions would get none."""
    most, largest = partition.max_cpus_per_node, max(cpus.values(), default=0)
    if most is not None and cpus and most > largest:
        them = [name for name, number in cpus.items() if number == largest]
        checks.fault((*path, "max_cpus_per_node"), f"{most}, but {those(them, 'has', 'have')} {largest} CPUs")


def whole_nodes(site: Site) -> list[str]:
    """Return a remark for each partition whose limit of CPUs means nothing on some of its nodes."""
    remarks = []
    for name, (partition, members) in site.partitions.items():
        most = partition.max_cpus_per_node
        small = [node for node in members if most is not None and site.profile_of(node).cpus.total < most]
        if small:
            them = those(small, "has", "have")
            remarks.append(f"partitions.{name}.max_cpus_per_node is {most}, and {them} fewer CPUs: no limit there")
    return remarks


def _seconds(duration: str) -> float:
    if duration == "unlimited":
        return float("inf")
    days, _, clock = duration.rpartition("-")
    hours, minutes, seconds = clock.split(":")
    return ((int(days or 0) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)


def _arrays(cluster: ClusterFile, nodes: Mapping[str, Node], checks: Checks) -> tuple[dict[str, Array], dict[str, str]]:
    made: dict[str, Array] = {}
    addresses: dict[str, str] = {}
    entries: dict[str, Path_] = {}
    for key, array in cluster.arrays.items():
        path: Path_ = ("arrays", key)
        names = checks.range(path, key)
        checks.declare(path, names, entries)
        made.update(dict.fromkeys(names, array))
        if not names or not checks.distinct(path, names):
            continue
        if taken := [name for name in names if name in nodes]:
            said = those(taken, "has the name of a node; rename it", "have the names of nodes; rename them")
            checks.fault(path, said)
        if array.address is not None:
            column = expand_addresses((*path, "address"), array.address, names, checks)
            addresses.update(zip(names, column, strict=False))
    return made, addresses
