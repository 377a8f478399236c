"""How many connections one address may have to a port at once: rules that firewalld hands to netfilter as they are.

Zones of firewalld have no such limit, and neither has a web server of CentOS 7. netfilter counts what an address has
open (connlimit, iptables-extensions(8)) and drops the first packet of one more. Whoever asks tries again, as TCP does,
and comes in when there is room. The rules stand before all zones: they hold in a trusted network, too.
"""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hal_cluster.rules.firewall.openings import FirewallError, Opening, Ports

FILE = "direct.xml"
WRITTEN = "<!-- Written by the role firewall; changes made here are lost. -->"
"""The second line of each file of firewalld that the role writes."""
MASKS = {"ipv4": 32, "ipv6": 128}
"""An address is counted alone. Both: what listens for IPv6 is reached by an address of the link, too."""


@dataclass(frozen=True)
class Share:
    """What one address may have of a port."""

    ports: Ports
    each: int

    @property
    def rules(self) -> list[tuple[str, str]]:
        """(family, rule as iptables takes it)."""
        port = self.ports.range.replace("-", ":")
        counted = f"-p tcp --syn --dport {port} -m connlimit --connlimit-above {self.each} --connlimit-mask"
        return [(family, f"{counted} {mask} -j DROP") for family, mask in MASKS.items()]


def shares(openings: Iterable[Opening]) -> list[Share]:
    """Return the limits, sorted by port; of several for the same ports the smallest."""
    limits: dict[Ports, int] = {}
    for ports, each in ((ports, opening.each) for opening in openings if opening.each for ports in opening.ports):
        limits[ports] = min(each, limits.get(ports, each))
    return [Share(ports, each) for ports, each in sorted(limits.items())]


def xml(limits: Iterable[Share]) -> str:
    """Return the file FILE below /etc/firewalld, in the form that firewalld 0.6 and 1 read."""
    rules = [rule for share in limits for rule in share.rules]
    lines = [
        f'  <rule ipv="{family}" table="filter" chain="INPUT" priority="0">{rule}</rule>' for family, rule in rules
    ]
    head = '<?xml version="1.0" encoding="utf-8"?>'
    return "\n".join([head, WRITTEN, "<direct>", *lines, "</direct>", ""])


def shown(limits: Iterable[Share]) -> list[str]:
    """Return the lines that the role's script ``open`` prints of them when they are in force."""
    return [f"direct rule {family} filter INPUT 0 {rule}" for share in limits for family, rule in share.rules]


def files(zones: Iterable[Mapping[str, Any]], there: str, kept: Iterable[str]) -> list[dict[str, str]]:
    """Return the files of these zones as module hal_files takes them; direct rules beside those of others.

    `zones`: of lookup hal_firewall. FirewallError where `keeping` cannot tell what to keep.
    Each file has path and content. They are written in one call, so that firewalld reads all before one is replaced.
    `there`: the direct.xml that the node has, empty where it has none. `kept`: regular expressions over a whole rule of
    others; chains and passthrough elements stay all.
    """
    kept = list(kept)
    return [
        {
            "path": f"/etc/firewalld/{zone['path']}",
            "content": keeping(zone["xml"], there, kept) if zone["path"] == FILE else zone["xml"],
        }
        for zone in zones
    ]


def keeping(ours: str, there: str, kept: Iterable[str]) -> str:
    """Return ours, the file of this role, with what the file on a node has of others besides.

    Of its rules those stay that an expression of ``kept`` describes whole, as firewalld reads them
    (firewalld.direct(5)): "ipv4 filter f2b-sshd 0 -j DROP". Chains stay, and what it hands to iptables unseen: neither
    is ever compared. Nothing stays of a file that firewalld cannot read either: `there.losses` has that asked for.
    FirewallError where an expression is not one of Python's.
    """
    mine = [read(rule) for rule in ET.fromstring(ours)]
    try:
        others = [element for element in ET.fromstring(there) if read(element) not in mine]
    except (ET.ParseError, ValueError):
        return ours  # an empty one, too
    try:
        wanted = [re.compile(expression) for expression in kept]
        staying = [
            element
            for element in others
            if element.tag != "rule" or any(expression.fullmatch(read(element)) for expression in wanted)
        ]
    except re.error as error:
        raise FirewallError(
            f"firewall_kept_direct_rules: {error.pattern!r} is not a regular expression: {error}"
        ) from None
    for element in staying:
        element.tail = None
    lines = [f"  {ET.tostring(element, encoding='unicode')}\n" for element in staying]
    return ours.replace("</direct>\n", "".join([*lines, "</direct>\n"]))


def read(element: ET.Element) -> str:
    """Return a rule of direct.xml as `firewall-cmd --direct --get-all-rules` shows it."""
    words = [element.get(name, "") for name in ("ipv", "table", "chain", "priority")]
    return shlex.join([*words, *shlex.split(element.text or "")])
