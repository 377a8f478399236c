"""Zones of firewalld from openings: one for each network that the node is in, and one for every other interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from hal_cluster.rules.firewall.openings import ANY_NETWORK, FirewallError, Opening, Ports
from hal_cluster.rules.firewall.shares import WRITTEN

DEFAULT_ZONE = "other"
LONGEST_NAME = 17  # max_zone_name_len() of firewalld 0.6.3: names of chains in netfilter have an end
_BUILT_IN = frozenset(
    ("block", "dmz", "drop", "external", "home", "internal", "public", "trusted", "work", DEFAULT_ZONE)
)


@dataclass(frozen=True)
class Zone:
    """What one zone lets in. ``trusted``: everything."""

    name: str
    description: str
    interface: str | None = None
    trusted: bool = False
    ports: tuple[Ports, ...] = ()
    rules: tuple[str, ...] = ()
    xml_rules: tuple[str, ...] = field(default=(), repr=False)

    def xml(self) -> str:
        """The file below /etc/firewalld/zones, in the form that firewalld 0.6 and 1 read."""
        lines = [
            '<?xml version="1.0" encoding="utf-8"?>',
            WRITTEN,
            '<zone target="ACCEPT">' if self.trusted else "<zone>",
            f"  <short>{escape(self.name)}</short>",
            f"  <description>{escape(self.description)}</description>",
        ]
        if self.interface:
            lines.append(f"  <interface name={quoteattr(self.interface)}/>")
        lines += [f'  <port port="{ports.range}" protocol="{ports.protocol}"/>' for ports in self.ports]
        return "\n".join([*lines, *self.xml_rules, "</zone>", ""])

    def shown(self) -> list[str]:
        """The lines that the role's script ``open`` prints of this zone when it is in force."""
        lines = [f"{self.name} target {'ACCEPT' if self.trusted else 'default'}"]
        if self.interface:
            lines.append(f"{self.name} interface {self.interface}")
        lines += [f"{self.name} port {ports}" for ports in self.ports]
        return lines + [f"{self.name} rule {rule}" for rule in self.rules]


def zones(
    openings: Sequence[Opening], networks: Iterable[str], interfaces: Mapping[str, str], trusted: Iterable[str]
) -> list[Zone]:
    """Return a zone for each network of ``interfaces`` (network -> interface), and the default one, sorted by name.

    ``networks`` are all of the model: a network that is in none of them is a slip.
    """
    known = set(networks)
    named = {*interfaces, *trusted, *(network for opening in openings for network in opening.networks)}
    for name in named - {ANY_NETWORK}:
        if name not in known:
            raise FirewallError(f"unknown network {name}; the model has {', '.join(sorted(known))}")
    free = set(trusted)
    made = [_zone(name, interfaces[name], openings, name in free) for name in sorted(interfaces)]
    rest = [opening for opening in openings if ANY_NETWORK in opening.networks]
    ports, rules = _contents(rest)
    made.append(
        Zone(
            DEFAULT_ZONE,
            "Every interface that the site model does not name.",
            ports=ports,
            rules=tuple(rule for rule, _ in rules),
            xml_rules=tuple(xml for _, xml in rules),
        )
    )
    return sorted(made, key=lambda zone: zone.name)


def _zone(name: str, interface: str, openings: Sequence[Opening], trusted: bool) -> Zone:
    if len(name) > LONGEST_NAME:
        raise FirewallError(f"network {name}: firewalld takes names of zones up to {LONGEST_NAME} characters")
    if name in _BUILT_IN:
        raise FirewallError(f"network {name}: a zone of firewalld has this name; rename the network")
    description = f"Network {name} of the site model."
    if trusted:
        return Zone(name, description, interface, trusted=True)
    ports, rules = _contents(
        [opening for opening in openings if name in opening.networks or ANY_NETWORK in opening.networks]
    )
    return Zone(
        name,
        description,
        interface,
        ports=ports,
        rules=tuple(rule for rule, _ in rules),
        xml_rules=tuple(xml for _, xml in rules),
    )


def _contents(openings: Iterable[Opening]) -> tuple[tuple[Ports, ...], list[tuple[str, str]]]:
    """Return ports that are open to everybody, and (rule as firewalld prints it, as its file has it) for the others."""
    everybody: list[Ports] = []
    limited: dict[tuple[str, str], list[Ports]] = {}
    for opening in openings:
        if opening.sources is None:
            everybody += opening.ports
            continue
        for source in opening.sources:
            address = str(source.network_address) if source.num_addresses == 1 else str(source)
            limited.setdefault((f"ipv{source.version}", address), []).extend(opening.ports)
    rules = []
    for (family, address), ports in sorted(limited.items()):
        for opened in merged(ports):
            port = f'port="{opened.range}" protocol="{opened.protocol}"'
            shown = f'rule family="{family}" source address="{address}" port {port} accept'
            xml = (
                f'  <rule family="{family}">\n    <source address="{address}"/>\n'
                f"    <port {port}/>\n    <accept/>\n  </rule>"
            )
            rules.append((shown, xml))
    return merged(everybody), rules


def merged(ports: Iterable[Ports]) -> tuple[Ports, ...]:
    """Return the same ports without overlaps, sorted: firewalld 1 would show a range that covers others alone."""
    made: list[Ports] = []
    for opened in sorted(set(ports)):
        last = made[-1] if made else None
        if last and last.protocol == opened.protocol and opened.first <= last.last:
            made[-1] = Ports(opened.protocol, last.first, max(last.last, opened.last))
        else:
            made.append(opened)
    return tuple(made)
