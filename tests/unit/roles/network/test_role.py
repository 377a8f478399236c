"""The role on the nodes of HAL, up to the first task that contacts a node."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.playing import play_text

ROOT = Path(__file__).resolve().parents[4]
PLAY = """
- hosts: all
  gather_facts: false
  connection: local
  tasks:
    - import_role: {name: network, tasks_from: validate}
    - debug: {var: __network_devices}
"""


def validated(folder: Path, limit: str, *sources: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    """What comes before the first task that contacts a node."""
    return play_text(folder, PLAY, limit, sites=sources, **variables)


def files(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, set[str]]]:
    """By host and interface, the lines of its file."""
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    hosts = json.loads(done.stdout)["plays"][0]["tasks"][-1]["hosts"]
    return {
        host: {one["name"]: set(one["text"].splitlines()) for one in result["__network_devices"]}
        for host, result in hosts.items()
    }


def test_each_node_of_hal_has_a_file_for_each_of_its_networks(tmp_path: Path) -> None:
    found = files(validated(tmp_path, "hal-login,hal-mgmt2,hal05", "hal"))
    assert {host: set(devices) for host, devices in found.items()} == {
        "hal-login": {"enP2p1s0f0", "enP2p1s0f1", "ib0"},
        "hal-mgmt2": {"eno1", "eno2"},  # it has no address in IPoIB
        "hal05": {"enP5p1s0f0", "ib0"},
    }
    assert {"HWADDR=02:48:41:4C:02:05", "IPADDR=10.64.0.105", "ZONE=management"} <= found["hal05"]["enP5p1s0f0"]
    assert {"TYPE=InfiniBand", "CONNECTED_MODE=no", "MTU=2044", "ZONE=ipoib"} <= found["hal05"]["ib0"]
    assert {"GATEWAY=10.64.3.254", "DEFROUTE=yes"} <= found["hal-login"]["enP2p1s0f1"]  # users come in there
    assert "DEFROUTE=no" in found["hal-login"]["enP2p1s0f0"]


def test_zones_are_those_that_the_firewall_makes(tmp_path: Path) -> None:
    left_out = {"access": "a firewall of its own stands before it"}
    found = files(validated(tmp_path, "hal-login", "hal", firewall_networks_left_out=left_out))["hal-login"]
    assert [line for line in found["enP2p1s0f1"] if line.startswith("ZONE")] == []
    assert "ZONE=management" in found["enP2p1s0f0"]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"network_interfaces": {"management": {"name": "eth0"}}},
            "hal05 is in ipoib, and the model does not say by which interface",
        ),
        ({"network_rollback_seconds": 10}, "ifup and a new connection need 30 at the least"),
        ({"network_settings_extra": {"ipoib": {"MTU": 9000}}}, "MTU is the role's own"),
        ({"network_default_route": ["acess"]}, "unknown network acess"),
    ],
)
def test_what_would_shut_out_is_refused(tmp_path: Path, variables: dict[str, Any], message: str) -> None:
    done = validated(tmp_path, "hal05", "hal", **variables)
    assert done.returncode != 0
    assert message in " ".join(done.stdout.replace("\\n", " ").split())
