"""The fabric: its switches, the ports of nodes and arrays in it, and which cable goes where."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hal_inventory.checks import Checks, those
from hal_inventory.declared import Array, ClusterFile, Nodes, Switch
from hal_inventory.dependencies import ordered
from hal_inventory.expand import column_of, in_order, names_of
from hal_inventory.expressions import Names
from hal_inventory.identities import why_no_guid, why_no_port_guid
from hal_inventory.model import FabricLink, FabricPort, FabricSwitch, Node
from hal_inventory.ranges import fold_in_order
from hal_inventory.reader import Path_, field_name
from hal_inventory.suggest import did_you_mean

INFINIBAND = "infiniband"
"""The kind of network whose rate ports have if their adapter names none."""

Switches = Mapping[str, FabricSwitch]
End = tuple[str, int]

_END = re.compile(r"([^/]+)/([1-9][0-9]{0,3})")


def expand_switches(
    cluster: ClusterFile, nodes: Mapping[str, Node], names: Names, checks: Checks
) -> dict[str, FabricSwitch]:
    """Return the switches in the order of the file, each with the nodes or the switches below it."""
    made: dict[str, FabricSwitch] = {}
    entries: dict[str, Path_] = {}
    for path, listed, declared in _entries(cluster):
        if not checks.range(path, str(path[-1])):
            checks.left_out.sections = True  # nobody knows which switches were meant
            continue
        if not checks.distinct(path, listed):
            checks.left_out.names.update(listed)
            continue
        checks.declare(path, listed, entries)
        if (declared.nodes is None) == (declared.switches is None):
            checks.fault(path, "must have either nodes or switches below it")
        below = _switches_below((*path, "switches"), declared, cluster, checks)
        above = _nodes_below((*path, "nodes"), declared, listed, names, checks)
        guids = _switch_guids((*path, "guid"), declared, listed, checks)
        for name in listed:
            in_it = in_order(above.get(name, ()), nodes)
            made.setdefault(name, FabricSwitch(name, declared.model, guids.get(name), declared.ports, in_it, below))
    _, circles = ordered({name: {lower for lower in switch.switches if lower in made} for name, switch in made.items()})
    for path in dict.fromkeys(entries[name] for name in circles):
        inside = [name for name in circles if entries[name] == path]
        itself = those(inside, "is below itself", "are below themselves")
        checks.fault(path, "is below itself" if inside == [path[-1]] else itself)
    return made


def _entries(cluster: ClusterFile) -> Iterator[tuple[Path_, list[str], Switch]]:
    """Yield where, for which switches and what is declared."""
    for key, declared in (cluster.fabric.switches if cluster.fabric else {}).items():
        yield ("fabric", "switches", key), names_of(key), declared


def _switches_below(path: Path_, declared: Switch, cluster: ClusterFile, checks: Checks) -> tuple[str, ...]:
    """Return the switches that are below each switch of an entry; a fault for those that do not exist."""
    below = checks.range(path, declared.switches) if declared.switches else []
    known = [name for _, listed, _ in _entries(cluster) for name in listed]
    unknown = [name for name in below if name not in known]
    if unknown:
        checks.unknown(path, "unknown switch", fold_in_order(unknown), known, "switches")
    return tuple(name for name in dict.fromkeys(below) if name in known)


def _nodes_below(
    path: Path_, declared: Switch, listed: Sequence[str], names: Names, checks: Checks
) -> dict[str, frozenset[str]]:
    """Return the nodes below the switches of an entry, which has one expression a switch."""
    expressions = declared.nodes or ()
    if expressions and len(expressions) != len(listed):
        right = "write one expression" if len(listed) == 1 else f"write a list of {len(listed)}"
        checks.fault(path, f"{_counted(len(expressions), 'entry')} for {_counted(len(listed), 'switch')}; {right}")
        expressions = ()
    selected = {name: checks.select(path, text, names) for name, text in zip(listed, expressions, strict=False)}
    # This was reported: a cable of a node that is not below such a switch is not a second fault.
    checks.left_out.names.update(name for name in listed if declared.nodes and selected.get(name) is None)
    return {name: chosen for name, chosen in selected.items() if chosen is not None}


def _switch_guids(path: Path_, declared: Switch, listed: Sequence[str], checks: Checks) -> dict[str, str]:
    """Return the GUIDs of the switches of an entry, one a switch."""
    if declared.guid is None:
        return {}
    column = _column(path, declared.guid, len(listed), _counted(len(listed), "switch"), checks)
    if column:
        checks.identities("GUID", path, listed, column, why_no_guid)
    return dict(zip(listed, column, strict=False))


def _column(path: Path_, values: Sequence[str], wanted: int, of: str, checks: Checks) -> list[str]:
    """Return as many values as are wanted; a fault and none if there are more or fewer."""
    column: list[str] = []
    for text in values:
        expanded = checks.range(path, text)
        if not expanded:
            return []
        column += expanded
    if len(column) != wanted:
        right = "write one value" if wanted == 1 else f"write a range or a list of {wanted}"
        checks.fault(path, f"{_counted(len(column), 'value')} for {of}; {right}")
        return []
    return column


def _counted(number: int, what: str) -> str:
    many = {"entry": "entries", "switch": "switches"}
    return f"{number} {what if number == 1 else many.get(what, f'{what}s')}"


def expand_cables(
    cluster: ClusterFile, nodes: Mapping[str, Node], switches: Switches, checks: Checks
) -> tuple[tuple[FabricPort, ...], tuple[FabricLink, ...]]:
    """Return the ports of nodes and arrays in the fabric, and the cables between switches, in the order of the file."""
    ends = _Ends(
        switches, {name: (path, declared) for path, listed, declared in _entries(cluster) for name in listed}, checks
    )
    ports: list[FabricPort] = []
    for path, names, declared in _owners(cluster, nodes):
        for port in sorted(declared.cables.keys() - declared.port_guids.keys()):
            checks.fault((*path, "cables", port), f"no GUID of {port} in port_guids; write that, too")
        for port, values in declared.port_guids.items():
            guids = _guids((*path, "port_guids", port), values, names, checks)
            cables = ends.of_owners(
                (*path, "cables", port), declared.cables.get(port), names, isinstance(declared, Nodes)
            )
            adapter = _adapter((*path, "port_guids", port), cluster, declared, port.partition("/")[0], checks)
            for owner, guid, end in zip(names, guids, cables, strict=False):
                at, number = end or (None, None)
                rates = (adapter, ends.rate(at) or _network(cluster, declared))
                rate = min((rate for rate in rates if rate), default=None)
                ports.append(FabricPort(owner, port, guid, rate, at, number))
        if isinstance(declared, Array) and declared.cables and declared.links not in (None, len(declared.cables)):
            checks.fault((*path, "cables"), f"{len(declared.cables)} cables, but links: {declared.links}")
    links = [
        link
        for path, listed, declared in _entries(cluster)
        if listed and switches.keys() >= set(listed)
        for text, values in declared.cables.items()
        for link in _links((*path, "cables", text), listed, text, values, ends, checks)
    ]
    return tuple(ports), tuple(links)


def _links(
    path: Path_, listed: Sequence[str], text: str, values: Sequence[str], ends: _Ends, checks: Checks
) -> Iterator[FabricLink]:
    """Yield the cables that one field of an entry declares: the first port of each of its switches, then the next."""
    ports = checks.range(path, text)
    here = [f"{name}/{port}" for port in ports for name in listed]
    of = (
        _counted(len(listed), "switch")
        if len(ports) == 1
        else f"{len(ports)} ports of {_counted(len(listed), 'switch')}"
    )
    there = _column(path, values, len(here), of, checks) if ports else []
    if not there:
        return
    itself = [near for near, other in zip(here, there, strict=True) if near == other]
    if itself:
        checks.fault(path, f"{those(itself, 'leads to itself', 'lead to themselves')}; write the other end")
        return
    for near, far in zip(ends.read(path, here, here), ends.read(path, there, here), strict=True):
        if near and far:
            yield FabricLink(*near, *far)


def _owners(cluster: ClusterFile, nodes: Mapping[str, Node]) -> Iterator[tuple[Path_, Sequence[str], Nodes | Array]]:
    """Yield where, for whom and what is declared of everything that may have ports, without faulty entries."""
    for key, node in cluster.nodes.items():
        names = names_of(key)
        if all(name in nodes for name in names):
            yield ("nodes", key), names, node
    for key, array in cluster.arrays.items():
        yield ("arrays", key), names_of(key), array


def _adapter(path: Path_, cluster: ClusterFile, declared: Nodes | Array, device: str, checks: Checks) -> int | None:
    """Return the rate of a device's own adapter, in Gb/s; a fault if adapters differ and not exactly one has it."""
    profile = cluster.profiles.get(declared.profile) if isinstance(declared, Nodes) else None
    hcas = profile.hcas if profile else ()
    if len({hca.rate_gbps for hca in hcas}) > 1:
        hcas = tuple(hca for hca in hcas if device in hca.devices)
        if len(hcas) != 1:
            have = "none has" if not hcas else "several have"
            checks.fault(
                path, f"{device}: the profile's hcas differ in rate_gbps, and {have} it in devices; name it in one"
            )
    return hcas[0].rate_gbps if hcas else None


