"""Each fault is seen by whoever asks, is gone after a repair, and is no other BMC's."""

from __future__ import annotations

import socket
from typing import Any

import pytest
import requests
from testbed.errors import VirtualNodesError

from tests.unit.virtual_hal.bmc.emulated import QUIET, Served, asking, ipmitool, switched, unchecked, wait_until

pytestmark = QUIET
SYSTEM = "/redfish/v1/Systems/system"
PXE_ONCE = {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}


def system(served: Served, name: str = "hal01", **more: Any) -> requests.Response:
    """Ask for the system."""
    return asking(name).get(served.url(name) + SYSTEM, **more)


def reset(served: Served, kind: str, name: str = "hal01") -> int:
    """Ask for a reset; return the status."""
    path = f"{served.url(name)}{SYSTEM}/Actions/ComputerSystem.Reset"
    return int(asking(name).post(path, json={"ResetType": kind}).status_code)


def test_silent(served: Served) -> None:
    client = asking()
    assert client.get(served.url() + SYSTEM).status_code == 200  # a connection that is kept open
    switched(served, "hal01", "silent")
    with pytest.raises(requests.exceptions.RequestException):
        client.get(served.url() + SYSTEM, timeout=0.5)
    with pytest.raises(requests.exceptions.RequestException):
        system(served, timeout=0.5)
    assert ipmitool(served, "hal01", "power", "status", briefly=True).returncode != 0
    where = (served.fleet.named("hal01").address, served.running.consoles["hal01"].port)
    with socket.create_connection(where, timeout=0.5) as connection, pytest.raises(TimeoutError):
        connection.recv(64)
    assert system(served, "hal02").status_code == 200
    assert ipmitool(served, "hal02", "power", "status").returncode == 0
    switched(served, "hal01", "repair")
    assert system(served).status_code == 200
    assert ipmitool(served, "hal01", "power", "status").stdout == "Chassis Power is off\n"


def test_slow(served: Served) -> None:
    switched(served, "hal01", "slow", seconds=3600)
    with pytest.raises(requests.exceptions.ReadTimeout):  # it shakes hands, as a silent one does not
        system(served, timeout=(30, 0.5))
    assert system(served, "hal02").status_code == 200
    switched(served, "hal01", "repair")
    assert system(served).status_code == 200
    switched(served, "hal01", "slow", seconds=0.01)
    assert system(served).status_code == 200


def test_slow_by_ipmi(served: Served) -> None:
    switched(served, "hal-data", "slow", seconds=3600)
    assert ipmitool(served, "hal-data", "power", "status", briefly=True).returncode != 0
    assert ipmitool(served, "hal01", "power", "status").returncode == 0


def test_504(served: Served) -> None:
    switched(served, "hal01", "504")
    assert system(served).status_code == 504
    assert unchecked().get(f"{served.url()}/redfish/v1/").status_code == 504
    assert reset(served, "On") == 504
    said = ipmitool(served, "hal01", "power", "on")
    assert said.returncode != 0
    assert "Unspecified error" in said.stderr
    assert not served.processor().host.power()
    switched(served, "hal01", "repair")
    assert system(served).status_code == 200


def test_wrong_serial(served: Served) -> None:
    switched(served, "hal01", "wrong-serial", "X4711")
    assert system(served).json()["SerialNumber"] == "X4711"
    assert asking().get(f"{served.url()}/redfish/v1/Chassis/chassis").json()["SerialNumber"] == "X4711"
    inventory = asking().get(f"{served.url()}/xyz/openbmc_project/inventory/system/attr/SerialNumber")
    assert inventory.json()["data"] == "X4711"
    assert "X4711" in ipmitool(served, "hal01", "fru", "print", "0").stdout
    switched(served, "hal01", "repair")
    assert system(served).json()["SerialNumber"] == "SERIAL-hal01"
    assert "SERIAL-hal01" in ipmitool(served, "hal01", "fru", "print", "0").stdout


def test_power_ignored(served: Served) -> None:
    switched(served, "hal01", "power-ignored")
    assert reset(served, "On") == 204
    path = f"{served.url()}/xyz/openbmc_project/state/host0/attr/RequestedHostTransition"
    assert asking().put(path, json={"data": "xyz.openbmc_project.State.Host.Transition.On"}).status_code == 200
    assert ipmitool(served, "hal01", "power", "on").returncode == 0
    served.processor().host.request_power("ForceOff").result()  # whatever was begun is done before this
    assert served.processor().host.kept.read().starts == 0
    switched(served, "hal01", "repair")
    assert reset(served, "On") == 204
    wait_until(lambda: served.processor().host.power())


