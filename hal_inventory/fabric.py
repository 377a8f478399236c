"""The fabric: its switches, the ports of nodes and arrays in it, and which cable goes where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hal_inventory.checks import Checks
from hal_inventory.declared import Array, ClusterFile, Nodes, Switch
from hal_inventory.errors import RangeError
from hal_inventory.expand import column_of, in_order
from hal_inventory.expressions import Names
from hal_inventory.model import FabricLink, FabricPort, Node
from hal_inventory.ranges import expand_list
from hal_inventory.reader import Path_

INFINIBAND = "infiniband"
"""The kind of network whose rate ports have when their adapter names none."""

_NOBODY_FILLED_IN = "PLACEHOLDER"  # what `hal-inventory capture` writes for a node that it has not seen

Switches = Mapping[str, tuple[Switch, tuple[str, ...], tuple[str, ...]]]

_END = re.compile(r"([^/]+)/([1-9][0-9]{0,3})")
_GUID = re.compile(r"0x[0-9a-f]{16}")


def expand_switches(
    cluster: ClusterFile, nodes: Mapping[str, Node], names: Names, checks: Checks
) -> dict[str, tuple[Switch, tuple[str, ...], tuple[str, ...]]]:
    """Return the switches, each with the nodes and the switches below it."""
    switches = cluster.fabric.switches if cluster.fabric else {}
    made: dict[str, tuple[Switch, tuple[str, ...], tuple[str, ...]]] = {}
    above: dict[str, str] = {}
    for name, switch in switches.items():
        path: Path_ = ("fabric", "switches", name)
        if (switch.nodes is None) == (switch.switches is None):
            checks.fault(path, "must have either nodes or switches below it")
        selected = checks.select((*path, "nodes"), switch.nodes, names) if switch.nodes else frozenset()
        below = checks.range((*path, "switches"), switch.switches) if switch.switches else []
        for other in below:
            if other not in switches:
                checks.unknown((*path, "switches"), "unknown switch", other, switches, "switches")
            elif other in above:
                checks.fault((*path, "switches"), f"{other} is below {above[other]} already")
            above.setdefault(other, name)
        if switch.guid is not None:
            checks.once("GUID", switch.guid, (*path, "guid"), name)
        made[name] = (switch, in_order(selected or (), nodes), tuple(below))
    for name in switches:
        seen, here = {name}, above.get(name)
        while here is not None and here not in seen:
            seen.add(here)
            here = above.get(here)
        if here == name:
            checks.fault(("fabric", "switches", name), "is below itself")
    return made


def expand_cables(
    cluster: ClusterFile, nodes: Mapping[str, Node], switches: Switches, checks: Checks
) -> tuple[tuple[FabricPort, ...], tuple[FabricLink, ...]]:
    """Return the ports of nodes and arrays in the fabric, and the cables between switches, in the order of the file."""
    ends = _Ends(switches, checks)
    ports: list[FabricPort] = []
    for path, names, declared in _owners(cluster, nodes):
        rate = _rate(cluster, declared)
        for port in sorted(declared.cables.keys() - declared.port_guids.keys()):
            checks.fault((*path, "cables", port), f"no GUID of {port} in port_guids; write that, too")
        for port, values in declared.port_guids.items():
            guids = _guids((*path, "port_guids", port), values, names, checks)
            cables = ends.column((*path, "cables", port), declared.cables.get(port), names, isinstance(declared, Nodes))
            for owner, guid, end in zip(names, guids, cables, strict=False):
                at, number = end or (None, None)
                ports.append(FabricPort(owner, port, guid, rate, at, number))
        if isinstance(declared, Array) and declared.cables and declared.links not in (None, len(declared.cables)):
            checks.fault((*path, "cables"), f"{len(declared.cables)} cables, but links: {declared.links}")
    links: list[FabricLink] = []
    for name, (switch, _, _) in switches.items():
        for port, text in switch.cables.items():
            path = ("fabric", "switches", name, "cables", port)
            here, there = ends.one(path, f"{name}/{port}", name), ends.one(path, text, name)
            if here and there:
                links.append(FabricLink(*here, *there))
    return tuple(ports), tuple(links)


def _owners(cluster: ClusterFile, nodes: Mapping[str, Node]) -> Iterator[tuple[Path_, Sequence[str], Nodes | Array]]:
    """Yield where, for whom and what is declared of everything that may have ports; not what is at fault itself."""
    for key, node in cluster.nodes.items():
        names = _expanded(key)
        if all(name in nodes for name in names):
            yield ("nodes", key), names, node
    for key, array in cluster.arrays.items():
        yield ("arrays", key), _expanded(key), array


def _expanded(key: str) -> list[str]:
    try:
        return expand_list(key)
    except RangeError:
        return []  # said where the entry is read


def _rate(cluster: ClusterFile, declared: Nodes | Array) -> int | None:
    """Return the rate that a port has to come up with: the slower one of adapter and network, in Gb/s."""
    profile = cluster.profiles.get(declared.profile) if isinstance(declared, Nodes) else None
    rates = [hca.rate_gbps for hca in profile.hcas] if profile else []
    rates += [net.rate_gbps for net in cluster.networks.values() if net.kind == INFINIBAND and net.rate_gbps]
    return min(rates, default=None)


def _guids(path: Path_, values: Sequence[str], names: Sequence[str], checks: Checks) -> list[str]:
    """Return the GUIDs of one port of each owner; a fault for the first that is none."""
    # How many there are, and that none is used twice, is checked for nodes where all parts of nodes are.
    column = [text for value in values for text in _expanded(value)]
    if path[0] == "arrays":
        column = column_of(path, values, names, checks) or []
        for owner, guid in zip(names, column, strict=False):
            checks.once("GUID", guid, path, owner)
    for guid in column:
        if not _GUID.fullmatch(guid) and not guid.startswith(_NOBODY_FILLED_IN):
            checks.fault(path, f'"{guid}" is not a GUID; write 0x and 16 small digits such as 0x506b4b0300c2b2f0')
            break
    return column


@dataclass
class _Ends:
    """Reads the ends of cables at switches; each port of a switch takes one."""

    switches: Switches
    checks: Checks

    def column(
        self, path: Path_, values: Sequence[str] | None, names: Sequence[str], are_nodes: bool
    ) -> list[tuple[str, int] | None]:
        """Return the end at a switch of each owner's cable; the first fault of a range says it all."""
        if values is None:
            return [None] * len(names)
        made: list[tuple[str, int] | None] = []
        for owner, text in zip(names, column_of(path, values, names, self.checks) or (), strict=False):
            end = self.one(path, text, owner)
            if end is None:
                break
            if are_nodes and owner not in self.switches[end[0]][1]:
                where = f"fabric.switches.{end[0]}.nodes"
                self.checks.fault(path, f"{owner} is not among the nodes below {end[0]}: see {where}")
                break
            made.append(end)
        return made

    def one(self, path: Path_, text: str, owner: str) -> tuple[str, int] | None:
        """Return switch and port of a text such as edr1/9; a fault and None when there is no such port."""
        match = _END.fullmatch(text)
        if match is None:
            self.checks.fault(path, f'"{text}" is not the port of a switch; write one such as edr1/9')
            return None
        name, number = match[1], int(match[2])
        if name not in self.switches:
            self.checks.unknown(path, "unknown switch", name, self.switches, "switches")
            return None
        switch = self.switches[name][0]
        if switch.ports is None or switch.guid is None:
            missing = "ports" if switch.ports is None else "guid"
            self.checks.fault(path, f"switch {name} has cables, so it needs {missing} in fabric.switches.{name}")
            return None
        if number > switch.ports:
            self.checks.fault(path, f"there is no port {number}; {name} has ports 1 to {switch.ports}")
            return None
        self.checks.once("switch port", f"{name}/{number}", path, owner)
        return name, number