def _network(cluster: ClusterFile, declared: Nodes | Array) -> int | None:
    """Return the rate of a node's own network, in Gb/s, the smallest of several; of all networks if it has none."""
    rates = {name: net.rate_gbps for name, net in cluster.networks.items() if net.kind == INFINIBAND and net.rate_gbps}
    own = [rates[name] for name in declared.addresses if name in rates] if isinstance(declared, Nodes) else []
    return min(own or rates.values(), default=None)


def _guids(path: Path_, values: Sequence[str], names: Sequence[str], checks: Checks) -> list[str]:
    """Return the GUIDs of one port of each owner. Those of nodes are checked with all parts of nodes."""
    if path[0] == "nodes":
        return [text for value in values for text in names_of(value)]
    column = column_of(path, values, names, checks)
    if column is not None:
        checks.identities("GUID", path, names, column, why_no_port_guid)
    return column or []


@dataclass
class _Ends:
    """Reads the ends of cables at switches; each port of a switch takes one."""

    switches: Switches
    entries: Mapping[str, tuple[Path_, Switch]]
    checks: Checks

    def of_owners(
        self, path: Path_, values: Sequence[str] | None, names: Sequence[str], are_nodes: bool
    ) -> list[End | None]:
        """Return the end at a switch of each owner's cable; None if there is none, or it is at fault."""
        column = column_of(path, values, names, self.checks) if values is not None else None
        if column is None:
            return [None] * len(names)
        ends = self.read(path, column, names)
        if are_nodes:
            self._check_below(path, dict(zip(names, ends, strict=True)))
        return ends

    def read(self, path: Path_, texts: Sequence[str], owners: Sequence[str]) -> list[End | None]:
        """Return switch and port of texts such as edr1/9; a fault and None where there is no such port."""
        self.checks.column(path, owners, texts, self._why_not)
        ends = [self._end(text) for text in texts]
        for owner, end in zip(owners, ends, strict=True):
            if end is not None:
                self.checks.once("switch port", f"{end[0]}/{end[1]}", path, owner)
        return ends

    def rate(self, switch: str | None) -> int | None:
        """Return the rate that a switch is declared with, in Gb/s."""
        return self.entries[switch][1].rate_gbps if switch is not None else None

    def _end(self, text: str) -> End | None:
        match = _END.fullmatch(text)
        if match is None or match[1] not in self.switches or self._why_not(text):
            return None
        return match[1], int(match[2])

    def _why_not(self, text: str) -> str:
        """Return why a text is not the end of a cable; "" if the fault is reported at the switch."""
        match = _END.fullmatch(text)
        if match is None:
            return "is not the port of a switch; write one such as edr1/9"
        name = match[1]
        if name not in self.switches:
            said = self.checks.left_out.sections or name in self.checks.left_out.names
            return "" if said else f"is at an unknown switch{did_you_mean(name, self.switches, kind='switches')}"
        path, declared = self.entries[name]
        if declared.ports is None or declared.guid is None:
            missing = "ports" if declared.ports is None else "guid"
            return f"is a cable of {name}, which needs {missing} in {field_name(path)}"
        if int(match[2]) > declared.ports:
            return f"does not exist; {name} has ports 1 to {declared.ports}"
        return ""

    def _check_below(self, path: Path_, ends: Mapping[str, End | None]) -> None:
        """Note a fault for the nodes that are not declared below the switch that their cable goes to."""
        outside: dict[str, list[str]] = {}
        for node, end in ends.items():
            if end is not None and node not in self.switches[end[0]].nodes:
                outside.setdefault(end[0], []).append(node)
        for name in outside.keys() - self.checks.left_out.names:
            where = field_name((*self.entries[name][0], "nodes"))
            self.checks.fault(
                path, f"{those(outside[name], 'is', 'are')} not among the nodes below {name}: see {where}"
            )
