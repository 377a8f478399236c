"""The script that prints what the running firewall lets in, on what both versions of firewalld print."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "roles" / "firewall" / "files" / "open.sh"
CAPTURES = Path(__file__).parent / "captures"
DIRECT = "ipv4 filter INPUT 0 -p tcp --dport 9998 -j ACCEPT"


def opened(folder: Path, zones: str, *, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the script with a firewall-cmd that prints these zones."""
    (folder / "zones").write_text(zones)
    program = folder / "firewall-cmd"
    program.write_text(
        f"#!/bin/sh\ncase $1 in\n--get-default-zone) echo other ;;\n--direct) echo '{DIRECT}' ;;\n"
        f"--list-all-zones) cat {folder}/zones; exit {status} ;;\nesac\n"
    )
    program.chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(["sh", str(SCRIPT)], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("version", ["0.6.3", "1.3.3"])
def test_it_prints_every_thing_that_is_open_and_no_zone_that_nobody_uses(tmp_path: Path, version: str) -> None:
    done = opened(tmp_path, (CAPTURES / f"list_all_zones_{version}.txt").read_text())
    assert done.returncode == 0, done.stderr
    high = 'rule family="ipv4" source address="10.65.55.101" port port="1024-65535" protocol="tcp" accept'
    if version == "0.6.3":
        high = high.replace("10.65.55.101", "10.64.0.101")
    assert done.stdout.splitlines() == [
        "default zone other",
        f"direct rule {DIRECT}",
        "management forward port=81:proto=tcp:toport=82:toaddr=",
        "management forward port=83:proto=tcp:toport=84:toaddr=",
        "management interface eth0",
        "management masquerade yes",
        "management port 22/tcp",
        "management port 60000-61000/tcp",
        "management port 61001-63000/tcp",
        "management port 9999/tcp",
        f"management rule {high}",
        'management rule rule family="ipv4" source address="192.0.2.0/24" port port="8086" protocol="tcp" accept',
        "management service ftp",
        "management target default",
        "other port 22/tcp",
        "other target default",
        "trusted interface ib0",
        "trusted target ACCEPT",
    ]


def test_a_daemon_that_does_not_answer_is_no_closed_firewall(tmp_path: Path) -> None:
    done = opened(tmp_path, "", status=252)
    assert done.returncode == 1
    assert done.stdout == ""
