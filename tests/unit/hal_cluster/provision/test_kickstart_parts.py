"""A kickstart line by line, and each thing that cannot be meant, alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.kickstart import Place, Server, kickstart
from tests.unit.hal_cluster.provision.conftest import node
from tests.unit.hal_cluster.provision.test_kickstart import (
    AUTHORITY,
    DISK,
    FROM_IMAGE,
    IMAGE,
    PLACE,
    SERVER,
    TOKEN,
)


def made(**changes: Any) -> str:
    usual = {"place": PLACE, "source": FROM_IMAGE, "server": SERVER, "token": TOKEN}
    return kickstart(**{"node": node(), **usual, **changes})


def test_the_commands_of_a_kickstart() -> None:
    text = made(place=replace(PLACE, gateway="10.1.0.1"))
    assert text.partition("%pre")[0].splitlines() == [
        "# hal05: written by the toolkit for one installation. The token in it works once, for this node alone.",
        "install",
        "text",
        f"liveimg --url={FROM_IMAGE.image_url}/rootfs.tar.xz --checksum={'ab' * 32}",
        "lang en_US.UTF-8",
        "keyboard us",
        "timezone Etc/UTC --utc",
        "auth --enableshadow --passalgo=sha512",
        "# Who may come in, comes with a certificate of the site's authority.",
        "rootpw --lock",
        "selinux --enforcing",
        "firewall --enabled --ssh",
        "firstboot --disable",
        "skipx",
        "network --device=02:48:41:4c:02:05 --bootproto=static --ip=10.1.0.105 --netmask=255.255.255.0"
        " --gateway=10.1.0.1 --noipv6 --onboot=yes --activate --hostname=hal05.hal.example",
        "",
        "# The declared disk and no other: 0x50248414c0550001",
        f"ignoredisk --only-use={DISK}",
        "zerombr",
        f"clearpart --all --initlabel --drives={DISK}",
        f"bootloader --boot-drive={DISK}",
        f'part prepboot --fstype="PPC PReP Boot" --size=8 --asprimary --ondisk={DISK}',
        f"part /boot --fstype=xfs --size=1024 --ondisk={DISK}",
        f"part pv.01 --size=1 --grow --ondisk={DISK}",
        "volgroup system pv.01",
        "logvol swap --vgname=system --name=swap --fstype=swap --size=8192",
        "logvol / --vgname=system --name=root --fstype=xfs --size=1 --grow",
        "",
        "# petitboot, or iPXE, then finds no entry, and the disk is booted.",
        "reboot",
        "",
    ]
    assert text.endswith("%end\n")
    sections = ["%pre --erroronfail", "%post --erroronfail", "%onerror"]
    assert [line.partition(" --log")[0] for line in text.splitlines() if line[:1] == "%" and line != "%end"] == sections


def test_what_is_not_said_stands_nowhere() -> None:
    text = made()
    assert "--gateway" not in text
    assert "--append" not in text
    assert "%packages" not in text


@pytest.mark.parametrize("gateway", ["10.1.0.1", "10.1.0.254"])
def test_a_gateway_is_in_the_network_of_the_node(gateway: str) -> None:
    assert f"--gateway={gateway} " in made(place=replace(PLACE, gateway=gateway))
    with pytest.raises(ProvisionError) as error:
        made(place=Place("management", "255.255.255.128", "10.1.0.200"))
    assert str(error.value) == "hal05: gateway 10.1.0.200 is not in its network management"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": replace(FROM_IMAGE, image=replace(IMAGE, arch="x86_64"))}, " is for x86_64, not ppc64le"),
        ({"source": replace(FROM_IMAGE, image=replace(IMAGE, kernel="5"))}, " has kernel 5, not 4.18.0-80.7.2.el7"),
        ({"source": replace(FROM_IMAGE, image_url="a b")}, "hal05: image a b: "),
        ({"server": Server("http://10.1.0.11", AUTHORITY)}, "first secrets come from http://10.1.0.11; write https://"),
        ({"server": Server("https://10.1.0.11/a b", AUTHORITY)}, "first secrets come from https://10.1.0.11/a b; "),
        ({"server": Server(SERVER.url, "no PEM")}, "hal05: the authority's certificate is no PEM, or there is a priv"),
        ({"server": Server(SERVER.url, f"{AUTHORITY}PRIVATE")}, "hal05: the authority's certificate is no PEM, or "),
        ({"node": node(kernel="")}, "hal05: its profile declares no kernel (), as 4.18.0-80.7.2.el7"),
        ({"node": node(kernel="4 5")}, "hal05: its profile declares no kernel (4 5), as 4.18.0-80.7.2.el7"),
        ({"node": node(disk="sda")}, "hal05: disks.system is sda, no world-wide name such as 0x5000c500a1b2c3d4"),
        ({"node": node(placeholders=("b", "a"))}, "hal05: a, b in cluster.yml are placeholders: put the machine's own"),
        ({"node": node(placeholders=("a",))}, "hal05: a in cluster.yml is a placeholder: put the machine's own there"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ProvisionError) as error:
        made(**changes)
    assert words in str(error.value)
