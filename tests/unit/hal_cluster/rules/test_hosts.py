"""Lines of /etc/hosts that a rollout would lose: whose they are, and how to keep them."""

from __future__ import annotations

import pytest

from hal_cluster.rules import hosts

DECLARED = """\
# Written by the role "hosts" from the site's model; changes made here are lost.
127.0.0.1   localhost localhost.localdomain localhost4 localhost4.localdomain4
::1         localhost localhost.localdomain localhost6 localhost6.localdomain6

# management
10.64.0.101 hal01.hal.example hal01
10.64.0.102 hal02.hal.example hal02
"""
# What anaconda leaves on CentOS 7, /etc/hosts of package setup-2.8.71.
CENTOS = """\
127.0.0.1   localhost localhost.localdomain localhost4 localhost4.localdomain4
::1         localhost localhost.localdomain localhost6 localhost6.localdomain6
"""
# What cloud-init and Debian's installer leave.
CLOUD = """\
127.0.1.1 hal01.hal.example hal01
127.0.0.1 localhost
::1 ip6-localhost ip6-loopback
ff02::1 ip6-allnodes
"""


def foreign(there: str, former: str = "") -> list[str]:
    return list(hosts.foreign(there, DECLARED, former, ["hal01", "hal01.hal.example"]))


@pytest.mark.parametrize("there", ["", CENTOS, CLOUD, DECLARED, "# 10.0.0.1 nobody\n\n", "10.64.0.102 hal02 # old\n"])
def test_what_an_installer_wrote_and_what_stays_true_is_nobodys_loss(there: str) -> None:
    assert foreign(there) == []


@pytest.mark.parametrize(
    "line",
    [
        "192.0.2.20 license.example.edu license",
        "10.99.0.1 hal02",  # the model has another address
        "10.64.0.102 hal02 scratch",  # an alias of somebody's
        "127.0.0.1 license",
        "127.0.1.1 hal02",  # another node's name
        "fe80::1%eth0 gateway",
        "10.0.0.7",
        "no-address name",
    ],
)
def test_a_line_that_somebody_wrote_is_found(line: str) -> None:
    assert foreign(f"{CENTOS}{line}   # since 2019\n") == [line]


def test_a_line_of_an_earlier_rollout_is_the_roles_own() -> None:
    former = f"{DECLARED}10.64.0.117 hal17.hal.example hal17\n"
    assert foreign(former, former) == []
    assert foreign(f"{former}10.64.0.117 scratch\n", former) == ["10.64.0.117 scratch"]


def test_without_a_copy_a_file_with_the_roles_header_is_its_own() -> None:
    """As earlier versions left it, and the model has changed since."""
    former = f"{DECLARED}10.64.0.117 hal17.hal.example hal17\n"
    assert foreign(former) == []
    assert foreign(f"# by hand\n{former}") == ["10.64.0.117 hal17.hal.example hal17"]
    assert foreign(f"{former}10.64.0.117 scratch\n", former) == ["10.64.0.117 scratch"]


def test_what_is_said_can_be_declared_as_it_stands() -> None:
    said = hosts.said(["192.0.2.20 license.example.edu license", "10.99.0.1 hal02"], DECLARED)
    assert said == (
        "192.0.2.20 license.example.edu license; 10.99.0.1 hal02. To keep what the model does not have, declare "
        "hosts_extra: [{address: 192.0.2.20, names: [license.example.edu, license]}]."
    )
    assert hosts.said(["10.99.0.1 hal02"], DECLARED) == (
        "10.99.0.1 hal02. The model has other addresses for these names."
    )


def test_what_is_said_drives_no_terminal_and_ends() -> None:
    said = hosts.said([f"192.0.2.{number} x\x1b[2J{'y' * 500}" for number in range(200)], DECLARED)
    assert "\x1b" not in said
    assert "\\x1b[2J" in said
    assert "and 188 more" in said
    assert len(said) < 5000


def test_each_network_has_names_of_its_own() -> None:
    assert hosts.suffixes_of(["bmc", "ipoib", "management", "idrac", "access"]) == {
        "management": "",
        "bmc": "-bmc",
        "ipoib": "-ib",
        "idrac": "-idrac",
        "access": "-access",
    }
    networks = {"management": {"kind": "ethernet"}, "ipoib": {"kind": "infiniband"}, "idrac": {"kind": "bmc"}}
    mine = {"management": "10.0.0.1", "ipoib": "10.2.0.1", "idrac": "10.1.0.1"}
    assert hosts.network_names(mine, "n1", networks, {}) == ["n1-ib", "10.2.0.1"]
    assert hosts.network_names(mine, "n1", networks, {"ipoib": "-i"}) == ["n1-i", "10.2.0.1"]
