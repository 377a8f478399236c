"""IPMI of the emulated BMCs, asked by ipmitool and by pyghmi."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from bmc.fru import raw, record
from bmc.sensors import Sensor, sensors
from hypothesis import given
from hypothesis import strategies as st
from pyghmi.ipmi import command, console

from tests.unit.virtual_hal.bmc.emulated import LOGINS, QUIET, Served, asking, ipmitool, spec, wait_until

pytestmark = QUIET
NEW = "Tram-4-lantern"
KINDS = ["hal01", "hal-data", "hal-mgmt2"]


@contextmanager
def pyghmi(served: Served, name: str) -> Iterator[Any]:
    """Give pyghmi's session with a BMC."""
    user, password = LOGINS[name]
    where = served.fleet.named(name)
    session = command.Command(bmc=where.address, port=where.ports.ipmi, userid=user, password=password)
    try:
        yield session
    finally:
        session.ipmi_session.logout()


@pytest.mark.parametrize("name", KINDS)
def test_the_machine_is_switched_on_and_off(served: Served, name: str) -> None:
    assert ipmitool(served, name, "power", "status").stdout == "Chassis Power is off\n"
    assert ipmitool(served, name, "power", "on").returncode == 0
    wait_until(lambda: served.processor(name).host.power())
    assert ipmitool(served, name, "power", "status").stdout == "Chassis Power is on\n"
    assert ipmitool(served, name, "power", "off").returncode == 0
    wait_until(lambda: not served.processor(name).host.power())


def test_pyghmi_speaks_with_it_too(served: Served) -> None:
    with pyghmi(served, "hal-data") as session:
        assert session.get_power() == {"powerstate": "off"}
        session.set_bootdev("network")
        assert served.processor("hal-data").host.override().model_dump() == {"target": "network", "enabled": "once"}
        session.set_power("on")
        wait_until(lambda: session.get_power() == {"powerstate": "on"})
    assert "boot from network (one-time override)" in served.processor("hal-data").host.console()


@pytest.mark.parametrize(
    ("device", "target"), [("pxe", "network"), ("disk", "disk"), ("bios", "setup"), ("none", "none")]
)
def test_what_to_start_from_reaches_the_machine(served: Served, device: str, target: str) -> None:
    served.processor("hal-data").set_override("disk", "continuous")
    assert ipmitool(served, "hal-data", "chassis", "bootdev", device).returncode == 0
    assert served.processor("hal-data").host.override().target == target


def test_a_device_that_the_machine_has_not_is_refused(served: Served) -> None:
    said = ipmitool(served, "hal-data", "chassis", "bootdev", "cdrom")  # which ends with 0 all the same
    assert "Set Chassis Boot Parameter 5 failed: Unspecified error" in said.stderr
    assert served.processor("hal-data").host.override().enabled == "disabled"


def test_a_cycle_and_a_reset_start_the_machine_anew(served: Served) -> None:
    host = served.processor("hal-data").host
    host.set_power("On")
    assert ipmitool(served, "hal-data", "power", "cycle").returncode == 0
    wait_until(lambda: host.kept.read().starts == 2)
    assert ipmitool(served, "hal-data", "power", "reset").returncode == 0
    wait_until(lambda: host.kept.read().starts == 3)
    assert ipmitool(served, "hal-data", "power", "soft").returncode == 0
    wait_until(lambda: not host.power())
    assert "off (asked)" in host.console()


def test_redfish_and_ipmi_are_one_machine(served: Served) -> None:
    ipmitool(served, "hal-data", "power", "on")
    url = f"{served.url('hal-data')}/redfish/v1/Systems/Computer"
    wait_until(lambda: asking("hal-data").get(url).json()["PowerState"] == "On")


