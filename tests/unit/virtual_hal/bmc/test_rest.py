"""OpenBMC's REST of the emulated BMCs: the same machine as Redfish's, seen in its own words."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from tests.unit.virtual_hal.bmc.emulated import QUIET, Served, asking, switched, unchecked, wait_until

pytestmark = QUIET
ROOT = "/xyz/openbmc_project"
ONCE = f"{ROOT}/control/host0/boot/one_time"
SOURCE = "xyz.openbmc_project.Control.Boot.Source.Sources."


def login(served: Served, name: str = "hal01", password: str = "0penBmc") -> requests.Session:
    """Return what has the cookie of a session."""
    client = unchecked()
    said = client.post(f"{served.url(name)}/login", json={"data": ["root", password]})
    assert said.json() == {"data": "User 'root' logged in", "message": "200 OK", "status": "ok"}
    return client


def put(client: requests.Session, served: Served, path: str, data: Any) -> int:
    """Set an attribute; return the status."""
    return int(client.put(served.url() + path, json={"data": data}).status_code)


def attribute(client: requests.Session, served: Served, path: str) -> Any:
    """Return an attribute."""
    return client.get(served.url() + path).json()["data"]


def test_who_is_not_logged_in_sees_and_does_nothing(served: Served) -> None:
    for said in (
        unchecked().get(f"{served.url()}{ROOT}/state/enumerate"),
        unchecked().put(f"{served.url()}{ONCE}/attr/Enabled", json={"data": True}),
    ):
        assert (said.status_code, said.json()["status"]) == (401, "error")
    wrong = unchecked().post(f"{served.url()}/login", json={"data": ["root", "wrong"]})
    assert wrong.status_code == 401
    assert served.processor().host.override().enabled == "disabled"


def test_the_machine_is_switched_on_and_off(served: Served) -> None:
    client = login(served)
    state = f"{ROOT}/state/host0/attr/CurrentHostState"
    assert attribute(client, served, state) == "xyz.openbmc_project.State.Host.HostState.Off"
    wish = f"{ROOT}/state/host0/attr/RequestedHostTransition"
    assert put(client, served, wish, "xyz.openbmc_project.State.Host.Transition.On") == 200
    wait_until(lambda: attribute(client, served, state).endswith("HostState.Running"))
    assert asking().get(f"{served.url()}/redfish/v1/Systems/system").json()["PowerState"] == "On"
    wish = f"{ROOT}/state/chassis0/attr/RequestedPowerTransition"
    assert put(client, served, wish, "xyz.openbmc_project.State.Chassis.Transition.Off") == 200
    wait_until(lambda: attribute(client, served, f"{ROOT}/state/chassis0/attr/CurrentPowerState").endswith("Off"))
    assert "off (forced)" in served.processor().host.console()


@pytest.mark.parametrize("first", ["BootSource", "Enabled"])
def test_a_one_time_source_holds_for_one_start_whatever_is_set_first(served: Served, first: str) -> None:
    client = login(served)
    settings: dict[str, Any] = {"BootSource": f"{SOURCE}Network", "Enabled": True}
    for name in sorted(settings, key=lambda name: name != first):
        assert put(client, served, f"{ONCE}/attr/{name}", settings[name]) == 200
    boot = asking().get(f"{served.url()}/redfish/v1/Systems/system").json()["Boot"]
    assert (boot["BootSourceOverrideTarget"], boot["BootSourceOverrideEnabled"]) == ("Pxe", "Once")
    served.processor().host.set_power("On")
    assert "boot from network (one-time override)" in served.processor().host.console()
    assert attribute(client, served, f"{ONCE}/attr/Enabled") is False


def test_the_lasting_source_comes_back_after_the_one_time_one(served: Served) -> None:
    client = login(served)
    put(client, served, f"{ROOT}/control/host0/boot/attr/BootSource", f"{SOURCE}Disk")
    put(client, served, f"{ONCE}/attr/BootSource", f"{SOURCE}Network")
    put(client, served, f"{ONCE}/attr/Enabled", 1)
    for expected in ("boot from network", "boot from disk (override)", "boot from disk (override)"):
        served.processor().host.set_power("ForceRestart")
        assert (
            expected in served.processor().host.console().splitlines()[-1]
            or expected in served.processor().host.console()
        )
    assert served.processor().host.override().target == "disk"


def test_setup_is_a_mode(served: Served) -> None:
    client = login(served)
    mode = "xyz.openbmc_project.Control.Boot.Mode.Modes."
    put(client, served, f"{ONCE}/attr/BootMode", f"{mode}Setup")
    put(client, served, f"{ONCE}/attr/Enabled", True)
    assert served.processor().host.override().target == "setup"
    put(client, served, f"{ONCE}/attr/BootMode", f"{mode}Regular")
    assert served.processor().host.override().target == "none"


@pytest.mark.parametrize(
    ("path", "data", "status"),
    [
        (f"{ONCE}/attr/BootSource", "Network", 400),
        (f"{ONCE}/attr/Enabled", "yes", 400),
        (f"{ROOT}/state/host0/attr/RequestedHostTransition", "On", 400),
        (f"{ROOT}/state/host0/attr/CurrentHostState", "anything", 403),
        (f"{ROOT}/control/host9/boot/attr/BootSource", f"{SOURCE}Disk", 403),
    ],
)
def test_what_cannot_be_set_is_refused(served: Served, path: str, data: str, status: int) -> None:
    before = served.processor().host.kept.read()
    assert put(login(served), served, path, data) == status
    assert served.processor().host.kept.read() == before


def test_sensors_are_integers_with_a_scale(served: Served) -> None:
    served.processor().host.set_power("On")
    found = attribute(login(served), served, f"{ROOT}/sensors/enumerate")
    ambient = found[f"{ROOT}/sensors/temperature/ambient"]
    measured = {one.name: one.value for one in served.processor().host.sensors()}
    assert ambient["Value"] * 10 ** ambient["Scale"] == pytest.approx(measured["ambient"])
    assert set(found) == {f"{ROOT}/sensors/{one.quantity}/{one.name}" for one in served.processor().host.sensors()}


def test_inventory_has_serial_number_and_mac(served: Served) -> None:
    found = attribute(login(served), served, f"{ROOT}/inventory/enumerate")
    assert found[f"{ROOT}/inventory/system"]["SerialNumber"] == "SERIAL-hal01"
    assert found[f"{ROOT}/inventory/system/chassis/motherboard/boxelder/bmc/ethernet"] == {
        "MACAddress": "02:48:41:4c:03:01"
    }


def test_lists_and_what_is_not_there(served: Served) -> None:
    client = login(served)
    assert f"{ROOT}/state" in attribute(client, served, f"{ROOT}/")
    assert attribute(client, served, f"{ROOT}/state/list") == [
        f"{ROOT}/state/{one}" for one in ("bmc0", "chassis0", "host0")
    ]
    assert client.get(f"{served.url()}{ROOT}/nothing").status_code == 404
    assert client.get(f"{served.url()}{ROOT}/state/host0/attr/Nothing").status_code == 404


def test_no_other_kind_has_it(served: Served) -> None:
    said = asking("hal-data").get(f"{served.url('hal-data')}{ROOT}/state/enumerate")
    assert (said.status_code, said.json()["status"]) == (404, "error")
    said = unchecked().post(f"{served.url('hal-data')}/login", json={"data": ["ADMIN", "ADMIN"]})
    assert said.status_code == 404


def test_a_password_that_has_to_be_changed_is_changed_here_too(served: Served) -> None:
    switched(served, "hal01", "password-must-change")
    client = unchecked()
    said = client.post(f"{served.url()}/login", json={"data": ["root", "0penBmc"]})
    assert "must be changed" in said.json()["extendedMessage"]
    assert client.get(f"{served.url()}{ROOT}/state/enumerate").status_code == 403
    change = f"{served.url()}{ROOT}/user/root/action/SetPassword"
    assert client.post(change, json={"data": ["short"]}).status_code == 400
    assert client.post(change, json={"data": ["Tram-4-lantern"]}).status_code == 200
    assert client.get(f"{served.url()}{ROOT}/state/enumerate").status_code == 200
    login(served, password="Tram-4-lantern")


def test_who_logs_out_may_ask_nothing_more(served: Served) -> None:
    client = login(served)
    assert client.post(f"{served.url()}/logout", json={"data": []}).status_code == 200
    assert client.get(f"{served.url()}{ROOT}/state/enumerate").status_code == 401
