# -*- coding: utf-8 -*-
"""What the kernel has of interfaces, from the text that ip prints (iproute 4.11 has no JSON) and from /sys and /proc.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping, Sequence  # noqa: F401  in comments

_LINK = re.compile(r"^\d+: ([^:@\s]+)(?:@[^:\s]+)?: <([^>]*)> (.*)$")
_ADDRESS = re.compile(r"^\d+: (\S+)\s+inet (\S+) (.*)$")
#: What /proc/net/bonding calls the modes: bond_mode_name() in drivers/net/bonding/bond_main.c.
BOND_MODES = {
    "load balancing (round-robin)": "balance-rr",
    "fault-tolerance (active-backup)": "active-backup",
    "load balancing (xor)": "balance-xor",
    "fault-tolerance (broadcast)": "broadcast",
    "IEEE 802.3ad Dynamic link aggregation": "802.3ad",
    "transmit load balancing": "balance-tlb",
    "adaptive load balancing": "balance-alb",
}


def links(text):
    # type: (str) -> dict[str, dict[str, Any]]
    """Return {device: {up, mtu, mac, master}} of `ip -o link`."""
    devices = {}
    for line in text.splitlines():
        match = _LINK.match(line)
        if not match:
            continue
        words = match.group(3).replace("\\", " ").split()
        after = dict(zip(words, words[1:]))
        mac = next((after[word] for word in words[:-1] if word.startswith("link/")), None)
        devices[match.group(1)] = {
            "up": "UP" in match.group(2).split(","),
            "mtu": int(after["mtu"]),
            "mac": mac,
            "master": after.get("master"),
        }
    return devices


def addresses(text):
    # type: (str) -> dict[str, list[dict[str, str | None]]]
    """Return {device: [{address, broadcast}]} of `ip -o -4 addr`; the address with its prefix."""
    by_device = {}  # type: dict[str, list[dict[str, str | None]]]
    for line in text.splitlines():
        match = _ADDRESS.match(line)
        if match:
            words = match.group(3).split()
            broadcast = words[words.index("brd") + 1] if "brd" in words else None
            by_device.setdefault(match.group(1), []).append({"address": match.group(2), "broadcast": broadcast})
    return by_device


def default_routes(text):
    # type: (str) -> dict[str, list[str | None]]
    """Return {device: [gateway]} of `ip -4 route show default`; a route without a gateway has None."""
    gateways = {}  # type: dict[str, list[str | None]]
    for line in text.splitlines():
        words = line.split()
        after = dict(zip(words, words[1:]))
        if words[:1] == ["default"] and "dev" in after:
            gateways.setdefault(after["dev"], []).append(after.get("via"))
    return gateways


def bond(text):
    # type: (str) -> dict[str, Any]
    """Return {mode, members} of /proc/net/bonding/<bond>; the mode in the words of BONDING_OPTS."""
    state = {"mode": None, "members": []}  # type: dict[str, Any]
    for line in text.splitlines():
        key, _, value = line.partition(": ")
        if key == "Bonding Mode":
            name = value.split(" (fail_over_mac")[0].strip()
            state["mode"] = BOND_MODES.get(name, name)
        elif key == "Slave Interface":
            state["members"].append(value.strip())
    return state


def server_address(ssh_connection):
    # type: (str | None) -> str | None
    """Return the address that the connection was made to, from SSH_CONNECTION: its third word (sshd, session.c)."""
    return _connection(ssh_connection)[2]


def client_address(ssh_connection):
    # type: (str | None) -> str | None
    """Return the address that the connection came from."""
    return _connection(ssh_connection)[0]


def _connection(text):
    # type: (str | None) -> Sequence[str | None]
    words = (text or "").split()
    if len(words) != 4:
        return [None] * 4
    return [word.partition("%")[0][7 if word.startswith("::ffff:") else 0:] for word in words]


def device_of_route(text):
    # type: (str) -> str | None
    """Return the device of `ip -o route get ADDRESS`, None if there is no such route."""
    words = text.split()
    return dict(zip(words, words[1:])).get("dev")


def head_of(device):
    # type: (Mapping[str, Any]) -> str
    """Return the interface that is brought up and taken down for a declared one: its bond, or itself."""
    return str(device.get("master") or device["name"])


def foreign(device, link):
    # type: (Mapping[str, Any], Mapping[str, Any] | None) -> str | None
    """Return what makes ifup refuse an interface for ever, None if nothing does."""
    wanted, has = device.get("mac"), (link or {}).get("mac")
    if wanted and has and has.lower() != wanted.lower():
        return "%s has the MAC %s, the model says %s" % (device["name"], has.lower(), wanted.lower())
    return None


def differences(device, now):
    # type: (Mapping[str, Any], Mapping[str, Any]) -> list[str]
    """Return what of a declared interface is not in force, as words.

    `now`: what the functions above returned, as links, addresses, routes, modes and bonds.
    """
    name = device["name"]
    link = now["links"].get(name)
    if link is None:
        return ["does not exist"]
    differing = []
    if not link["up"]:
        differing.append("is down")
    if link["master"] != device.get("master"):
        differing.append("is %s, not %s" % (_membership(link["master"]), _membership(device.get("master"))))
    if device.get("mtu") and link["mtu"] != device["mtu"]:
        differing.append("has MTU %d, not %d" % (link["mtu"], device["mtu"]))
    if device.get("mode") and now["modes"].get(name) != device["mode"]:
        differing.append("is in %s mode, not %s" % (now["modes"].get(name) or "no", device["mode"]))
    if device.get("members"):
        differing += _of_bond(device, now["bonds"].get(name) or {"mode": None, "members": []})
    return differing + _of_addresses(device, now)


def ipoib_differs(device, now):
    # type: (Mapping[str, Any], Mapping[str, Any]) -> bool
    """Return whether an interface of IPoIB that is up has another mode or MTU than declared.

    In connected mode a packet may have 65520 bytes, in datagram mode what the fabric carries at once, 2044 or 4092
    (Linux, Documentation/infiniband/ipoib.rst): nodes of both kinds do not get through to each other with large ones.
    """
    name = device["name"]
    link, mode = now["links"].get(name), now["modes"].get(name)
    if not device.get("mode") or mode is None or not link or not link["up"]:
        return False
    return mode != device["mode"] or bool(device.get("mtu") and link["mtu"] != device["mtu"])


def _membership(master):
    # type: (str | None) -> str
    return "a member of %s" % master if master else "a member of no bond"


def _of_bond(device, bond_now):
    # type: (Mapping[str, Any], Mapping[str, Any]) -> list[str]
    differing = []
    if bond_now["mode"] != device["bond_mode"]:
        differing.append("is a bond in mode %s, not %s" % (bond_now["mode"], device["bond_mode"]))
    if sorted(bond_now["members"]) != sorted(device["members"]):
        differing.append("has the members %s, not %s" % (_words(bond_now["members"]), _words(device["members"])))
    return differing


def _of_addresses(device, now):
    # type: (Mapping[str, Any], Mapping[str, Any]) -> list[str]
    differing = []
    listed = [entry["address"] for entry in now["addresses"].get(device["name"], [])]
    wanted = [device["address"]] if device.get("address") else []
    if sorted(listed) != sorted(wanted):
        differing.append("has %s, not %s" % (_words(listed), _words(wanted)))
    gateways = [gateway or "no gateway" for gateway in now["routes"].get(device["name"], [])]
    declared = [device["gateway"]] if device.get("gateway") else []
    if gateways != declared:
        differing.append("has the default route by %s, not by %s" % (_words(gateways), _words(declared)))
    return differing


def _words(some):
    # type: (Iterable[str]) -> str
    return ", ".join(sorted(some)) or "none"
