"""Redfish of the emulated BMCs, asked by sushy and by requests; answers are compared with what the machine is."""

from __future__ import annotations

import datetime
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
import sushy
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from sushy import auth

from tests.unit.virtual_hal.bmc.emulated import LOGINS, QUIET, Served, asking, switched, unchecked, wait_until

pytestmark = QUIET
MEMBERS = {
    "hal01": ("system", "bmc", "chassis"),
    "hal-data": ("Computer", "BMC", "Planar"),
    "dell": ("System.Embedded.1", "iDRAC.Embedded.1", "System.Embedded.1"),
    "other": ("1", "1", "1"),
}
SYSTEM = "/redfish/v1/Systems/system"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
ACCOUNT = "/redfish/v1/AccountService/Accounts/root"
CERTIFICATES = "/redfish/v1/Managers/bmc/NetworkProtocol/HTTPS/Certificates"
NEW = "Tram-4-lantern"


def connect(served: Served, name: str = "hal01") -> Any:
    """Return sushy's root of a BMC, with a session."""
    user, password = LOGINS[name]
    login = auth.SessionAuth(user, password)
    root = sushy.Sushy(served.url(name), auth=login, verify=False)
    served.clients.callback(login.close)
    return root


def token(served: Served, password: str = "0penBmc") -> dict[str, str]:
    """Return the header of a new session."""
    body = {"UserName": "root", "Password": password}
    said = unchecked().post(f"{served.url()}/redfish/v1/SessionService/Sessions", json=body)
    assert said.status_code == 201
    return {"X-Auth-Token": said.headers["X-Auth-Token"]}


def error(said: requests.Response) -> tuple[int, str]:
    """Return status and message id of an error."""
    return said.status_code, said.json()["error"]["@Message.ExtendedInfo"][0]["MessageId"].split(".")[-1]


@pytest.mark.parametrize("name", sorted(MEMBERS))
def test_members_are_called_as_the_maker_calls_them(served: Served, name: str) -> None:
    root = connect(served, name)
    system, manager, chassis = root.get_system(), root.get_manager(), root.get_chassis()
    assert (system.identity, manager.identity, chassis.identity) == MEMBERS[name]
    assert chassis.serial_number == f"SERIAL-{name}"
    assert system.memory_summary.size_gib == 256
    assert manager.firmware_version == served.processor(name).own.firmware()["bmc"]


def test_an_lc92x_has_its_serial_number_at_the_chassis_alone(served: Served) -> None:
    client = asking("hal-data")
    assert "SerialNumber" not in client.get(f"{served.url('hal-data')}/redfish/v1/Systems/Computer").json()
    assert asking().get(served.url() + SYSTEM).json()["SerialNumber"] == "SERIAL-hal01"


def test_a_session_switches_the_machine_on_and_off(served: Served) -> None:
    system = connect(served).get_system()
    assert system.power_state == sushy.POWER_STATE_OFF
    system.reset_system(sushy.RESET_ON)
    wait_until(lambda: served.processor().host.power())
    system.refresh()
    assert system.power_state == sushy.POWER_STATE_ON
    system.reset_system(sushy.RESET_FORCE_OFF)
    wait_until(lambda: not served.processor().host.power())
    assert not served.processor("hal02").host.power()


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


def test_a_continuous_override_holds_until_it_is_taken_away(served: Served) -> None:
    client, url = asking(), served.url() + SYSTEM
    for enabled in ("Continuous", "Disabled"):
        boot = {"BootSourceOverrideTarget": "Hdd", "BootSourceOverrideEnabled": enabled}
        assert client.patch(url, json={"Boot": boot}).status_code == 204
        served.processor().host.set_power("ForceRestart")
        said = client.get(url).json()["Boot"]
        assert said["BootSourceOverrideEnabled"] == enabled
        assert said["BootSourceOverrideTarget"] == ("Hdd" if enabled == "Continuous" else "None")


@pytest.mark.parametrize(
    ("body", "identifier"),
    [
        ({"Boot": {"BootSourceOverrideTarget": "Usb"}}, "PropertyValueNotInList"),
        ({"Boot": {"BootSourceOverrideEnabled": "Twice"}}, "PropertyValueNotInList"),
        ({"Boot": {"HttpBootUri": "http://192.0.2.1/"}}, "PropertyUnknown"),
        ({"AssetTag": "mine"}, "PropertyUnknown"),
        ({}, "PropertyMissing"),
    ],
)
def test_an_override_that_does_not_exist_is_refused(served: Served, body: dict[str, Any], identifier: str) -> None:
    before = served.processor().host.kept.read()
    assert error(asking().patch(served.url() + SYSTEM, json=body)) == (400, identifier)
    assert served.processor().host.kept.read() == before


def test_an_lc92x_offers_no_override_over_redfish(served: Served) -> None:
    client, url = asking("hal-data"), f"{served.url('hal-data')}/redfish/v1/Systems/Computer"
    assert client.get(url).json()["Boot"] == {"BootSourceOverrideTarget@Redfish.AllowableValues": []}
    said = client.patch(url, json={"Boot": {"BootSourceOverrideTarget": "Pxe"}})
    assert error(said) == (400, "PropertyUnknown")


