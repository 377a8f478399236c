"""An opening: ports that a role of a node needs, as its firewall.yml says once templates are filled in."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from hal_cluster.rules.errors import RuleError

ANY_NETWORK = "all"
FIELDS = ("id", "ports", "why", "networks", "from", "each", "when")
REQUIRED = ("id", "ports", "why")

_PORT = re.compile(r"(\d{1,5})(?:-(\d{1,5}))?/(tcp|udp)")


class FirewallError(RuleError):
    """The message says where and what."""


@dataclass(frozen=True, order=True)
class Ports:
    """A port or a range of them; ``last`` is ``first`` for one."""

    protocol: str
    first: int
    last: int

    @property
    def range(self) -> str:
        """As firewalld writes it: 22 or 60000-61000."""
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def __str__(self) -> str:
        return f"{self.range}/{self.protocol}"


@dataclass(frozen=True)
class Opening:
    """Ports that are open in some networks of the model, for everybody there or for some addresses.

    ``each``: how many connections one address may have there at once; None: as many as it likes.
    """

    id: str
    ports: tuple[Ports, ...]
    networks: tuple[str, ...]
    sources: tuple[IPv4Network | IPv6Network, ...] | None
    why: str
    each: int | None = None


def parse_ports(text: object) -> Ports:
    """Return the ports of 22/tcp, 60000-61000/tcp, 123/udp."""
    match = _PORT.fullmatch(text) if isinstance(text, str) else None
    if match:
        first, last = int(match[1]), int(match[2] or match[1])
        if 1 <= first <= last <= 65535:
            return Ports(match[3], first, last)
    raise FirewallError(f'"{text}" is not a port; write 22/tcp, 60000-61000/tcp or 123/udp')


def opening(entry: Mapping[str, Any]) -> Opening:
    """Return one entry of a firewall.yml, whose templates are filled in, without its ``when``."""
    check_fields(entry)
    try:
        ports = tuple(parse_ports(text) for text in _listed(entry["ports"]))
        sources = None if entry.get("from") is None else _sources(_listed(entry["from"]))
        each = None if entry.get("each") is None else _each(entry["each"], ports)
    except FirewallError as error:
        raise FirewallError(f"{entry['id']}: {error}") from None
    if not ports:
        raise FirewallError(f"{entry['id']}: no ports")
    networks = tuple(str(network) for network in _listed(entry.get("networks", "management")))
    return Opening(str(entry["id"]), ports, networks, sources, str(entry["why"]), each)


def check_fields(entry: object) -> None:
    """Raise FirewallError for an entry that is not a mapping, or with a field too many or too few."""
    if not isinstance(entry, Mapping):
        raise FirewallError(f"an entry is a mapping of {', '.join(FIELDS)}, not {entry!r}")
    name = entry.get("id", "an entry")
    for field in entry:
        if field not in FIELDS:
            raise FirewallError(f"{name}: unknown field {field}; there are {', '.join(FIELDS)}")
    for field in REQUIRED:
        if not entry.get(field):
            raise FirewallError(f"{name}: {field} is missing")


def _each(value: object, ports: Iterable[Ports]) -> int:
    number = int(value) if isinstance(value, (int, str)) and re.fullmatch(r"[1-9]\d{0,4}", str(value)) else 0
    if not number:
        raise FirewallError(f"each is {value!r}; write how many connections of one address: 1 or more")
    if other := [str(port) for port in ports if port.protocol != "tcp"]:
        raise FirewallError(f"each is for connections, and {other[0]} has none; make two entries of it")
    return number


def _listed(value: object) -> list[object]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        return list(value)
    raise FirewallError(f"{value!r} is neither text nor a list")


def _sources(texts: Iterable[object]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Return addresses and networks in as few networks as cover exactly them."""
    parsed: dict[int, list[Any]] = {4: [], 6: []}
    for text in texts:
        try:
            network = ipaddress.ip_network(str(text))
        except ValueError:
            raise FirewallError(f'"{text}" is neither an address nor a network') from None
        parsed[network.version].append(network)
    return tuple(covering for version in (4, 6) for covering in ipaddress.collapse_addresses(parsed[version]))
