"""File systems and RAID sets: who serves, who mounts, by which network, on which drives."""

from __future__ import annotations

from collections.abc import Mapping

from hal_inventory.checks import Checks, those
from hal_inventory.declared import Array, ClusterFile, FileSystem, RaidSet
from hal_inventory.expand import in_order
from hal_inventory.expressions import Names
from hal_inventory.model import MANAGEMENT, FileSystemUse, Network, Node, Site
from hal_inventory.paths import is_of_the_system
from hal_inventory.ranges import expand_list, fold_in_order
from hal_inventory.reader import Path_

LEAST_DRIVES = {
    "raid0": 1, "raid1": 2, "raid5": 3, "raid6": 4, "raid10": 4, "raid50": 6, "raid60": 8,
    "raidz1": 2, "raidz2": 3, "raidz3": 4,
}  # fmt: skip

_SERVED_BY = {
    "nfs": ("server", "arrays"),
    "spectrum_scale": ("arrays", "servers"),
    "gluster": ("servers",),
    "lustre": ("arrays", "servers"),
}

_MOUNTED_BY = {"nfs": "nfs_client", "spectrum_scale": "spectrum_scale"}
"""The group whose role mounts a file system of a kind, if a site declares it."""

_SERVED_IN = {"nfs": "nfs_server"}
"""The group whose role serves it from a node, if a site declares it."""


def expand_file_systems(
    cluster: ClusterFile,
    nodes: Mapping[str, Node],
    networks: Mapping[str, Network],
    arrays: Mapping[str, Array],
    names: Names,
    checks: Checks,
) -> dict[str, FileSystemUse]:
    """Return the file systems by name; faults: what does not exist, and what nobody or no role serves."""
    made: dict[str, FileSystemUse] = {}
    for name, declared in cluster.file_systems.items():
        path: Path_ = ("file_systems", name)
        selected = checks.select((*path, "clients"), declared.clients, names)
        clients = in_order(selected or (), nodes)
        servers = _servers(path, declared, nodes, names, checks)
        used = checks.range((*path, "arrays"), declared.arrays) if declared.arrays else []
        for array in used:
            if array not in arrays:
                checks.unknown((*path, "arrays"), "unknown array", array, arrays, "arrays")
        if declared.network is not None and declared.network not in cluster.networks:
            checks.unknown((*path, "network"), "unknown network", declared.network, cluster.networks, "networks")
        _check_served(path, declared, checks)
        use = FileSystemUse(declared, servers, clients, tuple(used), declared.network or MANAGEMENT)
        if declared.kind == "nfs" and use.network in networks:
            _check_reachable(path, use, cluster, checks)
        _check_roles(path, use, names, checks)
        made[name] = use
    return made


def _servers(
    path: Path_, declared: FileSystem, nodes: Mapping[str, Node], names: Names, checks: Checks
) -> tuple[str, ...]:
    servers = checks.select((*path, "servers"), declared.servers, names) if declared.servers else frozenset()
    if declared.server is not None:
        if declared.server in nodes:
            servers = frozenset({declared.server})
        else:
            checks.unknown((*path, "server"), "unknown node", declared.server, nodes, "nodes")
    return in_order(servers or (), nodes)


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
    for name, kind in (("export", "nfs"), ("block_size_kb", "spectrum_scale")):
        if getattr(declared, name) is not None and declared.kind != kind:
            checks.fault((*path, name), f"is for kind {kind} only")
    if declared.server is not None and declared.export is not None and is_of_the_system(declared.export):
        checks.fault((*path, "export"), f"{declared.export} is a folder of the system; export one such as /srv/data")


def _check_reachable(path: Path_, use: FileSystemUse, cluster: ClusterFile, checks: Checks) -> None:
    """Note a fault if a server or a client has no address in the network that carries the file system."""
    if not checks.complete:
        return
    # As declared: an address with a fault of its own is reported elsewhere.
    entries = [key for key, entry in cluster.nodes.items() if use.network in {*entry.addresses, MANAGEMENT}]
    inside = {name for key in entries for name in expand_list(key)}
    for field, listed in (("server", use.servers), ("clients", use.clients)):
        if without := [node for node in listed if node not in inside]:
            has = those(without, "has", "have")
            checks.fault((*path, field), f"{has} no address in network {use.network}, by which it goes")