def test_inventory_sensors_and_address(served: Served) -> None:
    found = ipmitool(served, "hal-data", "fru", "print", "0").stdout
    parts = [line.partition(":") for line in found.splitlines()]
    lines = {name.strip(): value.strip() for name, _, value in parts}
    assert (lines["Product Serial"], lines["Product Part Number"]) == ("SERIAL-hal-data", "9006-22P")
    lan = ipmitool(served, "hal-data", "lan", "print", "1").stdout
    assert "MAC Address             : 02:48:41:4c:03:03" in lan
    served.processor("hal-data").host.request_power("On").result()

    def readings() -> dict[str, str]:
        lines = ipmitool(served, "hal-data", "sdr", "list").stdout.splitlines()
        return {line.split("|")[0].strip(): line.split("|")[1].strip() for line in lines}

    expected = {one.name: one for one in served.processor("hal-data").host.sensors()}
    shown = wait_until(lambda: (now := readings())["fan0_0"] != "0 RPM" and now)
    assert set(shown) == set(expected)
    assert shown["fan0_0"] == f"{round(expected['fan0_0'].value, -2):.0f} RPM"


def test_a_wrong_password_opens_nothing(served: Served) -> None:
    said = ipmitool(served, "hal-data", "power", "on", password="wrong-one")
    assert said.returncode != 0
    assert not served.processor("hal-data").host.power()


def test_a_password_set_by_redfish_is_ipmis(served: Served) -> None:
    account = f"{served.url('hal-data')}/redfish/v1/AccountService/Accounts/2"
    assert asking("hal-data").patch(account, json={"Password": NEW}).status_code == 200
    assert ipmitool(served, "hal-data", "power", "status", password=NEW).returncode == 0
    assert ipmitool(served, "hal-data", "power", "status").returncode != 0


def test_a_password_set_by_ipmi_is_redfishs(served: Served) -> None:
    where = served.fleet.named("hal-data")
    with pyghmi(served, "hal-data") as session:
        session.set_user_password(2, password=NEW)
    url = f"{served.url('hal-data')}/redfish/v1/Systems"
    wait_until(lambda: asking("hal-data", NEW).get(url).status_code == 200)  # ipmi_sim writes it a moment later
    assert asking("hal-data").get(url).status_code == 401
    assert where.login[1] == "ADMIN"


def test_the_last_password_holds_whoever_set_it(served: Served) -> None:
    with pyghmi(served, "hal-data") as session:
        session.set_user_password(2, password=NEW)
    account = f"{served.url('hal-data')}/redfish/v1/AccountService/Accounts/2"
    wait_until(lambda: asking("hal-data", NEW).get(account).status_code == 200)
    assert asking("hal-data", NEW).patch(account, json={"Password": "Tram-5-lantern"}).status_code == 200
    assert ipmitool(served, "hal-data", "power", "status", password="Tram-5-lantern").returncode == 0
    assert ipmitool(served, "hal-data", "power", "status", password=NEW).returncode != 0


def test_serial_over_lan_shows_what_the_host_prints(served: Served) -> None:
    where, heard = served.fleet.named("hal-data"), bytearray()
    user, password = LOGINS["hal-data"]

    def hear(data: Any) -> None:
        if isinstance(data, bytes):
            heard.extend(data)

    session = console.Console(
        bmc=where.address, port=where.ports.ipmi, userid=user, password=password, iohandler=hear, force=True
    )
    try:

        def arrived() -> bool:
            served.processor("hal-data").host.write_console("Welcome to Hostboot\n")
            console.Console.wait_for_rsp(0.2)
            return b"Welcome to Hostboot\r\n" in heard

        wait_until(arrived)
    finally:
        session.close()


def test_no_password_is_in_a_command_line(served: Served) -> None:
    import subprocess

    shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    ours = [line for line in shown.splitlines() if line.startswith("/usr/bin/ipmi_sim")]
    assert ours
    assert not [line for line in ours if "ADMIN" in line or "0penBmc" in line]


@given(value=st.floats(0, 255))
def test_a_temperature_is_carried_to_the_degree(value: float) -> None:
    assert abs(raw("temperature", value) - value) <= 0.5


@given(name=st.text("abcdefghijklmnop_0123456789", min_size=1, max_size=16))
def test_a_sensors_record_says_its_own_length(name: str) -> None:
    made = record(7, Sensor(name, "power", 500.0, 3300.0))
    assert (made[4], made[7]) == (len(made) - 5, 7)
    assert made.endswith(name.encode())


def test_values_of_all_sensors_fit_in_their_byte() -> None:
    for kind in ("openbmc", "supermicro"):
        for one in sensors(spec("hal01", kind, 1), on=True):
            assert raw(one.quantity, one.value) < 255
            assert raw(one.quantity, one.critical) < 255