def test_what_is_wrong_is_said_in_redfish(served: Served) -> None:
    client, url = asking(), served.url()
    assert error(client.post(url + RESET, json={"ResetType": "Explode"})) == (400, "ActionParameterNotSupported")
    assert error(client.get(f"{url}/redfish/v1/Systems/other")) == (404, "ResourceNotFound")
    assert error(client.get(f"{url}/redfish/v1/Managers/BMC")) == (404, "ResourceNotFound")
    assert error(client.get(f"{url}/redfish/v1/Systems/system/VirtualMedia")) == (404, "ResourceNotFound")
    assert error(client.delete(f"{url}/redfish/v1/Managers/bmc"))[0] == 405
    assert error(client.patch(url + SYSTEM, data="{not json"))[0] == 400


def test_nothing_but_the_root_is_shown_without_a_login(served: Served) -> None:
    url = served.url()
    assert unchecked().get(f"{url}/redfish/v1/").json()["SessionService"]
    for path in ("/redfish/v1/Systems", SYSTEM, "/redfish/v1/AccountService", "/redfish/v1/SessionService/Sessions"):
        assert error(unchecked().get(url + path)) == (401, "NoValidSession")
    assert error(asking(password="wrong").get(url + SYSTEM)) == (401, "NoValidSession")
    assert error(unchecked().get(url + SYSTEM, headers={"X-Auth-Token": "guessed"}))[0] == 401
    said = unchecked().post(url + RESET, json={"ResetType": "On"})
    assert said.status_code == 401
    assert not served.processor().host.power()


def test_a_session_that_was_ended_may_ask_nothing(served: Served) -> None:
    header, url = token(served), served.url()
    listed = unchecked().get(f"{url}/redfish/v1/SessionService/Sessions", headers=header).json()
    path = listed["Members"][0]["@odata.id"]
    assert unchecked().get(url + SYSTEM, headers=header).status_code == 200
    assert unchecked().delete(url + path, headers=header).status_code == 200
    assert unchecked().get(url + SYSTEM, headers=header).status_code == 401


def test_a_new_password_holds_at_once_and_ends_the_other_sessions(served: Served) -> None:
    mine, other, url = token(served), token(served), served.url()
    assert unchecked().patch(url + ACCOUNT, json={"Password": NEW}, headers=mine).status_code == 200
    assert unchecked().get(url + SYSTEM, headers=mine).status_code == 200
    assert unchecked().get(url + SYSTEM, headers=other).status_code == 401
    assert asking().get(url + SYSTEM).status_code == 401
    assert asking(password=NEW).get(url + SYSTEM).status_code == 200


@pytest.mark.parametrize("password", ["short", "x" * 21, "with blanks", 'quo"tes""', "ümlaute-drin"])
def test_a_password_that_ipmi_could_not_carry_is_refused_and_not_repeated(served: Served, password: str) -> None:
    said = asking().patch(served.url() + ACCOUNT, json={"Password": password})
    assert error(said) == (400, "PropertyValueFormatError")
    assert password not in said.text
    assert asking().get(served.url() + SYSTEM).status_code == 200


def test_a_password_that_has_to_be_changed_allows_nothing_else(served: Served) -> None:
    switched(served, "hal01", "password-must-change")
    url = served.url()
    assert error(asking().get(url + SYSTEM)) == (403, "PasswordChangeRequired")
    header = token(served)
    refused = unchecked().get(url + SYSTEM, headers=header)
    assert error(refused) == (403, "PasswordChangeRequired")
    assert refused.json()["error"]["@Message.ExtendedInfo"][0]["MessageArgs"] == [ACCOUNT]
    assert unchecked().patch(url + ACCOUNT, json={"Password": NEW}, headers=header).status_code == 200
    assert unchecked().get(url + SYSTEM, headers=header).status_code == 200


