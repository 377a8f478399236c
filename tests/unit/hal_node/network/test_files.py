"""Which other files would bring up an interface that has a file of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.module_utils.hal_node.network import files as hal_network_files
from ansible.module_utils.hal_node.network.files import HEADER, competing, files_of, settings, unshown

DEVICES = [{"name": "eno1", "mac": "02:00:00:00:00:0a"}, {"name": "bond0", "mac": None}, {"name": "ib0"}]


@pytest.mark.parametrize(
    ("name", "text", "device"),
    [
        ("ifcfg-Wired_connection_1", "TYPE=Ethernet\nHWADDR=02:00:00:00:00:0A\nBOOTPROTO=dhcp\n", "eno1"),
        ("ifcfg-old", " DEVICE='eno1' # the first port\n", "eno1"),
        ("ifcfg-eno1:1", "IPADDR=10.1.0.9\n", "eno1"),
        ("ifcfg-vip", 'DEVICE="bond0:7"\n', "bond0"),
        # What is brought up is the device that is named, whatever its MAC.
        ("ifcfg-x", "DEVICE=eno9\nHWADDR=02:00:00:00:00:0A\n", None),
        ("ifcfg-eno1", "DEVICE=eno1\n", None),
        ("ifcfg-eno10", "DEVICE=eno10\n", None),
        ("ifcfg-eno2", "ONBOOT=no\n", None),
        ("ifcfg-eno1.bak", "DEVICE=eno1\n", None),
        ("ifcfg-eno1.rpmsave", "DEVICE=eno1\n", None),
        ("ifcfg-y", "#DEVICE=eno1\nHWADDR=02:00:00:00:00:ff\n", None),
        ("route-eno1", "DEVICE=eno1\n", None),
        # One more port of a bond.
        ("ifcfg-eno8", "DEVICE=eno8\nMASTER=bond0\nSLAVE=yes\n", "bond0"),
        ("ifcfg-eno8", "DEVICE=eno8\nMASTER=bond1\nSLAVE=yes\n", None),
    ],
)
def test_a_file_is_known_by_what_it_brings_up(tmp_path: Path, name: str, text: str, device: str | None) -> None:
    """To the module, and to the promise, which runs the same file as a program."""
    assert competing({name: text}, DEVICES) == ({name: device} if device else {})
    (tmp_path / name).write_text(text)
    program = Path(hal_network_files.__file__).read_text()
    argv = [sys.executable, "-c", program, str(tmp_path), " " + json.dumps(DEVICES)]
    printed = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ([name] if device else [])


OURS = f"{HEADER}; changes made here are lost.\n"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("MTU=9000\nUUID=x\n", "MTU=1500\n", []),  # the kernel shows an MTU, and a UUID is nothing
        ("", OURS + 'ETHTOOL_OPTS="-K ${DEVICE} gro on"\n', ["ETHTOOL_OPTS"]),
        (OURS + "ETHTOOL_OPTS=a\n", OURS + "ETHTOOL_OPTS=b\n", ["ETHTOOL_OPTS"]),
        (OURS + "ETHTOOL_OPTS=a\n", OURS, ["ETHTOOL_OPTS"]),  # what the role wrote is missed
        (OURS + 'A="1 # 2"\n', OURS + 'A="1 # 3"\n', ["A"]),
        (OURS + 'BONDING_OPTS="mode=1 miimon=100"\n', OURS + 'BONDING_OPTS="mode=1 miimon=50"\n', ["BONDING_OPTS"]),
    ],
)
def test_settings_of_which_the_kernel_shows_nothing(before: str, after: str, found: list[str]) -> None:
    assert unshown(before, after) == found


def test_files_of_interfaces_are_read_whatever_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "ifcfg-b").write_bytes(b"A=\xfc\n")
    (tmp_path / "ifcfg-a").write_text("B=1\n")
    (tmp_path / "route-a").write_text("C=1\n")
    (tmp_path / "ifcfg-folder").mkdir()
    (tmp_path / "ifcfg-gone").symlink_to("nowhere")
    found = files_of(str(tmp_path))
    assert list(found.items()) == [("ifcfg-a", "B=1\n"), ("ifcfg-b", "A=�\n")]
    assert settings(" A= 1 \n#B=2\nC D=3\nE==4\n\nA_1=\n") == {"A": "1", "E": "=4", "A_1": ""}
