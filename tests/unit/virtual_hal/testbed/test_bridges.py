"""Only a bridge that podman made, that no network owns and that has our addresses is removed."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.bridges import abandoned

# Fields as printed by iproute2 6.1 `ip -json address show type bridge` and podman 4.3 `network ls --format=json`.
NETWORKS: list[dict[str, Any]] = [
    {"name": "podman", "network_interface": "podman0", "subnets": [{"subnet": "10.88.0.0/16"}]},
    {"name": "hosts-management", "network_interface": "podman1", "subnets": [{"subnet": "10.65.4.0/24"}]},
]


def bridge(name: str, *addresses: str) -> dict[str, Any]:
    """A bridge with IPv4 addresses and the link-local one every bridge has."""
    info = [{"family": "inet", "local": address, "prefixlen": 24} for address in addresses]
    info.append({"family": "inet6", "local": "fe80::d48c:f6ff:feea:1307", "prefixlen": 64})
    return {"ifindex": 7, "ifname": name, "addr_info": info}


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        pytest.param(bridge("podman3", "10.65.4.1"), ["podman3"], id="ours, nobody's"),
        pytest.param(bridge("podman1", "10.65.4.1"), [], id="owned by a network"),
        pytest.param(bridge("podman3", "10.65.5.1"), [], id="another network"),
        pytest.param(bridge("podman3"), [], id="no address"),
        pytest.param(bridge("br0", "10.65.4.1"), [], id="an administrator's"),
        pytest.param(bridge("podman3-lab", "10.65.4.1"), [], id="a name podman does not give"),
        pytest.param({}, [], id="ip prints empty objects for what a filter leaves out"),
    ],
)
def test_abandoned(found: dict[str, Any], wanted: list[str]) -> None:
    assert abandoned([found], NETWORKS, "10.65.4.0/24") == wanted