def _check_roles(path: Path_, use: FileSystemUse, names: Names, checks: Checks) -> None:
    """Note a fault if a site has the group of the role, but a node that needs the role is not in it."""
    for field, listed, groups, does in (
        ("clients", use.clients, _MOUNTED_BY, "mount"),
        ("server", use.servers, _SERVED_IN, "serve"),
    ):
        group = groups.get(use.declared.kind)
        if group is None or group not in names.groups or not checks.complete:
            continue
        if outside := [node for node in listed if node not in names.groups[group]]:
            checks.fault(
                (*path, field), f"{those(outside, 'is', 'are')} not in group {group}, whose role would {does} it"
            )


def mounted_by_no_role(site: Site) -> list[str]:
    """Return a sentence for each file system that no role mounts on its clients: the site has to do that itself."""
    sentences = []
    for name, use in site.file_systems.items():
        group = _MOUNTED_BY.get(use.declared.kind)
        if use.mounted_on and (group is None or group not in site.groups):
            role = f"; role {group} would, in a group of that name" if group else ""
            on = fold_in_order(use.mounted_on)
            sentences.append(f"file system {name} ({use.declared.kind}): no role mounts it on {on}{role}")
    return sentences


def check_raid_sets(cluster: ClusterFile, nodes: Mapping[str, Node], checks: Checks) -> None:
    """Note faults: unknown nodes and disks, too few drives, a disk used twice on a node."""
    first: dict[tuple[str, str], int] = {}
    taken: dict[tuple[str, str], str] = {}
    for at, raid in enumerate(cluster.raid_sets):
        path: Path_ = ("raid_sets", at)
        if raid.node not in nodes:
            checks.unknown((*path, "node"), "unknown node", raid.node, nodes, "nodes")
        earlier = first.setdefault((raid.node, raid.name), at)
        if earlier != at:
            checks.fault((*path, "name"), f'{raid.node} has a RAID set "{raid.name}" already: raid_sets[{earlier}]')
        least = LEAST_DRIVES[raid.level]
        if raid.drives < least:
            checks.fault((*path, "drives"), f"{raid.level} needs at least {least} drives, not {raid.drives}")
        elif raid.level in ("raid50", "raid60") and raid.drives % 2:
            checks.fault((*path, "drives"), f"{raid.level} is two halves; {raid.drives} drives cannot be halved")
        if (raid.file_system is None) != (raid.mount is None):
            missing, there = ("file_system", "mount") if raid.file_system is None else ("mount", "file_system")
            checks.fault((*path, there), f"does not go without {missing}")
        if raid.node in nodes:
            _check_disks(path, raid, nodes[raid.node], taken, checks)


def _check_disks(path: Path_, raid: RaidSet, node: Node, taken: dict[tuple[str, str], str], checks: Checks) -> None:
    """Note faults of the drives by name; `taken` has the RAID set of each one that was seen."""
    where: Path_ = (*path, "disks")
    if raid.disks is None:
        return
    disks = [disk for text in raid.disks for disk in checks.range(where, text)]
    known = node.parts.get("disks", {})
    if unknown := [disk for disk in disks if disk not in known]:
        checks.unknown(where, f"{node.name} has no disk", fold_in_order(list(dict.fromkeys(unknown))), known, "disks")
        return
    of_others: dict[str, list[str]] = {}
    for disk in disks:
        other = taken.setdefault((node.name, disk), raid.name)
        if other != raid.name:
            of_others.setdefault(other, []).append(disk)
    for other, theirs in of_others.items():
        checks.fault(where, f"{those(theirs, 'is', 'are')} in RAID set {other} of {node.name} already")
    if of_others:
        return
    wanted = 1 if raid.controller == "hardware" else raid.drives
    if disks and len(disks) != wanted:
        why = "a controller shows its RAID set as one disk" if raid.controller == "hardware" else "one for each drive"
        checks.fault(where, f"names {len(disks)}, not {wanted}: {why}")
