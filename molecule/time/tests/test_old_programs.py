"""The nodes refuse options that CentOS 7's programs do not have, and their own scripts and units do not notice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from testinfra.host import Host

Node = Callable[[str], Host]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ip -j addr", "ip: not in iproute 4.11 (CentOS 7): -j"),
        ("lsblk --json", "lsblk: not in util-linux 2.23 (CentOS 7): --json"),
        ("findmnt -J /", "findmnt: not in util-linux 2.23 (CentOS 7): -J"),
        ("systemctl show --value -p MainPID chronyd", "systemctl: not in systemd 219 (CentOS 7): --value"),
        ("sh -c 'date --debug'", "date: not in coreutils 8.22 (CentOS 7): --debug"),
    ],
)
def test_a_later_option_is_refused(node: Node, command: str, said: str) -> None:
    refused = node("hal01").run(command)
    assert (refused.rc, refused.stdout, refused.stderr.strip()) == (64, "", said)


def test_what_centos_7_has_is_answered(node: Node) -> None:
    host = node("hal01")
    assert host.check_output("findmnt --noheadings --output TARGET /") == "/"
    assert host.check_output("ip -o -4 addr show dev lo").startswith("1: lo")


def test_the_programs_themselves_are_the_image_s(node: Node) -> None:
    assert node("hal01").check_output("/usr/sbin/ip -j addr").startswith("[")


def test_nothing_of_the_node_s_own_was_refused(node: Node) -> None:
    host = node("hal01")
    assert host.check_output("systemctl is-system-running") == "running"
    lines = host.check_output("journalctl --boot --no-pager --quiet").splitlines()
    assert lines, "the journal was not read"
    assert [line for line in lines if "(CentOS 7): " in line] == []