def test_boot_override_ignored(served: Served) -> None:
    switched(served, "hal01", "boot-override-ignored")
    assert asking().patch(served.url() + SYSTEM, json=PXE_ONCE).status_code == 204
    once = f"{served.url()}/xyz/openbmc_project/control/host0/boot/one_time/attr"
    assert asking().put(f"{once}/Enabled", json={"data": True}).status_code == 200
    assert ipmitool(served, "hal01", "chassis", "bootdev", "pxe").returncode == 0
    assert system(served).json()["Boot"]["BootSourceOverrideEnabled"] == "Disabled"
    served.processor().host.set_power("On")
    assert "boot from none (no override)" in served.processor().host.console()


def test_boot_override_lost(served: Served) -> None:
    switched(served, "hal01", "boot-override-lost")
    assert asking().patch(served.url() + SYSTEM, json=PXE_ONCE).status_code == 204
    assert system(served).json()["Boot"]["BootSourceOverrideTarget"] == "Pxe"
    served.processor().host.set_power("On")
    assert "boot from network" not in served.processor().host.console()


def test_swapped_with(served: Served) -> None:
    switched(served, "hal01", "swapped-with", "hal02")
    assert system(served).json()["SerialNumber"] == "SERIAL-hal02"
    assert system(served, "hal02").json()["SerialNumber"] == "SERIAL-hal01"
    assert "SERIAL-hal02" in ipmitool(served, "hal01", "fru", "print", "0").stdout
    assert reset(served, "On") == 204
    machines = {name: processor.own for name, processor in served.running.processors.items()}
    wait_until(lambda: machines["hal02"].power())
    assert not machines["hal01"].power()
    switched(served, "hal02", "repair")  # either end puts both back
    assert system(served).json()["SerialNumber"] == "SERIAL-hal01"
    assert system(served).json()["PowerState"] == "Off"


def test_a_second_swap_leaves_nobody_behind(served: Served) -> None:
    switched(served, "hal01", "swapped-with", "hal02")
    switched(served, "hal01", "swapped-with", "hal-data")
    led = {name: processor.host.spec.name for name, processor in served.running.processors.items()}
    assert (led["hal01"], led["hal-data"], led["hal02"]) == ("hal-data", "hal01", "hal02")


def test_password_must_change(served: Served) -> None:
    switched(served, "hal01", "password-must-change")
    assert system(served).status_code == 403
    assert ipmitool(served, "hal01", "power", "status").returncode != 0
    account = f"{served.url()}/redfish/v1/AccountService/Accounts/root"
    assert asking().get(account).json()["PasswordChangeRequired"] is True
    assert asking().patch(account, json={"Password": "Tram-4-lantern"}).status_code == 200
    assert ipmitool(served, "hal01", "power", "status", password="Tram-4-lantern").returncode == 0


def test_old_firmware(served: Served) -> None:
    switched(served, "hal01", "old-firmware")
    assert system(served).json()["Boot"]["BootSourceOverrideTarget@Redfish.AllowableValues"] == []
    assert asking().patch(served.url() + SYSTEM, json=PXE_ONCE).status_code == 400
    once = f"{served.url()}/xyz/openbmc_project/control/host0/boot/one_time/attr"
    source = "xyz.openbmc_project.Control.Boot.Source.Sources.Network"
    assert asking().put(f"{once}/BootSource", json={"data": source}).status_code == 200
    assert asking().put(f"{once}/Enabled", json={"data": True}).status_code == 200
    served.processor().host.set_power("On")
    assert "boot from network (one-time override)" in served.processor().host.console()


@pytest.mark.parametrize(
    ("name", "fault", "word", "message"),
    [
        ("hal-data", "old-firmware", "", "hal-data: its BMC is of kind supermicro; old-firmware is OpenBMC's"),
        (
            "hal-mgmt2",
            "password-must-change",
            "",
            "hal-mgmt2: its BMC is of kind ipmi; IPMI knows no password that has to be changed",
        ),
        ("hal01", "swapped-with", "hal99", "hal99: instance test has no such BMC; it has hal01, hal02"),
        ("hal01", "swapped-with", "hal01", "hal01: is not swapped with itself; name another node"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(served: Served, name: str, fault: str, word: str, message: str) -> None:
    with pytest.raises(VirtualNodesError) as raised:
        switched(served, name, fault, word)
    assert str(raised.value).startswith(message)
    assert not served.running.processors[name].own.faults().shown()
