"""Bridges that a virtual cluster left behind when its containers were killed from outside, as a cut-off CI job's are.

podman then knows nothing of them, but refuses a new network with the addresses that they still have.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from testbed.run import PODMAN, as_root, capture, say

PODMANS = re.compile(r"podman[0-9]+")  # the names that netavark gives; a bridge of another name is not ours to touch


def remove_abandoned(cidr: str) -> None:
    """Remove bridges of podman's that have an address of this network and belong to no network podman knows."""
    bridges = json.loads(capture(["ip", "-json", "address", "show", "type", "bridge"]) or "[]")
    networks = json.loads(capture([PODMAN, "network", "ls", "--format=json"]) or "[]")
    for name in abandoned(bridges, networks, cidr):
        say(f"removing {name}: a bridge left from earlier virtual nodes, with an address of {cidr}")
        capture(as_root(["ip", "link", "delete", name]))


def abandoned(bridges: Iterable[Mapping[str, Any]], networks: Iterable[Mapping[str, Any]], cidr: str) -> list[str]:
    """Return the bridges (`ip -json address`) that no network (`podman network ls`) owns and that are in the way."""
    owned = {network.get("network_interface") for network in networks}
    wanted = ipaddress.ip_network(cidr)
    return [
        bridge["ifname"]
        for bridge in bridges
        if PODMANS.fullmatch(bridge.get("ifname", ""))
        and bridge["ifname"] not in owned
        and any(
            address.get("family") == "inet" and ipaddress.ip_address(address["local"]) in wanted
            for address in bridge.get("addr_info", ())
        )
    ]
