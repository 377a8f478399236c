"""Interfaces change with permission and a way back; without, files wait for a boot. The tests are a story in order."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from testinfra.host import Host
from testing.promises import Rollout

SCENARIO = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"])
SCRIPTS = "/etc/sysconfig/network-scripts"
BEFORE = "/var/lib/hal/network/before"
PLAIN, BOND = "net01", "net02"
ETH0 = """\
# Written by the role network; changes made here are lost.
DEVICE=eth0
TYPE=Ethernet
HWADDR=02:48:41:58:00:01
ONBOOT=yes
BOOTPROTO=none
NM_CONTROLLED=no
IPV6INIT=no
PEERDNS=no
IPADDR=10.65.58.101
PREFIX=24
GATEWAY=10.65.58.254
DEFROUTE=yes
MTU=1500
ZONE=management
"""
ROUTE = "default via 10.65.58.254 dev eth0"
Node = Callable[[str], Host]


@pytest.fixture(scope="module")
def rollout() -> Rollout:
    return Rollout(SCENARIO)


def mtu(host: Host, interface: str) -> int:
    return int(host.file(f"/sys/class/net/{interface}/mtu").content_string)


def addresses(host: Host, interface: str) -> list[str]:
    return [line.split()[3] for line in host.check_output(f"ip -o -4 addr show dev {interface}").splitlines()]


def route(host: Host) -> str:
    shown: str = host.check_output("ip -4 route show default")
    return shown.strip()


def files(host: Host) -> list[str]:
    return sorted(host.check_output(f"cd {SCRIPTS} && ls ifcfg-*").split())


def undisturbed(host: Host) -> None:
    """Nothing waits to be confirmed or undone."""
    assert not host.file("/var/lib/hal/network/rollback").exists
    assert not host.file("/var/lib/hal/network/undone").exists
    assert not host.service("hal-network-rollback.timer").is_running


# ---------------------------------------------------------------- without permission
def test_files_are_as_declared_and_no_other_names_the_same_interface(node: Node) -> None:
    host = node(PLAIN)
    ib0 = host.file(f"{SCRIPTS}/ifcfg-ib0")
    assert {"DEVICE=ib0", "IPADDR=10.66.58.101", "MTU=1450", "ZONE=ipoib"} <= set(ib0.content_string.splitlines())
    assert (ib0.mode, ib0.user) == (0o644, "root")
    assert "ifcfg-ib0:1" not in files(host)
    assert "IPADDR=10.66.58.201" in host.file(f"{BEFORE}/ifcfg-ib0:1").content_string
    assert host.file("/etc/rc.d/rc3.d/S10network").exists


def test_files_of_the_interface_that_ansible_came_in_by_are_left(node: Node) -> None:
    """It has no default route as declared, and at the next boot nobody stands ready to put it back."""
    host = node(PLAIN)
    assert files(host) == ["ifcfg-Wired_connection_1", "ifcfg-eno9", "ifcfg-eth0", "ifcfg-ib0", "ifcfg-lo"]
    assert "IPADDR=10.65.58.77" in host.file(f"{SCRIPTS}/ifcfg-eth0").content_string
    assert host.check_output(f"ls {BEFORE}") == "ifcfg-ib0:1"


def test_a_bond_has_its_file_and_those_of_its_members(node: Node) -> None:
    host = node(BOND)
    bond = host.file(f"{SCRIPTS}/ifcfg-bond0").content_string.splitlines()
    assert 'BONDING_OPTS="mode=802.3ad miimon=100"' in bond
    assert {"IPADDR=10.67.58.102", "BONDING_MASTER=yes", "ZONE=access", "DEFROUTE=no"} <= set(bond)
    for member in ("eno2", "eno3"):
        lines = host.file(f"{SCRIPTS}/ifcfg-{member}").content_string.splitlines()
        assert {"MASTER=bond0", "SLAVE=yes", f"DEVICE={member}"} <= set(lines)
        assert not [line for line in lines if line.startswith(("IPADDR", "ZONE"))]


def test_no_interface_was_touched(node: Node) -> None:
    host = node(PLAIN)
    assert (mtu(host, "ib0"), mtu(host, "eth0"), route(host)) == (1400, 1500, "")
    assert addresses(host, "eth0") == ["10.65.58.101/24"]
    assert not host.file("/run/hal/network/changed").exists
    undisturbed(host)


def test_what_waits_is_said_with_what_permits_it(rollout: Rollout) -> None:
    done = rollout.converge()
    assert done.status == 0, done.explain()
    assert done.changes == {}
    assert (
        "net01: ib0 has MTU 1400, not 1450. Its file is written, and in force after the next boot; now with"
        " -e network_apply_ok=true" in done.words
    )
    assert (
        "net01: eth0 has the default route by none, not by 10.65.58.254. This connection needs it, so its file stays as"
        " it is; both change with -e network_apply_ok=true -e network_apply_contact_ok=true" in done.words
    )
    assert "net02: bond0 does not exist, eno2 does not exist, eno3 does not exist." in done.words


def test_the_audit_would_name_what_waits(node: Node, rollout: Rollout) -> None:
    assert mtu(node(PLAIN), "ib0") == 1400
    promises = rollout.promises("network", PLAIN)
    waiting = {name: one["observed"] for name, one in promises.items() if one["status"] == "fail"}
    assert waiting.pop("file of an interface is as declared [eth0]").startswith("DEVICE=eth0")
    assert waiting == {
        "interface has its MTU [ib0]": "1400",
        "default route is the declared one [eth0]": None,
        "no second file brings up the same interface": "ifcfg-Wired_connection_1",
    }
    assert {one["severity"] for one in promises.values() if one["status"] == "fail"} == {"warning"}


def test_ipoib_keeps_its_mode_without_a_permission_of_its_own(node: Node, rollout: Rollout) -> None:
    """A node of old in connected mode, with a file that says so; ib1 is up."""
    host = node(BOND)
    file = f"{SCRIPTS}/ifcfg-ib1"
    host.check_output(
        f"cp -a {file} /run/ifcfg-ib1 && sed -i s/CONNECTED_MODE=no/CONNECTED_MODE=yes/ {file}"
        " && echo connected >/sys/class/net/ib1/mode"
    )
    before = host.file(file).content_string
    try:
        done = rollout.converge("--limit", BOND, network_apply_ok=True)
        after = host.file(file).content_string
        mode = host.file("/sys/class/net/ib1/mode").content_string
        changed = host.file("/run/hal/network/changed").content_string.split()
    finally:
        host.check_output(f"echo datagram >/sys/class/net/ib1/mode; mv /run/ifcfg-ib1 {file}")
    assert done.status == 0, done.explain()
    assert "ib1" not in changed  # the bond is tried: its ports are not in this machine
    assert (after, mode) == (before, "connected\n")
    assert (
        "net02: ib1 is in connected mode, not datagram. It is up, and the nodes that it speaks with are" in done.words
    )
    assert "both change with -e network_apply_ok=true -e network_ipoib_ok=true" in done.words


def test_a_check_with_permission_changes_nothing(node: Node, rollout: Rollout) -> None:
    done = rollout.converge("--check", "--limit", PLAIN, network_apply_ok=True, network_apply_contact_ok=True)
    assert done.status == 0, done.explain()
    assert set(done.changes) == {PLAIN}
    assert (mtu(node(PLAIN), "ib0"), route(node(PLAIN))) == (1400, "")
    undisturbed(node(PLAIN))


# ---------------------------------------------------------------- with permission
def test_permission_is_not_for_the_interface_that_ansible_came_in_by(node: Node, rollout: Rollout) -> None:
    done = rollout.converge("--limit", PLAIN, network_apply_ok=True)
    assert done.status == 0, done.explain()
    host = node(PLAIN)
    assert mtu(host, "ib0") == 1450
    assert host.file("/run/hal/network/changed").content_string.split() == ["ib0"]
    assert route(host) == ""
    assert "eth0 has the default route by none, not by 10.65.58.254. This connection needs it" in done.words
    undisturbed(host)


def test_the_interface_of_the_connection_changes_with_both_permissions(node: Node, rollout: Rollout) -> None:
    both = {"network_apply_ok": True, "network_apply_contact_ok": True}
    done = rollout.converge("--limit", PLAIN, **both)
    assert done.status == 0, done.explain()
    host = node(PLAIN)
    assert route(host) == ROUTE
    assert addresses(host, "eth0") == ["10.65.58.101/24"]
    assert host.file(f"{SCRIPTS}/ifcfg-eth0").content_string == ETH0
    assert files(host) == ["ifcfg-eno9", "ifcfg-eth0", "ifcfg-ib0", "ifcfg-lo"]
    assert host.check_output(f"ls {BEFORE}").split() == ["ifcfg-Wired_connection_1", "ifcfg-eth0", "ifcfg-ib0:1"]
    undisturbed(host)
    again = rollout.converge("--limit", PLAIN, **both)
    assert again.status == 0, again.explain()
    assert again.changes == {}
    assert rollout.broken_promises("network", PLAIN) == []


def test_a_new_address_is_confirmed_at_the_new_address(node: Node, rollout: Rollout, tmp_path: Path) -> None:
    """Ansible comes in by the old one, and goes on by the new one; then back."""
    model = (SCENARIO / "cluster.yml").read_text()
    (tmp_path / "cluster.yml").write_text(model.replace("management: 10.65.58.101,", "management: 10.65.58.150,"))
    (tmp_path / "hal.yml").write_text(f"plugin: hal\nbase: {SCENARIO}/hal.yml\ncluster: cluster.yml\n")
    both = {"network_apply_ok": True, "network_apply_contact_ok": True}
    moved = rollout.converge("-i", str(tmp_path / "hal.yml"), "--limit", PLAIN, ansible_host="10.65.58.101", **both)
    assert moved.status == 0, moved.explain()
    back = rollout.converge("--limit", PLAIN, ansible_host="10.65.58.150", **both)
    assert back.status == 0, back.explain()
    assert addresses(node(PLAIN), "eth0") == ["10.65.58.101/24"]
    undisturbed(node(PLAIN))


def test_a_change_that_shuts_out_at_its_end_is_undone_by_the_timer(node: Node, rollout: Rollout) -> None:
    """eth0 first, with an address that nobody reaches; then ib0, by which Ansible comes in: until then it gets in.

    Once ib0 is up sshd takes no new connection for a while, but a session that is open goes on. It may not confirm.
    """
    host = node(PLAIN)
    host.check_output(
        "ip link set dev ib0 mtu 1400 && mv /usr/sbin/ifup /usr/sbin/ifup.kept && printf '#!/bin/sh\\n"
        "/usr/sbin/ifup.kept $1 || exit\\n[ $1 != ib0 ] || systemctl stop sshd\\n"
        "[ $1 != ib0 ] || systemd-run --on-active=12 systemctl start sshd\\n' >/usr/sbin/ifup"
        " && chmod 755 /usr/sbin/ifup"
    )
    done = rollout.converge(
        "-i",
        str(SCENARIO / "moved.yml"),
        "--limit",
        PLAIN,
        network_apply_ok=True,
        network_apply_contact_ok=True,
        network_rollback_seconds=30,  # the least
        ansible_host="10.66.58.101",
    )
    assert done.status != 0
    # A slow machine is still at ifup when the time for asking is over.
    assert re.search(
        "net01 (let nobody in|did not end ifdown and ifup) after eth0 and ib0 changed: "
        "files and interfaces were put back after 30 seconds.",
        done.words,
    ), done.words[-2000:]
    host.check_output("mv /usr/sbin/ifup.kept /usr/sbin/ifup")
    assert mtu(host, "ib0") == 1400
    host.check_output("ip link set dev ib0 mtu 1450")
    assert addresses(host, "eth0") == ["10.65.58.101/24"]
    assert (mtu(host, "eth0"), route(host)) == (1500, ROUTE)
    assert host.file(f"{SCRIPTS}/ifcfg-eth0").content_string == ETH0
    said = host.check_output(
        "journalctl --quiet --no-pager --unit=hal-network-change --unit=hal-network-rollback -o cat"
    )
    assert "interfaces and their files are as they were before" in said + host.check_output(
        "journalctl -t hal-network -o cat"
    )
    undisturbed(host)
    assert rollout.broken_promises("network", PLAIN) == []


def test_what_ifup_cannot_do_is_put_back_at_once_and_its_words_are_shown(node: Node, rollout: Rollout) -> None:
    host = node(PLAIN)
    host.check_output(
        "ip link set dev ib0 mtu 1300 && mv /usr/sbin/ifup /usr/sbin/ifup.kept && printf '#!/bin/sh\\necho Error, some"
        " other host already uses address 10.66.58.101. >&2; exit 1\\n' >/usr/sbin/ifup && chmod 755 /usr/sbin/ifup"
    )
    try:
        done = rollout.converge("--limit", PLAIN, network_apply_ok=True)
    finally:
        host.check_output("mv /usr/sbin/ifup.kept /usr/sbin/ifup")
    assert done.status != 0
    assert "files and interfaces are put back as they were. ifdown and ifup said: Error, some other host" in done.words
    for _ in range(50):  # it is put back in a unit of its own
        if not host.file("/var/lib/hal/network/undone").exists and addresses(host, "ib0"):
            break
        time.sleep(0.1)
    assert (mtu(host, "ib0"), addresses(host, "ib0")) == (1300, ["10.66.58.101/24"])
    undisturbed(host)
    host.check_output("ip link set dev ib0 mtu 1450")


def test_a_port_with_another_mac_is_refused_before_a_file_is_written(node: Node, rollout: Rollout) -> None:
    host = node(PLAIN)
    host.check_output(f"ip link set dev ib0 address 02:48:41:58:99:99 && sed -i /ZONE/d {SCRIPTS}/ifcfg-eth0")
    try:
        done = rollout.converge("--limit", PLAIN)
        promises = rollout.promises("network", PLAIN)
    finally:
        host.check_output("ip link set dev ib0 address 02:48:41:58:02:01")
    assert done.status != 0
    assert "ib0 has the MAC 02:48:41:58:99:99, the model says 02:48:41:58:02:01. ifup would leave it down" in done.words
    assert "ZONE" not in host.file(f"{SCRIPTS}/ifcfg-eth0").content_string
    assert promises["interface is the port that the model means [ib0]"]["status"] == "fail"
    mended = rollout.converge("--limit", PLAIN)
    assert mended.status == 0, mended.explain()
    assert host.file(f"{SCRIPTS}/ifcfg-eth0").content_string == ETH0


def test_a_boot_undoes_what_nobody_confirmed(node: Node) -> None:
    """A node that was switched off in between: the unit that runs at boot finds files, and no state of the kernel."""
    host = node(PLAIN)
    old = "DEVICE=eth0\\nONBOOT=yes\\n"
    host.check_output(
        "mkdir -p /var/lib/hal/network/rollback/files && rm -f /run/hal/network/live"
        f" && printf '{old}' >/var/lib/hal/network/rollback/files/ifcfg-eth0"
        " && echo ifcfg-ib0 >/var/lib/hal/network/rollback/absent"
        f" && cp -a {SCRIPTS}/ifcfg-ib0 {SCRIPTS}/ifcfg-eth0 /root/"
        " && systemctl start hal-network-rollback.service"
    )
    assert host.file(f"{SCRIPTS}/ifcfg-eth0").content_string == old.replace("\\n", "\n")
    assert "ifcfg-ib0" not in files(host)
    assert host.service("hal-network-rollback").is_enabled
    undisturbed(host)
    host.check_output(f"cp -a /root/ifcfg-ib0 /root/ifcfg-eth0 {SCRIPTS}/")