def sign(request: str, address: str) -> tuple[str, str]:
    """Return a certificate for a request, and the authority's own that signed it (PEM)."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "site authority")])
    now = datetime.datetime.now(datetime.timezone.utc)
    wanted = x509.load_pem_x509_csr(request.encode())
    assert wanted.is_signature_valid
    authority = x509.CertificateBuilder().subject_name(name).public_key(key.public_key())
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    leaf = x509.CertificateBuilder().subject_name(wanted.subject).public_key(wanted.public_key())
    leaf = leaf.add_extension(wanted.extensions.get_extension_for_class(x509.SubjectAlternativeName).value, False)
    made = []
    for builder in (leaf, authority):
        builder = builder.issuer_name(name).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1))
        signed = builder.not_valid_after(now + datetime.timedelta(days=30)).sign(key, hashes.SHA256())
        made.append(signed.public_bytes(serialization.Encoding.PEM).decode())
    return made[0], made[1]


def test_a_certificate_of_the_site_replaces_the_delivered_one(served: Served, tmp_path: Any) -> None:
    client, url = asking(), served.url()
    address = served.fleet.named("hal01").address
    with pytest.raises(requests.exceptions.SSLError):
        unchecked().get(f"{url}/redfish/v1/", verify=True)
    subject = {"CommonName": "hal01-bmc", "Organization": "HAL", "City": "Urbana", "State": "IL", "Country": "US"}
    said = client.post(
        f"{url}/redfish/v1/CertificateService/Actions/CertificateService.GenerateCSR",
        json={**subject, "AlternativeNames": [address], "CertificateCollection": {"@odata.id": CERTIFICATES}},
    )
    certificate, authority = sign(said.json()["CSRString"], address)
    body: dict[str, Any] = {
        "CertificateString": authority,
        "CertificateType": "PEM",
        "CertificateUri": {"@odata.id": f"{CERTIFICATES}/1"},
    }
    replace = f"{url}/redfish/v1/CertificateService/Actions/CertificateService.ReplaceCertificate"
    assert error(client.post(replace, json=body)) == (400, "PropertyValueFormatError")  # fits no key of the BMC
    assert client.post(replace, json={**body, "CertificateString": certificate}).status_code == 204
    (tmp_path / "authority.pem").write_text(authority)
    assert unchecked().get(f"{url}/redfish/v1/", verify=str(tmp_path / "authority.pem")).status_code == 200
    assert client.get(f"{url}{CERTIFICATES}/1").json()["CertificateString"] == certificate


def test_each_bmc_has_a_certificate_of_its_own(served: Served) -> None:
    shown = {asking().get(f"{served.url(name)}{CERTIFICATES}/1").text for name in ("hal01", "hal02")}
    assert len(shown) == 2


def test_clock_and_time_servers(served: Served) -> None:
    client, manager = asking(), f"{served.url()}/redfish/v1/Managers/bmc"
    assert client.patch(manager, json={"DateTime": "2019-03-01T12:00:00+00:00"}).status_code == 204
    shown = datetime.datetime.fromisoformat(client.get(manager).json()["DateTime"])
    assert shown.date() == datetime.date(2019, 3, 1)
    ntp: dict[str, Any] = {"NTP": {"NTPServers": ["10.64.0.11"], "ProtocolEnabled": True}}
    assert client.patch(f"{manager}/NetworkProtocol", json=ntp).status_code == 204
    assert client.get(f"{manager}/NetworkProtocol").json()["NTP"] == ntp["NTP"]
    shown = datetime.datetime.fromisoformat(client.get(manager).json()["DateTime"])
    assert abs(shown - datetime.datetime.now(datetime.timezone.utc)) < datetime.timedelta(hours=1)
    assert error(client.patch(manager, json={"DateTime": "2019-03-01T12:00:00Z"})) == (400, "PropertyValueConflict")
    assert error(client.patch(manager, json={"DateTime": "yesterday"})) == (400, "PropertyValueFormatError")
    assert error(client.patch(f"{manager}/NetworkProtocol", json={"NTP": {"NTPServers": "one"}}))[0] == 400


def test_macs_firmware_and_sensors(served: Served) -> None:
    client, url = asking(), f"{served.url()}/redfish/v1"
    port = client.get(f"{url}/Managers/bmc/EthernetInterfaces/eth0").json()
    assert port["MACAddress"] == "02:48:41:4c:03:01"
    assert port["IPv4Addresses"][0]["Address"] == served.fleet.named("hal01").address
    machine = client.get(f"{url}/Systems/system/EthernetInterfaces/management").json()
    assert machine["MACAddress"] == "02:48:41:4c:02:01"
    members = client.get(f"{url}/UpdateService/FirmwareInventory").json()["Members"]
    found = [client.get(served.url() + member["@odata.id"]).json() for member in members]
    assert {one["Description"]: one["Version"] for one in found} == {
        "BMC image": served.processor().own.firmware()["bmc"],
        "Host image": served.processor().own.firmware()["host"],
    }
    assert client.get(f"{url}/Chassis/chassis/Thermal").json()["Fans"] == []
    served.processor().host.set_power("On")
    warm = client.get(f"{url}/Chassis/chassis/Thermal").json()
    assert {one["Name"] for one in warm["Temperatures"]} >= {"ambient", "p0_core0_temp", "gpu3_core_temp"}
    assert all(one["ReadingCelsius"] < one["UpperThresholdCritical"] for one in warm["Temperatures"])
    assert client.get(f"{url}/Chassis/chassis/Power").json()["PowerControl"][0]["PowerConsumedWatts"] > 1000


def test_many_clients_at_once_are_all_answered(served: Served) -> None:
    def work(_: int) -> str:
        return str(asking().get(served.url() + SYSTEM).json()["SerialNumber"])

    with ThreadPoolExecutor(max_workers=16) as pool:
        assert set(pool.map(work, range(48))) == {"SERIAL-hal01"}


def test_a_client_that_says_nothing_keeps_no_other_waiting(served: Served) -> None:
    import socket

    address = (served.fleet.named("hal01").address, served.running.webs["hal01"].port)
    with socket.create_connection(address), socket.create_connection(address):
        assert asking().get(served.url() + SYSTEM, timeout=600).status_code == 200
