"""What is set once: one-time boot, clock, password, certificate. Read back, and unchanged the second time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import cast

import pytest

from hal_cluster.bmc import operations, settings
from hal_cluster.bmc.choose import connect
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import Boot, BootTarget, Clock, Target
from hal_cluster.bmc.protocol import Bmc
from hal_cluster.certificates.tls import tls_sign_request
from tests.unit.hal_cluster.bmc.emulated import NEW_SECRET, NOT_PATIENT, PATIENT, SECRET, Emulated, Emulation

NAMES = ("hal05-bmc.hal.example", "hal05-bmc")

# --- one-time boot


@pytest.mark.parametrize("old_firmware", [False, True], ids=["redfish", "older REST"])
@pytest.mark.parametrize("target", [BootTarget.NETWORK, BootTarget.DISK, BootTarget.SETUP])
def test_one_start_goes_elsewhere_and_the_next_does_not(
    openbmc: Emulated, target: BootTarget, old_firmware: bool
) -> None:
    openbmc.fault(old_firmware=old_firmware)
    client = openbmc.client()
    assert operations.boot_once(client, target, PATIENT) == (True, True)
    assert client.boot() == Boot(target)
    assert operations.boot_once(client, target, PATIENT) == (False, True)
    operations.power_on(client, PATIENT)
    assert f"boot from {target.value}" in openbmc.machine.console()
    operations.force_off(client, PATIENT)
    operations.power_on(client, PATIENT)
    assert "start 2: boot from none" in openbmc.machine.console(), "armed for more than one start"


@pytest.mark.parametrize("old_firmware", [False, True], ids=["redfish", "older REST"])
def test_it_can_be_taken_back(openbmc: Emulated, old_firmware: bool) -> None:
    openbmc.fault(old_firmware=old_firmware)
    client = openbmc.client()
    operations.boot_once(client, BootTarget.NETWORK, PATIENT)
    assert operations.boot_once(client, BootTarget.NONE, PATIENT) == (True, True)
    operations.power_on(client, PATIENT)
    assert "start 1: boot from none" in openbmc.machine.console()


def test_what_is_set_for_always_is_replaced_by_once(openbmc: Emulated) -> None:
    openbmc.machine.set_override("network", "continuous")
    client = openbmc.client()
    assert client.boot() == Boot(BootTarget.NETWORK, once=False)
    assert operations.boot_once(client, BootTarget.NETWORK, PATIENT) == (True, True)
    assert openbmc.machine.override().enabled == "once"


def test_the_older_rest_that_ignores_is_said(openbmc: Emulated) -> None:
    openbmc.fault(old_firmware=True, boot_override_ignored=True)
    with pytest.raises(BmcError, match=r"boot network once: it said yes, and the next start goes to what its firmware"):
        operations.boot_once(openbmc.client(), BootTarget.NETWORK, NOT_PATIENT)


# --- clock


def test_time_servers(openbmc: Emulated) -> None:
    client = openbmc.client()
    servers = ["10.0.0.11", "10.0.0.12"]
    assert settings.set_ntp(client, servers, PATIENT, check=True)
    assert not openbmc.machine.kept.read().ntp_enabled, "a check changes nothing"
    assert settings.set_ntp(client, servers, PATIENT, check=False)
    assert openbmc.machine.kept.read().ntp_enabled
    assert openbmc.machine.kept.read().ntp_servers == servers
    assert not settings.set_ntp(client, servers, PATIENT, check=False)
    assert settings.set_ntp(client, [], PATIENT, check=False)
    assert not openbmc.machine.kept.read().ntp_enabled


def test_a_clock_that_is_wrong_is_set(openbmc: Emulated) -> None:
    openbmc.machine.set_clock(datetime.now(timezone.utc) - timedelta(days=400))
    client = openbmc.client()
    assert settings.set_clock(client, 60, PATIENT, check=True)
    assert settings.set_clock(client, 60, PATIENT, check=False)
    assert abs(openbmc.machine.clock() - datetime.now(timezone.utc)) < timedelta(seconds=60)
    assert not settings.set_clock(client, 60, PATIENT, check=False)


def test_a_clock_that_time_servers_set_says_so(openbmc: Emulated) -> None:
    client = openbmc.client()
    openbmc.machine.set_clock(datetime.now(timezone.utc) - timedelta(days=400))
    with openbmc.machine.kept.change() as state:
        state.ntp_enabled = True
    with pytest.raises(
        BmcError, match="its clock to be set: 400: The property DateTime could not be written because NTP"
    ):
        client.set_clock(datetime.now(timezone.utc))


class Deaf:
    """A BMC that says yes to everything, and goes on as it was; `silent_after`: questions that it answers."""

    def __init__(self, clock: Clock, silent_after: int) -> None:
        self.target, self.left, self._clock = Target("hal05", "openbmc", "127.0.0.1", "root", ""), silent_after, clock

    def clock(self) -> Clock:
        self.left -= 1
        if self.left < 0:
            raise BmcError("hal05", "its clock", "no answer", Fault.SILENT)
        return self._clock

    def set_ntp(self, servers: Sequence[str]) -> None:
        """Yes."""

    def set_clock(self, now: datetime) -> None:
        """Yes."""


def deaf(clock: Clock, silent_after: int = 9999) -> Bmc:
    return cast(Bmc, Deaf(clock, silent_after))


NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("clock", "servers", "said"),
    [
        (Clock(NOON, False, ()), ["10.0.0.11"], "asks nobody for the time"),
        (Clock(NOON, False, ("10.0.0.11",)), ["10.0.0.11"], "asks nobody for the time"),
        (Clock(NOON, True, ("10.0.0.12", "10.0.0.13")), ["10.0.0.11"], "asks 10.0.0.12, 10.0.0.13 for the time"),
        (Clock(NOON, True, ("10.0.0.12",)), [], "asks 10.0.0.12 for the time"),
    ],
)
def test_time_servers_that_were_not_taken_over_are_said(clock: Clock, servers: list[str], said: str) -> None:
    with pytest.raises(BmcError) as error:
        settings.set_ntp(deaf(clock), servers, NOT_PATIENT, check=False)
    assert str(error.value) == f"BMC of hal05 (127.0.0.1): its time servers to be set: it said yes, and {said}"
    assert error.value.fault is Fault.IGNORED


def test_a_clock_that_was_not_set_is_said() -> None:
    with pytest.raises(BmcError) as error:
        settings.set_clock(deaf(Clock(NOON, False, ())), 60, NOT_PATIENT, check=False)
    assert str(error.value) == f"BMC of hal05 (127.0.0.1): its clock to be set: it said yes, and its clock says {NOON}"
    assert error.value.fault is Fault.IGNORED


def test_a_bmc_that_is_silent_after_it_said_yes_is_silent() -> None:
    silent = "^BMC of hal05: its clock: no answer$"
    with pytest.raises(BmcError, match=silent):
        settings.set_ntp(deaf(Clock(NOON, False), silent_after=1), ["10.0.0.11"], NOT_PATIENT, check=False)
    with pytest.raises(BmcError, match=silent):
        settings.set_clock(deaf(Clock(NOON, False), silent_after=1), 60, NOT_PATIENT, check=False)


# --- password


def changed(openbmc: Emulated, **changes: str) -> bool:
    first = connect(replace(openbmc.target, **changes), changing_password=True)  # type: ignore[arg-type]
    return operations.change_password(
        first, lambda: connect(replace(openbmc.target, password=NEW_SECRET)), NEW_SECRET, PATIENT
    )


@pytest.mark.parametrize("kind", ["openbmc", "idrac"])
def test_a_password_is_changed_and_tried(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal05", kind)
    assert changed(bmc)
    with pytest.raises(BmcError) as error:
        operations.power(bmc.client(), PATIENT)
    assert error.value.fault is Fault.LOGIN
    operations.power(bmc.client(password=NEW_SECRET), PATIENT)


def test_the_first_password_of_an_openbmc_is_changed_where_it_insists(emulation: Emulation) -> None:
    bmc = emulation.make("hal05", "openbmc", password="0penBmc")
    with bmc.machine.kept.change() as state:
        state.users["root"] = state.users["root"].model_copy(update={"must_change": True})
    assert changed(bmc)
    operations.power(bmc.client(password=NEW_SECRET), PATIENT)


def test_a_password_that_the_bmc_refuses(openbmc: Emulated) -> None:
    client = openbmc.client()
    with pytest.raises(BmcError) as error:
        client.change_password("tiny" * 6)
    assert "a new password for root: 400: The value for the property Password is of a different format" in str(
        error.value
    )
    assert "tinytiny" not in f"{error.value!r}{error.value.__context__!r}"
    operations.power(openbmc.client(), PATIENT)


# --- certificate


def install(
    bmc: Emulated, authority: Path, *, check: bool = False, days: int = 365, renew_days: int = 30, **changes: str
) -> bool:
    def sign(request: str, names: Sequence[str], addresses: Sequence[str]) -> str:
        return tls_sign_request(authority, request, names, addresses, days)

    client = bmc.client(**changes)
    return settings.install_certificate(
        client, str(authority / "tls_ca.pem"), NAMES, renew_days, sign, PATIENT, check=check
    )


@pytest.mark.parametrize("kind", ["openbmc", "idrac"])
def test_one_as_it_came_gets_a_certificate_of_the_site(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal05", kind, certificate=None, key=None)
    with pytest.raises(BmcError) as error:
        operations.power(bmc.client(), NOT_PATIENT)
    pin = str(error.value).split("sha256:")[1][:64]
    assert install(bmc, emulation.authority, check=True, fingerprint=pin)
    with pytest.raises(BmcError, match="signed only by itself"):
        operations.power(bmc.client(), NOT_PATIENT)
    assert install(bmc, emulation.authority, fingerprint=pin)
    operations.power(bmc.client(), PATIENT)  # by the authority: the pin is not needed any more
    operations.power(bmc.client(fingerprint=pin), PATIENT)  # and does no harm
    assert not install(bmc, emulation.authority)


def test_one_that_runs_out_soon_is_renewed(openbmc: Emulated, emulation: Emulation) -> None:
    assert install(openbmc, emulation.authority, days=40)
    assert not install(openbmc, emulation.authority)
    assert install(openbmc, emulation.authority, renew_days=50), "40 days are fewer than 50"
    assert not install(openbmc, emulation.authority, renew_days=50)


def test_one_that_goes_on_showing_the_other_is_said(
    openbmc: Emulated, emulation: Emulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = openbmc.client()
    monkeypatch.setattr("bmc.tls.Certificates.replace", lambda self, pem: None)
    with pytest.raises(
        BmcError, match=r"a new certificate: it said yes, and shows another one: hal05-bmc.hal.example is"
    ):
        settings.install_certificate(
            client,
            str(emulation.authority / "tls_ca.pem"),
            NAMES,
            30,
            lambda request, names, addresses: tls_sign_request(emulation.authority, request, names, addresses, 9),
            NOT_PATIENT,
            check=False,
        )


# --- what is only read


@pytest.mark.parametrize("kind", ["openbmc", "idrac", "redfish"])
def test_what_it_is_is_read_by_whatever_names_it_has(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal05", kind)
    client = bmc.client()
    seen = client.identity()
    assert (seen.serial, seen.model) == ("SN-HAL05", "IBM Power System AC922 8335-GTH")
    assert seen.macs == (bmc.machine.spec.macs["management"],)
    assert seen.bmc_macs == (bmc.machine.spec.macs["bmc"],)
    assert {one.version for one in client.firmware()} == set(bmc.machine.firmware().values())
    assert {one.name: one.value for one in client.sensors()} == {
        one.name: float(one.value) for one in bmc.machine.sensors()
    }


def test_the_older_rest_tells_the_same_of_sensors(openbmc: Emulated) -> None:
    from hal_cluster.bmc.openbmc_rest import OpenBmc

    client = openbmc.client()
    assert isinstance(client, OpenBmc)
    by_redfish = {one.name: (one.value, one.unit) for one in client.sensors()}
    assert {one.name: (one.value, one.unit) for one in client.rest.sensors()} == by_redfish
    assert SECRET not in repr(client.sensors())
