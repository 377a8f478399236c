"""The program that puts everything back, with an ip that notes how it is called and a node that is a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[4] / "roles" / "network" / "files" / "rollback.sh"
LIVE = """\
bond1 absent
ib0 mode connected
eno2 alone
bond0 bond active-backup eno3 eno4
eno2 flush
eno2 mtu 1500
eno2 up
eno2 addr 10.1.0.5/24 brd 10.1.0.255
eno2 addr 192.0.2.5/32
ib0 flush
ib0 mtu 65520
ib0 down
route default via 10.1.0.254 dev eno7 proto static
route 10.9.0.0/16 via 10.1.0.9 dev eno2
eno2 zone management
ib0 zone
"""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A node after a change that nobody confirmed."""
    for folder in ("state/rollback/files", "scripts", "bin", "sys/ib0", "sys/bond0/bonding", "sys/bond1", "sys/eno2"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "scripts/ifcfg-eno2").write_text("new\n")
    (tmp_path / "scripts/ifcfg-bond1").write_text("new\n")
    (tmp_path / "scripts/ifcfg-else").write_text("somebody's\n")
    (tmp_path / "state/rollback/files/ifcfg-eno2").write_text("old\n")
    (tmp_path / "state/rollback/files/ifcfg-Wired_1").write_text("old\n")
    (tmp_path / "state/rollback/absent").write_text("ifcfg-bond1\n")
    (tmp_path / "sys/eno2/master").symlink_to("../bond1")
    (tmp_path / "sys/bond0/bonding/slaves").write_text("eno4\n")
    (tmp_path / "sys/bond0/bonding/mode").write_text("802.3ad 4\n")
    for name in ("ip", "nmcli", "systemctl", "logger", "firewall-cmd", "sync"):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/called\n')
        program.chmod(0o755)
    return tmp_path


def run(node: Path) -> list[str]:
    text = SCRIPT.read_text()
    for old, new in (
        ("PATH=/usr/sbin", f"PATH={node}/bin:/usr/sbin"),
        ("state=/var/lib/hal/network\n", f"state={node}/state\n"),
        ("live=/run/hal/network/live\n", f"live={node}/live\n"),
        ("scripts=/etc/sysconfig/network-scripts\n", f"scripts={node}/scripts\n"),
        ("sys=/sys/class/net\n", f"sys={node}/sys\n"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    called = node / "called"
    return called.read_text().splitlines() if called.exists() else []


def scripts(node: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (node / "scripts").iterdir()}


def test_files_and_what_the_kernel_had_are_back(node: Path) -> None:
    (node / "live").write_text(LIVE)
    called = run(node)
    assert scripts(node) == {"ifcfg-eno2": "old\n", "ifcfg-Wired_1": "old\n", "ifcfg-else": "somebody's\n"}
    assert called[:4] == [
        "systemctl stop hal-network-change.service hal-network-rollback.timer",
        f"nmcli connection load {node}/scripts/ifcfg-bond1",  # gone: NetworkManager is told, too
        f"nmcli connection load {node}/scripts/ifcfg-Wired_1",
        f"nmcli connection load {node}/scripts/ifcfg-eno2",
    ]
    assert [line for line in called if line.startswith("ip ")] == [
        "ip link delete dev bond1",
        "ip link set dev eno2 nomaster",
        "ip link set dev bond0 down",
        "ip link set dev eno3 down",
        "ip link set dev eno4 down",
        "ip -4 addr flush dev eno2",
        "ip link set dev eno2 mtu 1500",
        "ip link set dev eno2 up",
        "ip addr add 10.1.0.5/24 brd 10.1.0.255 dev eno2",
        "ip addr add 192.0.2.5/32 dev eno2",
        "ip -4 addr flush dev ib0",
        "ip link set dev ib0 mtu 65520",
        "ip link set dev ib0 down",
        "ip route replace default via 10.1.0.254 dev eno7 proto static",
        "ip route replace 10.9.0.0/16 via 10.1.0.9 dev eno2",
    ]
    assert (node / "sys/ib0/mode").read_text() == "connected\n"
    assert (node / "sys/bond0/bonding/mode").read_text() == "active-backup\n"
    assert called[-4:-2] == [
        "firewall-cmd --quiet --zone=management --change-interface=eno2",
        "firewall-cmd --quiet --change-interface=ib0",  # the default one
    ]
    assert called[-2].startswith("logger -t hal-network not confirmed")
    assert called[-1].strip() == "sync"  # before the copies go
    assert not list((node / "state").iterdir())
    assert not (node / "live").exists()


def test_after_a_boot_there_are_files_alone(node: Path) -> None:
    assert not [line for line in run(node) if line.startswith("ip ")]
    assert scripts(node)["ifcfg-eno2"] == "old\n"
    assert "ifcfg-bond1" not in scripts(node)


def test_what_a_power_cut_left_of_a_copy_is_not_put_back(node: Path) -> None:
    (node / "state/rollback/files/ifcfg-eno2").write_text("")
    run(node)
    assert scripts(node)["ifcfg-eno2"] == "new\n"


def test_what_was_cut_short_goes_on(node: Path) -> None:
    (node / "state/rollback").rename(node / "state/undone")
    run(node)
    assert scripts(node)["ifcfg-eno2"] == "old\n"


def test_what_was_confirmed_in_the_same_moment_stays(node: Path) -> None:
    (node / "state/rollback").rename(node / "state/rollback.confirmed")
    (node / "live").write_text(LIVE)
    assert run(node) == []
    assert scripts(node)["ifcfg-eno2"] == "new\n"
