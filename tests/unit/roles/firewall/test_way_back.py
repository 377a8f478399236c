"""How a change of the firewall is kept or undone: the role's scripts, on a node that is a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parents[4] / "roles/firewall/files"
PROGRAMS = {
    "systemctl": 'echo "$*" >>{node}/called; case "$*" in'
    " is-active*) cat {node}/states/active-${{2%.service}} ;;"
    " is-enabled*) cat {node}/states/enabled-${{2%.service}} ;; esac",
    "iptables-save": "cat {node}/rules",
    "ip6tables-save": ":",
    "iptables-restore": "cat >{node}/rules",
    "firewall-cmd": 'echo "firewall-cmd $*" >>{node}/called',
    "logger": ":",
    "sync": ":",
}


class Node:
    """A node where firewalld is as `active` and `enabled` say, and iptables.service runs if that does not."""

    def __init__(self, folder: Path, active: str, enabled: str) -> None:
        self.folder = folder
        for name in ("bin", "firewalld/zones", "scripts", "states", "state"):
            (folder / name).mkdir(parents=True)
        for name, text in PROGRAMS.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{text.format(node=folder)}\n")
            (folder / "bin" / name).chmod(0o755)
        other = "inactive" if active == "active" else "active"
        for unit, state, boot in (
            ("firewalld", active, enabled),
            ("iptables", other, "enabled" if other == "active" else "disabled"),
            ("ip6tables", "inactive", ""),
            ("nftables", "inactive", ""),
        ):
            (folder / f"states/active-{unit}").write_text(f"{state}\n")
            (folder / f"states/enabled-{unit}").write_text(f"{boot}\n" if boot else "")
        (folder / "firewalld/zones/public.xml").write_text("former")
        (folder / "scripts/ifcfg-em1").write_text("ZONE=public\n")
        (folder / "rules").write_text("*nat\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n")
        (folder / "called").write_text("")
        (folder / "if_inet6").touch()

    def run(self, name: str, *arguments: str) -> int:
        text = (FILES / f"{name}.sh").read_text()
        for old, new in (
            ("/var/lib/hal/firewall", f"{self.folder}/state"),
            ("/etc/sysconfig/network-scripts", f"{self.folder}/scripts"),
            ("/etc/firewalld", f"{self.folder}/firewalld"),
            ("/proc/net/", f"{self.folder}/"),
            ("PATH=/usr/sbin", f"PATH={self.folder}/bin:/usr/sbin"),
            ("PATH=$PATH", f"PATH={self.folder}/bin:$PATH"),
        ):
            text = text.replace(old, new)
        environment = {"PATH": f"{self.folder}/bin:/usr/bin:/bin"}
        return subprocess.run(["sh", "-c", text, name, *arguments], env=environment, check=False).returncode

    def change(self) -> None:
        """What a rollout does, and a lock-out with it."""
        (self.folder / "firewalld/zones/public.xml").unlink()
        (self.folder / "firewalld/zones/management.xml").write_text("new")
        (self.folder / "scripts/ifcfg-em1").write_text("ZONE=management\n")
        (self.folder / "rules").write_text("")
        (self.folder / "called").write_text("")

    @property
    def files(self) -> dict[str, str]:
        found = [*(self.folder / "firewalld").rglob("*.xml"), self.folder / "scripts/ifcfg-em1", self.folder / "rules"]
        return {path.name: path.read_text() for path in found}

    @property
    def called(self) -> list[str]:
        calls = (self.folder / "called").read_text().splitlines()
        return [call for call in calls if not call.startswith("is-")]


def test_iptables_with_nat_come_back_when_nobody_came_in(tmp_path: Path) -> None:
    node = Node(tmp_path, "inactive", "disabled")
    before = node.files
    assert node.run("arm", "there") == 0
    assert node.called == ["restart hal-firewall-rollback.timer"]
    node.change()
    assert node.run("rollback") == 0
    assert node.files == before
    assert node.called == [
        "stop hal-firewall-rollback.timer",
        "disable --quiet firewalld.service",
        "stop firewalld.service",
        "enable --quiet iptables.service",
        "start iptables.service",
    ]
    assert list((tmp_path / "state").iterdir()) == []


def test_a_firewalld_that_ran_reads_its_former_files(tmp_path: Path) -> None:
    node = Node(tmp_path, "active", "enabled")
    before = {name: text for name, text in node.files.items() if name != "rules"}
    assert node.run("arm", "there") == 0
    node.change()
    assert node.run("rollback") == 0
    assert {name: text for name, text in node.files.items() if name != "rules"} == before
    assert node.called == ["stop hal-firewall-rollback.timer", "firewall-cmd --quiet --reload"]


@pytest.mark.parametrize(("how", "disabled"), [("fresh", True), ("there", False)])
def test_what_this_run_installed_does_not_start_at_boot_after_it_was_undone(
    tmp_path: Path, how: str, disabled: bool
) -> None:
    node = Node(tmp_path, "inactive", "enabled")
    node.run("arm", how)
    node.change()
    node.run("rollback")
    assert ("disable --quiet firewalld.service" in node.called) is disabled


def test_what_a_connection_has_confirmed_stays_and_may_be_confirmed_twice(tmp_path: Path) -> None:
    node = Node(tmp_path, "active", "enabled")
    node.run("arm", "there")
    node.change()
    after = node.files
    assert node.run("keep") == 0
    assert node.called == ["stop hal-firewall-rollback.timer"]
    assert node.run("keep") == 0
    assert node.run("rollback") == 0
    assert node.files == after


def test_a_connection_that_came_too_late_is_no_success(tmp_path: Path) -> None:
    node = Node(tmp_path, "active", "enabled")
    node.run("arm", "there")
    node.change()
    node.run("rollback")
    assert node.run("keep") != 0


def test_a_second_run_keeps_what_was_before_the_first(tmp_path: Path) -> None:
    """The first was ended between the change and the connection."""
    node = Node(tmp_path, "inactive", "disabled")
    before = node.files
    node.run("arm", "there")
    node.change()
    assert node.run("arm", "there") == 0
    node.run("rollback")
    assert node.files == before


def test_a_kernel_without_ipv6_has_no_rules_to_keep(tmp_path: Path) -> None:
    """As ipv6.disable=1 leaves it: no /proc/net/if_inet6, and ip6tables-save fails."""
    node = Node(tmp_path, "inactive", "disabled")
    before = node.files
    (tmp_path / "bin/ip6tables-save").write_text("#!/bin/sh\nexit 3\n")
    assert node.run("arm", "there") != 0
    (tmp_path / "if_inet6").unlink()
    assert node.run("arm", "there") == 0
    node.change()
    assert node.run("rollback") == 0
    assert node.files == before


def test_without_a_timer_nothing_is_armed(tmp_path: Path) -> None:
    node = Node(tmp_path, "active", "enabled")
    (tmp_path / "bin/systemctl").write_text("#!/bin/sh\nexit 1\n")
    assert node.run("arm", "there") != 0
    assert list((tmp_path / "state").iterdir()) == []
