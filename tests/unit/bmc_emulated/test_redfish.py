"""Redfish of the emulated BMCs, asked by sushy and by requests; answers are compared with what the machine is."""

from __future__ import annotations

from typing import Any

import pytest
import requests
import sushy
from sushy import auth

from tests.unit.bmc_emulated.emulated import Served, wait_until

LOGINS = {
    "hal01": ("root", "0penBmc"),
    "hal-data": ("ADMIN", "ADMIN"),
    "dell": ("root", "calvin"),
    "other": ("admin", "admin"),
}
MEMBERS = {
    "hal01": ("system", "bmc", "chassis"),
    "hal-data": ("Computer", "BMC", "Planar"),
    "dell": ("System.Embedded.1", "iDRAC.Embedded.1", "System.Embedded.1"),
    "other": ("1", "1", "1"),
}
SYSTEM = "/redfish/v1/Systems/system"


def session(served: Served, name: str = "hal01", **changes: Any) -> requests.Session:
    """Return what asks a BMC with its name and password."""
    found = requests.Session()
    found.auth = LOGINS[name]
    found.verify = str(served.fleet.state / f"{name}.crt") if changes.get("verify") else False
    return found


def connect(served: Served, name: str = "hal01") -> Any:
    """Return sushy's root of a BMC, with a session."""
    user, password = LOGINS[name]
    login = auth.SessionAuth(user, password)
    root = sushy.Sushy(served.url(name), auth=login, verify=False)
    served.clients.callback(login.close)
    return root


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_members_are_called_as_the_maker_calls_them(served: Served, name: str) -> None:
    root = connect(served, name)
    system, manager, chassis = root.get_system(), root.get_manager(), root.get_chassis()
    assert (system.identity, manager.identity, chassis.identity) == MEMBERS[name]
    assert chassis.serial_number == f"SERIAL-{name}"
    assert system.memory_summary.size_gib == 256
    assert manager.firmware_version == served.processor(name).own.firmware()["bmc"]


def test_a_session_switches_the_machine_on_and_off(served: Served) -> None:
    system = connect(served).get_system()
    assert system.power_state == sushy.POWER_STATE_OFF
    system.reset_system(sushy.RESET_ON)
    wait_until(lambda: served.processor().host.power())
    system.refresh()
    assert system.power_state == sushy.POWER_STATE_ON
    system.reset_system(sushy.RESET_FORCE_OFF)
    wait_until(lambda: not served.processor().host.power())


def test_a_one_time_override_holds_for_one_start(served: Served) -> None:
    system = connect(served).get_system()
    system.set_system_boot_options(target=sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
    system.refresh()
    assert system.boot.target == sushy.BOOT_SOURCE_TARGET_PXE
    assert system.boot.enabled == sushy.BOOT_SOURCE_ENABLED_ONCE
    system.reset_system(sushy.RESET_ON)
    wait_until(lambda: served.processor().host.kept.read().starts == 1)
    assert "boot from network (one-time override)" in served.processor().host.console()
    system.refresh()
    assert system.boot.enabled == sushy.BOOT_SOURCE_ENABLED_DISABLED
    system.reset_system(sushy.RESET_FORCE_RESTART)
    wait_until(lambda: served.processor().host.kept.read().starts == 2)
    assert "boot from none (no override)" in served.processor().host.console()
