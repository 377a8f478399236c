"""Which other files would bring up an interface that has a file of its own."""

from __future__ import annotations

import pytest
from ansible.module_utils.hal_network_files import competing

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
    ],
)
def test_a_file_is_known_by_what_it_brings_up(name: str, text: str, device: str | None) -> None:
    assert competing({name: text}, DEVICES) == ({name: device} if device else {})
