"""What is made of a BMC's Redfish resources, whatever they have and lack, and what is sent to which of them."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from hal_cluster.bmc.errors import Fault
from hal_cluster.bmc.models import SETTABLE, Boot, BootTarget, Clock, Command, Firmware, Identity, Power, Sensor
from tests.unit.hal_cluster.bmc.talking import NAME, client, collection, link, links, member
from tests.unit.hal_cluster.bmc.test_faults import failure

RESET: dict[str, Any] = {"Actions": {"#ComputerSystem.Reset": {}}}
ALLOWED = "BootSourceOverrideTarget@Redfish.AllowableValues"


def system(**more: Any) -> dict[str, Any]:
    return {"/Systems": collection(member("/Systems/1", **more))}


def manager(**more: Any) -> dict[str, Any]:
    return {"/Managers": collection(member("/Managers/1", **more))}


def test_the_machine_is_the_one_that_can_be_reset() -> None:
    first, second = member("/Systems/2"), member("/Systems/1", **RESET)
    assert client({"/Systems": collection(first, second)})[0]._system() == second
    assert client({"/Systems": collection(first, member("/Systems/1"))})[0]._system() == first
    error = failure(client({"/Systems": collection({**first, **RESET}, second)})[0].power)
    assert str(error) == f"{NAME}: power state: it has several systems that can be reset: /Systems/1, /Systems/2"
    assert error.fault is Fault.CONFIGURATION
    error = failure(client({})[0].power)
    assert (str(error), error.fault) == (f"{NAME}: power state: it has no system", Fault.UNSUPPORTED)


def test_the_bmc_is_the_manager_of_that_type() -> None:
    first, second = member("/Managers/1"), member("/Managers/2", ManagerType="BMC")
    assert client({"/Managers": collection(first, second)})[0]._manager() == second
    assert client({"/Managers": collection(first, member("/Managers/2"))})[0]._manager() == first
    error = failure(client({})[0].clock)
    assert (str(error), error.fault) == (f"{NAME}: its clock: it has no manager", Fault.UNSUPPORTED)


@pytest.mark.parametrize(
    ("said", "power"),
    [
        *(("On", Power.ON), ("Off", Power.OFF), ("PoweringOn", Power.GOING_ON), ("PoweringOff", Power.GOING_OFF)),
        *(("Paused", Power.UNKNOWN), (None, Power.UNKNOWN)),
    ],
)
def test_power_is_what_the_system_says(said: Any, power: Power) -> None:
    assert client(system(PowerState=said))[0].power() is power


def test_a_command_is_sent_where_it_is_offered() -> None:
    from hal_cluster.bmc.redfish import _RESET

    found, _ = client(system())
    asked: list[Any] = []

    def get_system(path: str) -> Any:
        asked.append(path)
        offered = {_RESET[Command.ON], _RESET[Command.FORCE_OFF]}
        return SimpleNamespace(get_allowed_reset_system_values=lambda: offered, reset_system=asked.append)

    found.connection._root.get_system = get_system
    found.command(Command.ON)
    assert asked == ["/Systems/1", _RESET[Command.ON]]
    error = failure(lambda: found.command(Command.SHUT_DOWN))
    assert str(error) == f"{NAME}: power {Command.SHUT_DOWN.value}: it offers ForceOff, On"
    assert error.fault is Fault.UNSUPPORTED
    assert asked[2:] == ["/Systems/1"]


@pytest.mark.parametrize(
    ("said", "boot"),
    [
        (None, None),
        ({}, None),
        ({"BootSourceOverrideTarget": "Pxe"}, Boot(BootTarget.NONE)),
        ({"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Disabled"}, Boot(BootTarget.NONE)),
        ({"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}, Boot(BootTarget.NETWORK)),
        (
            {"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": "Continuous"},
            Boot(BootTarget.DISK, once=False),
        ),
        ({"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}, Boot(BootTarget.OTHER)),
    ],
)
def test_the_next_start_is_what_the_override_says(said: Any, boot: Boot | None) -> None:
    assert client(system(Boot=said))[0].boot() == boot


@pytest.mark.parametrize(
    ("said", "targets"),
    [
        (None, ()),
        ({"BootSourceOverrideTarget": "None"}, SETTABLE),
        ({ALLOWED: []}, ()),
        (
            {ALLOWED: ["Usb", "BiosSetup", "Pxe"]},
            tuple(one for one in SETTABLE if one in (BootTarget.SETUP, BootTarget.NETWORK)),
        ),
    ],
)
def test_what_can_be_booted_is_what_is_offered(said: Any, targets: tuple[BootTarget, ...]) -> None:
    assert client(system(Boot=said))[0].boot_targets() == targets


def test_an_override_is_set_where_it_is_offered() -> None:
    found, _ = client(system(Boot={ALLOWED: ["Pxe"]}))
    asked: list[Any] = []

    def get_system(path: str) -> Any:
        def options(target: Any, enabled: Any) -> None:
            asked.append((path, target and target.value, enabled.value))

        return SimpleNamespace(set_system_boot_options=options)

    found.connection._root.get_system = get_system
    found.set_boot(BootTarget.NETWORK)
    found.set_boot(BootTarget.NONE)
    assert asked == [("/Systems/1", "Pxe", "Once"), ("/Systems/1", None, "Disabled")]
    error = failure(lambda: found.set_boot(BootTarget.DISK))
    assert str(error) == f"{NAME}: boot {BootTarget.DISK.value} once: its firmware offers no such override"
    assert (error.fault, len(asked)) == (Fault.UNSUPPORTED, 2)


def test_who_it_is_has_each_mac_once() -> None:
    def ports(*macs: dict[str, Any]) -> dict[str, Any]:
        return collection(*(member(f"/Ports/{number}", **one) for number, one in enumerate(macs)))

    resources = {
        **system(**{"@odata.type": "#ComputerSystem.v1", "SerialNumber": "SN-1"}, EthernetInterfaces=link("/Ports")),
        **manager(EthernetInterfaces=link("/Own")),
        "/Ports": ports(
            {"MACAddress": "0C:00:00:00:00:0B", "PermanentMACAddress": "0A:00:00:00:00:0A"},
            {"MACAddress": "02:00:00:00:00:01"},
            {"MACAddress": "02:00:00:00:00:01"},
            *({"MACAddress": "02:00:00:00:00:01:02"}, {"MACAddress": None}),
        ),
        "/Own": ports({"MACAddress": "02:00:00:00:01:01"}),
        "/Chassis": collection(member("/Chassis/1", **{"@odata.type": "#Chassis.v1"}, Model="AC922")),
    }
    assert client(resources)[0].identity() == Identity(
        "SN-1", "AC922", ("02:00:00:00:00:01", "0a:00:00:00:00:0a"), ("02:00:00:00:01:01",)
    )


def test_an_inventory_has_the_members_and_what_is_below_them() -> None:
    port, protocol = member("/Ports/1", Name="eth0"), member("/Protocol", Name="protocol")
    resources = {
        **system(EthernetInterfaces=link("/Ports")),
        **manager(NetworkProtocol=link("/Protocol"), EthernetInterfaces=link("/Gone")),
        "/Chassis": collection(member("/Chassis/1")),
        "/Ports": {**link("/Ports"), **collection(port)},
        "/Protocol": protocol,
    }
    assert client(resources)[0].resources() == {
        "/Systems/1": resources["/Systems"]["Members"][0],
        "/Ports": resources["/Ports"],
        "/Ports/1": port,
        "/Managers/1": resources["/Managers"]["Members"][0],
        "/Protocol": protocol,
        "/Chassis/1": member("/Chassis/1"),
    }


def test_readings_come_from_both_generations_of_resources_each_name_once() -> None:
    good = {"Status": {"Health": "OK"}}
    resources = {
        "/Chassis": collection(
            member("/Chassis/1", **links("Sensors", "Thermal", "Power")), member("/Chassis/2", Thermal=link("/Gone"))
        ),
        "/Sensors": collection(
            member("/S/1", Name="Air", Reading=20, ReadingUnits="Cel", **good),
            member("/S/2", Name="Level", Reading=True, ReadingUnits="Percent"),
            member("/S/3", Reading="high", Status={}),
        ),
        "/Thermal": {
            "Temperatures": [{"Name": "Air", "ReadingCelsius": 99}, {"Name": "CPU", "ReadingCelsius": 50.5}],
            "Fans": [{"FanName": "Fan", "Reading": 1200}, {"MemberId": "F2", "Reading": 30, "ReadingUnits": "Percent"}],
        },
        "/Power": {"Voltages": None, "PowerControl": [{"PowerConsumedWatts": None, "Status": {"Health": "Critical"}}]},
    }
    assert client(resources)[0].sensors() == (
        Sensor("/S/3", None, "", ""),
        Sensor("?", None, "W", "Critical"),
        Sensor("Air", 20.0, "C", "OK"),
        Sensor("CPU", 50.5, "C", ""),
        Sensor("F2", 30.0, "%", ""),
        Sensor("Fan", 1200.0, "RPM", ""),
        Sensor("Level", None, "%", ""),
    )


def test_versions_are_those_of_the_update_service_else_of_system_and_bmc() -> None:
    own = {**system(BiosVersion="2.1"), **manager(FirmwareVersion=None)}
    assert client(own)[0].firmware() == (Firmware("BIOS", "2.1"),)
    both = {**system(BiosVersion="2.1"), **manager(FirmwareVersion="1")}
    assert client(both)[0].firmware() == (Firmware("BIOS", "2.1"), Firmware("BMC", "1"))
    listed = {
        **both,
        "/Update": {"FirmwareInventory": link("/Firmware")},
        "/Firmware": collection(
            member("/F/0123abcd", Name="Software", Description="Host image", Version="9"),
            member("/F/0123abcde", Name="PSU", Description="x", Version="8"),
            member("/F/fedcba98", Version=7),
            member("/F/none", Version=""),
            {"@odata.id": "/F/x", "Version": "6"},
        ),
    }
    root = {**links("Systems", "Managers"), "UpdateService": link("/Update")}
    assert client(listed, root=root)[0].firmware() == (
        *(Firmware("Host image", "9"), Firmware("PSU", "8"), Firmware("fedcba98", "7")),
    )


def test_the_clock_is_the_managers_and_the_servers_are_those_of_its_protocol() -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)
    assert client(manager(DateTime="2026-11-22T12:00:00Z"))[0].clock() == Clock(noon)
    ntp = {"ProtocolEnabled": False, "NTPServers": ["10.0.0.1", "", None, "10.0.0.2"]}
    resources = {
        **manager(DateTime="2026-11-22T13:00:00+01:00", NetworkProtocol=link("/P")),
        "/P": member("/P", NTP=ntp),
    }
    assert client(resources)[0].clock() == Clock(noon, False, ("10.0.0.1", "10.0.0.2"))
    for said in ({}, {"DateTime": "noon"}):
        error = failure(client(manager(**said))[0].clock)
        assert (str(error), error.fault) == (f"{NAME}: its clock: it tells no time", Fault.UNSUPPORTED)


def test_the_clock_is_set_with_its_zone() -> None:
    found, service = client(manager())
    found.set_clock(datetime(2026, 11, 22, 12, 0, 0, 999999, tzinfo=timezone.utc))
    ((method, path, data),) = service.sent[1:]
    assert (method, path, list(data)) == ("patch", "/Managers/1", ["DateTime"])
    assert datetime.fromisoformat(data["DateTime"]) == datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(("servers", "enabled"), [(["10.0.0.1"], True), ([], False)])
def test_time_servers_are_set_where_it_knows_of_any(servers: list[str], enabled: bool) -> None:
    found, service = client({**manager(NetworkProtocol=link("/P")), "/P": member("/P", NTP={})})
    found.set_ntp(servers)
    assert service.sent[-1] == ("patch", "/P", {"NTP": {"ProtocolEnabled": enabled, "NTPServers": servers}})
    for resources in (manager(), {**manager(NetworkProtocol=link("/P")), "/P": member("/P")}):
        error = failure(lambda resources=resources: client(resources)[0].set_ntp(servers))  # type: ignore[misc]
        assert str(error) == f"{NAME}: its time servers to be set: it knows of no time servers"
        assert error.fault is Fault.UNSUPPORTED


def test_the_password_is_that_of_our_account() -> None:
    root = {"AccountService": link("/Service")}
    accounts = collection(member("/A/1", UserName="other"), member("/A/2", UserName="root"))
    found, service = client({"/Service": {"Accounts": link("/A")}, "/A": accounts}, root=root)
    found.change_password("new one")
    assert service.sent[-1] == ("patch", "/A/2", {"Password": "new one"})
    found.connection.password_change_at = "/A/9"
    found.change_password("new one")
    assert service.sent[-1] == ("patch", "/A/9", {"Password": "new one"})
    error = failure(lambda: client({}, root=root)[0].change_password("x"))
    assert str(error) == f"{NAME}: a new password for root: it lists no account root"
    assert error.fault is Fault.UNSUPPORTED


CERTIFICATES = {
    **manager(NetworkProtocol=link("/P")),
    "/P": {"HTTPS": {"Certificates": link("/C")}},
    "/Service": {
        "Actions": {
            "#CertificateService.GenerateCSR": {"target": "/Generate"},
            "#CertificateService.ReplaceCertificate": {"target": "/Replace"},
        }
    },
    "/C": collection(member("/C/1"), member("/C/2")),
}
ROOT = {"Managers": link("/Managers"), "CertificateService": link("/Service")}


def test_a_request_is_for_all_its_names() -> None:
    found, service = client(CERTIFICATES, {"CSRString": "request"}, ROOT)
    assert found.signing_request(["hal05-bmc", "10.0.0.5"]) == "request"
    assert service.sent[-1] == (
        *("post", "/Generate"),
        {
            "CertificateCollection": {"@odata.id": "/C"},
            **{"CommonName": "hal05-bmc", "AlternativeNames": ["hal05-bmc", "10.0.0.5"], "Country": "US"},
            **{"City": "HAL", "Organization": "HAL", "OrganizationalUnit": "HAL", "State": "HAL"},
            **{"KeyPairAlgorithm": "EC", "KeyCurveId": "prime256v1"},
        },
    )
    error = failure(lambda: client(CERTIFICATES, {}, ROOT)[0].signing_request(["x"]))
    assert (str(error), error.fault) == (f"{NAME}: a signing request: an answer without a request", Fault.REFUSED)


def test_the_first_certificate_is_replaced() -> None:
    found, service = client(CERTIFICATES, {}, ROOT)
    found.install_certificate("PEM of it")
    wanted = {"CertificateString": "PEM of it", "CertificateType": "PEM", "CertificateUri": {"@odata.id": "/C/1"}}
    assert service.sent[-1] == ("post", "/Replace", wanted)


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"/C": collection()}, "it has none that could be replaced"),
        ({"/P": {"HTTPS": {}}}, "its certificate cannot be replaced over Redfish"),
        ({"/P": {}}, "its certificate cannot be replaced over Redfish"),
        ({"/Managers": collection(member("/M"))}, "its certificate cannot be replaced over Redfish"),
        ({"/Service": {}}, "it has no ReplaceCertificate"),
        ({"/Service": {"Actions": {"#CertificateService.ReplaceCertificate": {}}}}, "it has no ReplaceCertificate"),
    ],
)
def test_a_certificate_that_cannot_be_replaced_is_said(changes: dict[str, Any], answer: str) -> None:
    error = failure(lambda: client({**CERTIFICATES, **changes}, {}, ROOT)[0].install_certificate("x"))
    assert (str(error), error.fault) == (f"{NAME}: a new certificate: {answer}", Fault.UNSUPPORTED)


def test_redfish_shows_no_console() -> None:
    error = failure(lambda: client({})[0].console(1.0))
    assert str(error) == f"{NAME}: its console: Redfish shows no console; its web page does"
    assert error.fault is Fault.UNSUPPORTED


def test_the_end_of_a_client_is_that_of_its_session() -> None:
    found, service = client({})
    found.connection._session = "/Sessions/1"
    found.close()
    found.close()
    ends = [("close", "", None)]
    assert service.sent == [("delete", "/Sessions/1", None), *ends, *ends]
    assert found.connection._root is None
