"""Zones let in what was declared for their network and nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal_cluster.rules.firewall.openings import FirewallError, Ports, opening
from hal_cluster.rules.firewall.zones import Zone, merged, zones

NETWORKS = ("management", "ipoib", "access", "bmc")
SSH = {"id": "ssh", "ports": ["22/tcp"], "networks": ["all"], "why": "the way in"}


def made(*entries: dict[str, Any], interfaces: dict[str, str] | None = None, trusted: Iterable[str] = ()) -> list[Zone]:
    found = [opening({"why": "x", "id": "x", **entry}) for entry in entries]
    return zones(found, NETWORKS, interfaces or {"management": "eno1", "access": "eno2"}, trusted)


def shown(*entries: dict[str, Any], **more: Any) -> list[str]:
    return [line for zone in made(*entries, **more) for line in zone.shown()]


def test_an_opening_is_in_the_zones_of_its_networks_and_in_no_other() -> None:
    assert shown(SSH, {"ports": ["80/tcp"], "networks": ["access", "ipoib"]}) == [
        "access target default",
        "access interface eno2",
        "access port 22/tcp",
        "access port 80/tcp",
        "management target default",
        "management interface eno1",
        "management port 22/tcp",
        "other target default",
        "other port 22/tcp",
    ]


def test_a_trusted_network_lets_in_everything_and_lists_nothing() -> None:
    assert shown(SSH, interfaces={"management": "eno1", "ipoib": "ib0"}, trusted=["ipoib"])[:2] == [
        "ipoib target ACCEPT",
        "ipoib interface ib0",
    ]


def test_ports_for_some_addresses_are_rules_and_not_open_to_others() -> None:
    zone = next(
        one
        for one in made({"ports": ["8086/tcp"], "from": ["192.0.2.10", "2001:db8::/64"]})
        if one.name == "management"
    )
    assert zone.ports == ()
    assert zone.rules == (
        'rule family="ipv4" source address="192.0.2.10" port port="8086" protocol="tcp" accept',
        'rule family="ipv6" source address="2001:db8::/64" port port="8086" protocol="tcp" accept',
    )
    rules = ET.fromstring(zone.xml()).findall("rule")
    assert [rule.get("family") for rule in rules] == ["ipv4", "ipv6"]
    assert [rule.find("source").get("address") for rule in rules] == ["192.0.2.10", "2001:db8::/64"]  # type: ignore[union-attr]
    assert all(rule.find("accept") is not None for rule in rules)


def test_a_file_says_what_the_zone_says() -> None:
    for zone in made(SSH, {"ports": ["6818/tcp", "123/udp", "60000-61000/tcp"]}, trusted=["access"]):
        root = ET.fromstring(zone.xml())
        assert root.tag == "zone"
        assert root.get("target") == ("ACCEPT" if zone.trusted else None)
        assert [one.get("name") for one in root.findall("interface")] == ([zone.interface] if zone.interface else [])
        assert [f"{one.get('port')}/{one.get('protocol')}" for one in root.findall("port")] == [
            str(one) for one in zone.ports
        ]


@pytest.mark.parametrize(
    ("entry", "more", "message"),
    [
        ({"ports": ["1/tcp"], "networks": ["managment"]}, {}, "unknown network managment; the model has access, bmc, "),
        ({**SSH}, {"interfaces": {"mangement": "eno1"}}, "unknown network mangement; "),
        ({**SSH}, {"trusted": ["ib"]}, "unknown network ib; "),
    ],
)
def test_a_network_that_the_model_does_not_have_is_refused(
    entry: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(FirewallError, match=message):
        made(entry, **more)


@pytest.mark.parametrize(("name", "message"), [("public", "has this name"), ("a" * 18, "up to 17 characters")])
def test_a_zone_needs_a_name_that_firewalld_takes(name: str, message: str) -> None:
    with pytest.raises(FirewallError, match=message):
        zones([], [name], {name: "eno1"}, [])


PORTS = st.builds(
    lambda protocol, first, length: Ports(protocol, first, min(65535, first + length)),
    st.sampled_from(["tcp", "udp"]),
    st.integers(1, 300),
    st.integers(0, 20),
)


@given(st.lists(PORTS, max_size=12))
def test_merging_opens_the_same_ports_without_overlap(ports: list[Ports]) -> None:
    def numbers(of: Iterable[Ports]) -> list[tuple[str, int]]:
        return [(one.protocol, port) for one in of for port in range(one.first, one.last + 1)]

    result = merged(ports)
    assert sorted(set(numbers(ports))) == sorted(numbers(result))
    assert len(set(numbers(result))) == len(numbers(result))
