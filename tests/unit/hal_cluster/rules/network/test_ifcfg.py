"""Files of network scripts, from a node of the model."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import Any

import pytest
from ansible.module_utils.hal_node.network.files import HEADER

from hal_cluster.rules.network import Device, NetworkError, Policy, devices

NETWORKS: dict[str, dict[str, Any]] = {
    "management": {"kind": "ethernet", "prefix": 24, "gateway": "10.1.0.254", "mtu": None},
    "ipoib": {"kind": "infiniband", "prefix": 24, "gateway": None, "mtu": None},
    "access": {"kind": "ethernet", "prefix": 25, "gateway": "192.0.2.1", "mtu": 9000},
}
NODE: dict[str, Any] = {
    "addresses": {"management": "10.1.0.5", "ipoib": "10.1.2.5", "access": "192.0.2.5", "bmc": "10.1.1.5"},
    "macs": {"management": "02:00:00:00:00:0a", "bmc": "02:00:00:00:01:0a"},
}
INTERFACES: dict[str, dict[str, Any]] = {
    "management": {"name": "eno1", "members": [], "bond_mode": None},
    "ipoib": {"name": "ib0"},
    "access": {"name": "bond0", "members": ["eno2", "eno3"], "bond_mode": "802.3ad"},
}
POLICY = Policy(
    route_order=["access", "management"],
    ipoib_mode="connected",
    bonding_options="miimon=100",
    zones=["management", "access"],
)


def made(node: dict[str, Any] = NODE, interfaces: dict[str, Any] = INTERFACES, **policy: Any) -> dict[str, Device]:
    networks: dict[str, dict[str, Any]] = policy.pop("networks", NETWORKS)
    return {one.name: one for one in devices(node, networks, interfaces, replace(POLICY, **policy))}


def lines(device: Device) -> list[str]:
    return device.text().splitlines()[1:]


def test_files_are_what_ifup_reads() -> None:
    common = ["ONBOOT=yes", "BOOTPROTO=none", "NM_CONTROLLED=no"]
    quiet = ["IPV6INIT=no", "PEERDNS=no"]
    assert {device.path: lines(device) for device in made().values()} == {
        "/etc/sysconfig/network-scripts/ifcfg-bond0": [
            "DEVICE=bond0", "TYPE=Bond", *common, *quiet, "IPADDR=192.0.2.5", "PREFIX=25", "GATEWAY=192.0.2.1",
            "DEFROUTE=yes", "MTU=9000", "BONDING_MASTER=yes", 'BONDING_OPTS="mode=802.3ad miimon=100"', "ZONE=access",
        ],
        "/etc/sysconfig/network-scripts/ifcfg-eno1": [
            "DEVICE=eno1", "TYPE=Ethernet", "HWADDR=02:00:00:00:00:0A", *common, *quiet, "IPADDR=10.1.0.5", "PREFIX=24",
            "DEFROUTE=no", "ZONE=management",
        ],
        "/etc/sysconfig/network-scripts/ifcfg-eno2": [
            "DEVICE=eno2", "TYPE=Ethernet", *common, "MASTER=bond0", "SLAVE=yes",
        ],
        "/etc/sysconfig/network-scripts/ifcfg-eno3": [
            "DEVICE=eno3", "TYPE=Ethernet", *common, "MASTER=bond0", "SLAVE=yes",
        ],
        "/etc/sysconfig/network-scripts/ifcfg-ib0": [
            "DEVICE=ib0", "TYPE=InfiniBand", *common, *quiet, "IPADDR=10.1.2.5", "PREFIX=24", "DEFROUTE=no",
            "MTU=65520", "CONNECTED_MODE=yes",
        ],
    }  # fmt: skip


def test_what_has_to_be_true_of_each_is_known_beside_its_file() -> None:
    found = made()
    bond, member, port = found["bond0"], found["eno2"], found["ib0"]
    assert (bond.address, bond.mtu, bond.mac, bond.gateway) == ("192.0.2.5/25", 9000, None, "192.0.2.1")
    assert (bond.members, bond.bond_mode, bond.mode) == (("eno2", "eno3"), "802.3ad", None)
    assert (member.master, member.address) == ("bond0", None)
    assert (port.mode, port.mtu) == ("connected", 65520)
    assert (found["eno1"].mac, found["eno1"].gateway) == ("02:00:00:00:00:0a", None)


def test_a_bond_of_infiniband_ports_is_in_the_mode_of_its_members() -> None:
    bond = {"name": "bond1", "members": ["ib0", "ib1"], "bond_mode": "active-backup"}
    found = made(interfaces={"ipoib": bond}, route_order=[])
    assert [(one.name, one.mode) for one in found.values()] == [
        ("bond1", None), ("ib0", "connected"), ("ib1", "connected"),
    ]  # fmt: skip
    assert "CONNECTED_MODE=yes" in lines(found["ib1"])
    assert not any(line.startswith("CONNECTED_MODE") for line in lines(found["bond1"]))


def test_datagram_is_said_and_unmanaged_is_silent() -> None:
    datagram = made(ipoib_mode="datagram")["ib0"]
    assert [line for line in lines(datagram) if line.startswith(("MTU", "CONN"))] == ["MTU=2044", "CONNECTED_MODE=no"]
    silent = made(ipoib_mode=None)["ib0"]
    assert not [line for line in lines(silent) if line.startswith(("MTU", "CONN"))]


def test_one_interface_has_the_default_route_and_it_is_the_first_wanted() -> None:
    found = made(route_order=["management", "access"])
    assert [name for name, one in found.items() if "DEFROUTE=yes" in lines(one)] == ["eno1"]
    assert [name for name, one in found.items() if one.gateway] == ["eno1"]


def test_a_network_that_the_node_is_not_in_has_no_file() -> None:
    assert list(made({"addresses": {"management": "10.1.0.5"}, "macs": {}})) == ["eno1"]


def test_what_a_site_adds_is_read_by_a_shell_as_it_was_written() -> None:
    value = '-K eno1 gro on; $HOME `id` "quoted" it\'s \\'
    text = made(extra={"management": {"ETHTOOL_OPTS": value}})["eno1"].text()
    read = subprocess.run(
        ["sh", "-c", f'{text}\nprintf %s "$ETHTOOL_OPTS"'], capture_output=True, text=True, check=True
    )
    assert read.stdout == value


def test_the_name_of_the_interface_is_put_in_by_the_shell() -> None:
    text = made(extra={"management": {"ETHTOOL_OPTS": "-G ${DEVICE} rx 4096 $HOME"}})["eno1"].text()
    read = subprocess.run(
        ["sh", "-c", f'{text}\nprintf %s "$ETHTOOL_OPTS"'], capture_output=True, text=True, check=True
    )
    assert read.stdout == "-G eno1 rx 4096 $HOME"


def test_a_site_may_have_its_name_servers_written_by_ifup() -> None:
    found = lines(made(extra={"access": {"PEERDNS": "yes", "DNS1": "192.0.2.53"}})["bond0"])
    assert {"PEERDNS=yes", "DNS1=192.0.2.53"} <= set(found)
    assert "PEERDNS=no" not in found


def test_the_module_knows_its_own_files() -> None:
    assert all(one.text().startswith(HEADER) for one in made().values())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"interfaces": {"managment": {"name": "eno1"}}}, "unknown network managment; the model has access, ipoib, "),
        ({"route_order": ["acess"]}, "unknown network acess"),
        ({"extra": {"ipob": {"A": "b"}}}, "unknown network ipob"),
        ({"interfaces": {**INTERFACES, "ipoib": {"name": "eno1"}}}, "eno1 is in network ipoib and in management"),
        ({"extra": {"management": {"IPADDR": "10.9.9.9"}}}, "network management: IPADDR is the role's own"),
        (
            {"ipoib_mode": "datagram", "networks": {**NETWORKS, "ipoib": {**NETWORKS["ipoib"], "mtu": 65520}}},
            "network ipoib: MTU 65520, and IPoIB in datagram mode has 2044",
        ),
        ({"node": {"addresses": {"management": "2001:db8::5"}, "macs": {}}}, "2001:db8::5 is of IPv6"),
    ],
)
def test_a_slip_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        made(**changes)
