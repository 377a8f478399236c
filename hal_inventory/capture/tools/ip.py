"""ip -o link and ip -o -4 addr of iproute 4.11, and /proc/net/bonding: which port has which MAC, and which address."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LINK = re.compile(r"\d+: (?P<name>[^:@\s]+)(?:@\S+)?: <(?P<flags>[^>]*)>(?P<rest>.*)")
_KIND = re.compile(r"link/(?P<kind>\S+) (?P<mac>[0-9a-fA-F:]+)")
_ADDRESS = re.compile(r"\d+: (?P<name>\S+)\s+inet (?P<address>[0-9.]+)/(?P<bits>\d+)")
_SLAVE = re.compile(r"^Slave Interface: (\S+)$.*?^Permanent HW addr: (\S+)$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Link:
    """A network interface. ``mac`` is that of the hardware: a port of a bond shows the bond's otherwise."""

    name: str
    kind: str
    mac: str
    carrier: bool
    master: str | None = None


def links(text: str, bonds: Mapping[str, str]) -> dict[str, Link]:
    """Return the interfaces of ``ip -o link`` by name; ``bonds`` are the files of /proc/net/bonding."""
    permanent = {slave: mac.lower() for content in bonds.values() for slave, mac in _SLAVE.findall(content)}
    made: dict[str, Link] = {}
    for line in text.splitlines():
        match = _LINK.match(line)
        kind = _KIND.search(line)
        if match is None or kind is None:
            continue
        name = match["name"]
        master = re.search(r" master (\S+)", match["rest"])
        mac = permanent.get(name, kind["mac"].lower())
        made[name] = Link(name, kind["kind"], mac, "NO-CARRIER" not in match["flags"], master[1] if master else None)
    return made


def addresses(text: str) -> dict[str, str]:
    """Return the interface of each IPv4 address of ``ip -o -4 addr``."""
    return {
        match["address"]: match["name"].partition("@")[0] for match in map(_ADDRESS.match, text.splitlines()) if match
    }
