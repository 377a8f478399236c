"""What the role's promises read, on what the kernel prints: containers have neither bonds nor ports of an HCA."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.hal_node.network.live import BOND_MODES

from tests.unit.hal_node.network.conftest import captures as captures  # a fixture

ROLE = Path(__file__).resolve().parents[4] / "roles" / "network"
EXPECTED: dict[str, Any] = {one["id"]: one for one in yaml.safe_load((ROLE / "expect.yml").read_text())}
NAMES: dict[str, str] = yaml.safe_load((ROLE / "vars/main.yml").read_text())["__network_bond_names"]


def selected(name: str, text: str) -> list[str]:
    """As hal_expect reads it: whole lines, and of those the group."""
    entry = EXPECTED[name]
    select = (entry.get("file") or entry["command"])["select"]
    found = [re.fullmatch(select, line.strip()) for line in text.splitlines()]
    return [match[1] if match.re.groups else match[0] for match in found if match]


def test_a_bond_and_its_members(captures: Path) -> None:
    text = (captures / "bond.txt").read_text()
    assert selected("bond has its mode", text) == [NAMES["active-backup"]]
    assert selected("bond has its members", text) == ["eth0", "eth1"]
    assert len(selected("bond has no other member", text)) == 2
    assert len(selected("every member of a bond has a link", text)) == 3  # two members, and the bond's own
    lost = text.replace("MII Status: up\nSpeed: 1000", "MII Status: down\nSpeed: Unknown", 1)
    assert len(selected("every member of a bond has a link", lost)) == 2


def test_modes_are_called_as_the_kernel_calls_them() -> None:
    assert {kernel: ours for ours, kernel in NAMES.items()}.items() <= BOND_MODES.items()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("3: eth0@if12: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP", ["UP"]),
        ("2: eno1: <UP> mtu 1500", ["UP"]),
        ("3: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc mq state DOWN", []),
        ("3: ib0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 4092 qdisc mq state DOWN", ["UP"]),
        ("3: ib0: <BROADCAST,LOWER_UP> mtu 4092", []),
    ],
)
def test_up_is_a_word_among_the_flags(line: str, found: list[str]) -> None:
    assert selected("interface is up", line) == found


def test_every_address_is_seen(captures: Path) -> None:
    text = "".join(line for line in (captures / "addr.txt").read_text().splitlines(True) if " eth0 " in line)
    assert selected("interface has its address and no other", text) == ["10.65.55.101/24", "192.0.2.77/32"]


def test_the_default_route_is_read_with_or_without_more_words() -> None:
    text = "default via 10.1.0.254 dev eno1 proto static metric 100 \ndefault via 10.1.0.253 dev eno2 \n"
    assert selected("default route is the declared one", text) == ["via 10.1.0.254 dev eno1", "via 10.1.0.253 dev eno2"]
