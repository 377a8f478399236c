"""The script that prints what the running firewall lets in, on what both versions of firewalld answer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = ROOT / "roles" / "firewall" / "files" / "open.sh"
CAPTURE = (Path(__file__).parent / "captures" / "busctl.txt").read_text()
# busctl call SERVICE OBJECT INTERFACE METHOD [SIGNATURE ARGUMENT]
BUSCTL = """\
#!/bin/sh
line=$(grep "^$5${7:+ $7}\t" "%(answers)s") || { echo "Call failed: no such name" >&2; exit 1; }
printf '%%s\n' "${line#*\t}"
"""
OPEN = [
    "default zone other",
    "direct rule ipv4 filter INPUT 0 -p tcp --dport 9998 -m comment --comment 'two words' -j ACCEPT",
    "dmz service ssh",
    "dmz source 192.0.2.0/24",
    "dmz target default",
    "management forward port=81:proto=tcp:toport=82:toaddr=",
    "management forward port=83:proto=tcp:toport=84:toaddr=192.0.2.7",
    "management icmp-block echo-request",
    "management interface eth0",
    "management masquerade yes",
    *sorted(
        f"management port {port}"
        for port in (
            *("22/tcp", "80/tcp", "1191/tcp", "6819/tcp", "8086/tcp", "60000-61000/tcp", "61001-63000/tcp", "9999/tcp"),
            *("67/udp", "69/udp", "123/udp"),
        )
    ),
    "management protocol gre",
    'management rule rule family="ipv4" source address="192.0.2.0/24" log prefix="a "b" " accept',
    'management rule rule family="ipv4" source address="192.0.2.10" port port="8086" protocol="tcp" accept',
    "management service ftp",
    "management source-port 68/udp",
    "management target default",
    "other port 22/tcp",
    'other rule rule family="ipv4" source address="192.0.2.10" port port="8086" protocol="tcp" accept',
    "other target default",
    "trusted interface ib0",
    "trusted target ACCEPT",
]


def opened(folder: Path, answers: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a busctl that gives these answers."""
    (folder / "answers").write_text(answers)
    program = folder / "busctl"
    program.write_text((BUSCTL % {"answers": folder / "answers"}).replace("\\t", "\t"))
    program.chmod(0o755)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(["sh", str(SCRIPT)], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param(CAPTURE, id="1.3.3"),
        pytest.param(CAPTURE.replace(" port port", "  port port").replace('"default"', '"{chain}_{zone}"'), id="0.6.3"),
    ],
)
def test_it_prints_every_thing_that_is_open_and_no_zone_that_nobody_uses(tmp_path: Path, answers: str) -> None:
    done = opened(tmp_path, answers)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == OPEN


@pytest.mark.parametrize("lost", ["getDefaultZone", "getActiveZones", "getAllRules", "getZoneSettings management"])
def test_a_daemon_that_does_not_answer_is_no_closed_firewall(tmp_path: Path, lost: str) -> None:
    done = opened(tmp_path, CAPTURE.replace(lost, "gone"))
    assert done.returncode != 0
    assert done.stdout == ""


def test_every_word_of_a_direct_rule_is_quoted_for_the_shell_that_withdraws_it(tmp_path: Path) -> None:
    done = opened(tmp_path, CAPTURE.replace('"INPUT"', '"IN;PUT"').replace('"two words"', '"it\'s"'))
    assert "direct rule ipv4 filter 'IN;PUT' 0 -p tcp" in done.stdout
    assert """--comment 'it'"'"'s' -j ACCEPT""" in done.stdout


def test_a_zone_of_another_form_is_no_closed_zone(tmp_path: Path) -> None:
    cut = [line.partition(" false")[0] if "trusted" in line[:30] else line for line in CAPTURE.splitlines()]
    done = opened(tmp_path, "".join(f"{line}\n" for line in cut))
    assert done.returncode != 0
    assert done.stdout == ""
