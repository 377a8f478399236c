"""What the kernel has of interfaces, and how it differs from what was declared."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hal_node.network.live import (
    addresses,
    bond,
    client_address,
    default_routes,
    device_of_route,
    differences,
    foreign,
    links,
    server_address,
)

from .node import Node

ETH0: dict[str, Any] = {
    "name": "eth0",
    "address": "10.65.55.101/24",
    "mtu": 1500,
    "mac": "02:48:41:4C:02:01",
    "gateway": None,
    "master": None,
}
BOND: dict[str, Any] = {
    "name": "bond0",
    "address": "192.0.2.5/25",
    "members": ["eno2", "eno3"],
    "bond_mode": "802.3ad",
}


def link(**changes: Any) -> dict[str, Any]:
    return {"up": True, "mtu": 1500, "mac": "02:48:41:4c:02:01", "master": None, **changes}


def now(**changes: Any) -> dict[str, Any]:
    """A node on which ETH0 is in force."""
    in_force = [{"address": "10.65.55.101/24", "broadcast": "10.65.55.255"}]
    calm = {"links": {"eth0": link()}, "addresses": {"eth0": in_force}, "routes": {}, "modes": {}, "bonds": {}}
    return {**calm, **changes}


def test_links_are_read(captures: Path) -> None:
    seen = links((captures / "link.txt").read_text())
    assert sorted(seen) == ["eth0", "ib0", "lo"]
    assert seen["eth0"] == link()


def test_a_link_of_a_bond_and_one_that_is_down() -> None:
    text = (
        "2: eno2: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP mode DEFAULT group"
        " default qlen 1000\\    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff\n"
        "3: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc mq state DOWN mode DEFAULT group default qlen 256\\    "
        "link/infiniband a0:00:02:20:fe:80:00:00:00:00:00:00:e4:1d:2d:03:00:50:df:31 brd 00:ff:ff:ff:ff\n"
    )
    seen = links(text)
    assert (seen["eno2"]["master"], seen["eno2"]["mtu"]) == ("bond0", 9000)
    assert (seen["ib0"]["up"], seen["ib0"]["mac"][:5]) == (False, "a0:00")


def test_every_address_is_read_with_its_broadcast(captures: Path) -> None:
    assert addresses((captures / "addr.txt").read_text())["eth0"] == [
        {"address": "10.65.55.101/24", "broadcast": "10.65.55.255"},
        {"address": "192.0.2.77/32", "broadcast": None},
    ]


def test_default_routes_by_device() -> None:
    text = "default via 10.1.0.254 dev eno1 proto static metric 100 \ndefault dev ppp0 scope link \n"
    assert default_routes(text) == {"eno1": ["10.1.0.254"], "ppp0": [None]}


def test_a_bond_is_read_from_proc(captures: Path) -> None:
    text = (captures / "bond.txt").read_text()
    assert bond(text) == {"mode": "active-backup", "members": ["eth0", "eth1"]}
    followed = text.replace("(active-backup)", "(active-backup) (fail_over_mac active)")
    assert bond(followed)["mode"] == "active-backup"
    assert bond("Bonding Mode: IEEE 802.3ad Dynamic link aggregation\n") == {"mode": "802.3ad", "members": []}


@pytest.mark.parametrize(
    ("text", "client", "server"),
    [
        ("10.65.55.1 33 10.65.55.101 22", "10.65.55.1", "10.65.55.101"),
        ("::ffff:10.65.55.1 33 ::ffff:10.66.55.101 22", "10.65.55.1", "10.66.55.101"),
        ("fe80::1%eth0 33 fe80::2%eth0 22", "fe80::1", "fe80::2"),
        ("", None, None),
        (None, None, None),
    ],
)
def test_both_ends_of_a_connection(text: str | None, client: str | None, server: str | None) -> None:
    assert (client_address(text), server_address(text)) == (client, server)


def test_the_device_by_which_answers_go_out() -> None:
    text = "192.0.2.9 via 10.1.0.254 dev eno1 src 10.1.0.5 uid 0 \\    cache"
    assert device_of_route(text) == "eno1"
    assert device_of_route("RTNETLINK answers: Network is unreachable") is None


def test_an_interface_as_declared_has_no_difference() -> None:
    assert differences(ETH0, now()) == []
    assert foreign(ETH0, link()) is None


@pytest.mark.parametrize(
    ("device", "state", "found"),
    [
        ({}, {"links": {}}, ["does not exist"]),
        ({}, {"links": {"eth0": link(up=False)}}, ["is down"]),
        ({"mtu": 9000}, {}, ["has MTU 1500, not 9000"]),
        ({"mtu": None}, {"links": {"eth0": link(mtu=1400)}}, []),
        ({}, {"addresses": {}}, ["has none, not 10.65.55.101/24"]),
        (
            {},
            {"addresses": {"eth0": [{"address": "10.65.55.101/24"}, {"address": "192.0.2.77/32"}]}},
            ["has 10.65.55.101/24, 192.0.2.77/32, not 10.65.55.101/24"],
        ),
        ({"gateway": "10.65.55.254"}, {}, ["has the default route by none, not by 10.65.55.254"]),
        ({}, {"routes": {"eth0": ["10.65.55.9"]}}, ["has the default route by 10.65.55.9, not by none"]),
        ({"gateway": "10.65.55.9"}, {"routes": {"eth0": ["10.65.55.9"]}}, []),
        ({"mode": "connected"}, {"modes": {"eth0": "datagram"}}, ["is in datagram mode, not connected"]),
        ({"mode": "connected"}, {}, ["is in no mode, not connected"]),
        (
            {},
            {"links": {"eth0": link(master="bond0")}},
            ["is a member of bond0, not a member of no bond"],
        ),
        # A member of a bond has no address of its own.
        ({"master": "bond0", "address": None}, {"links": {"eth0": link(master="bond0")}, "addresses": {}}, []),
        (
            {"master": "bond0", "address": None},
            {"links": {"eth0": link(master="bond0")}},
            ["has 10.65.55.101/24, not none"],
        ),
    ],
)
def test_each_difference_is_said(device: dict[str, Any], state: dict[str, Any], found: list[str]) -> None:
    assert differences({**ETH0, **device}, now(**state)) == found


@pytest.mark.parametrize(
    ("mode", "members", "found"),
    [
        ("802.3ad", ["eno3", "eno2"], []),
        ("active-backup", ["eno2", "eno3"], ["is a bond in mode active-backup, not 802.3ad"]),
        ("802.3ad", ["eno2"], ["has the members eno2, not eno2, eno3"]),
    ],
)
def test_each_difference_of_a_bond_is_said(mode: str, members: list[str], found: list[str]) -> None:
    state = now(
        links={"bond0": link()},
        addresses={"bond0": [{"address": "192.0.2.5/25"}]},
        bonds={"bond0": {"mode": mode, "members": members}},
    )
    assert differences(BOND, state) == found


def test_another_port_under_the_same_name_is_no_case_for_ifup() -> None:
    message = "eth0 has the MAC 02:48:41:4c:99:99, the model says 02:48:41:4c:02:01"
    assert foreign(ETH0, link(mac="02:48:41:4c:99:99")) == message


def test_what_ip_prints_beside_links_addresses_and_routes_is_passed_over() -> None:
    rest = "mtu 9000 qdisc mq master br0 state UP\\    link/ether 02:0a brd ff:ff"
    text = f"nothing\n2: vlan7@eno1: <UP,LOWER_UP> {rest}\n3: tun0: <NOARP> mtu 1400\\    link/none\nend\n"
    plain = {"mtu": 1400, "up": False, "mac": None, "master": None}
    assert links(text + "4: x: <SUPER> mtu 5 link/ether 02:0b\n") == {
        "vlan7": {"up": True, "mtu": 9000, "mac": "02:0a", "master": "br0"},
        "tun0": plain, "x": {**plain, "mtu": 5, "mac": "02:0b"},
    }  # fmt: skip
    lines = "2: eno1    inet 10.1.0.5/24 brd 10.1.0.255 scope global eno1\\  valid\n2: eno1    inet6 fe80::1/64 scope\n"
    assert addresses(lines + "3: lo inet 127.0.0.1/8 scope host lo\n") == {
        "eno1": [{"address": "10.1.0.5/24", "broadcast": "10.1.0.255"}],
        "lo": [{"address": "127.0.0.1/8", "broadcast": None}],
    }
    routed = "10.0.0.0/8 via 1.1.1.1 dev eno9\ndefault via 10.1.0.254\ndefault via 10.1.0.1 dev a\ndefault dev a\n\n"
    assert default_routes(routed) == {"a": ["10.1.0.1", None]}
    assert bond("Bonding Mode: something new\nSlave Interface: a \nMII Status: up\nSlave Interface: b\n") == {
        "mode": "something new", "members": ["a", "b"],
    }  # fmt: skip
    assert bond("") == {"mode": None, "members": []}


def test_an_interface_without_a_mac_on_one_side_is_not_another_port() -> None:
    for wanted, there in ((None, {"mac": "02:0a"}), ("02:0A", {"mac": None}), ("02:0A", {"mac": "02:0a"}), ("", None)):
        assert foreign({"name": "a", "mac": wanted}, there) is None


def test_a_bond_of_which_the_kernel_has_nothing_differs_in_all(node: Node) -> None:
    device = {"name": "b", "members": ["x", "y"], "bond_mode": "802.3ad", "address": None}
    now = {**copy.deepcopy(node.now), "links": {"b": node.now["links"]["eno1"]}, "routes": {"b": [None]}}
    assert differences(device, now) == [
        "is a bond in mode None, not 802.3ad",
        "has the members none, not x, y",
        "has the default route by no gateway, not by none",
    ]
