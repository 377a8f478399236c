"""IPMI against OpenIPMI's ipmi_sim, and the LC92x's BMC, which speaks IPMI and Redfish. ipmitool is the witness."""

from __future__ import annotations

import subprocess
import threading
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from hal_cluster.bmc import operations, settings
from hal_cluster.bmc.choose import connect
from hal_cluster.bmc.errors import Fault
from hal_cluster.bmc.models import BootTarget, Power
from tests.unit.hal_cluster.bmc.emulated import (
    NEW_SECRET,
    NOT_PATIENT,
    PATIENT,
    SECRET,
    Emulated,
    Emulation,
    overlook_no_answer,
)
from tests.unit.hal_cluster.bmc.test_faults import failure

KINDS = ["ipmi", "supermicro"]


@pytest.fixture(autouse=True)
def answers_are_not_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is asked by pyghmi."""
    overlook_no_answer(monkeypatch)


def said_by_ipmitool(bmc: Emulated, password: str, *words: str) -> str:
    """Return what ipmitool prints: it is not written by us."""
    target = bmc.target
    where = ["-H", target.address, "-p", str(target.ipmi_port), "-U", target.user, "-E"]
    done = subprocess.run(
        ["ipmitool", "-I", "lanplus", "-C", "3", *where, *words],
        env={"IPMI_PASSWORD": password, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return done.stdout + done.stderr


def test_a_session_that_ended_is_not_taken_up_again(emulation: Emulation) -> None:
    """The first change of a password opens a second one with the same words."""
    bmc = emulation.make("hal-data", "ipmi")
    for _ in range(3):
        client = bmc.client()
        assert client.power() is Power.OFF
        client.close()


def test_a_login_that_was_refused_is_made_anew(emulation: Emulation) -> None:
    """As at first contact: the site's password, which it refuses; the change; the site's password again."""
    bmc = emulation.make("hal-data", "ipmi")
    site = replace(bmc.target, password=NEW_SECRET)
    refused = failure(lambda: connect(site).power())
    assert refused.fault is Fault.LOGIN
    first = bmc.client()
    first.change_password(NEW_SECRET)
    assert connect(site).power() is Power.OFF
    first.close()


@pytest.mark.parametrize("kind", KINDS)
def test_power(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal-data", kind)
    client = bmc.client()
    assert operations.power_on(client, PATIENT)
    assert "Chassis Power is on" in said_by_ipmitool(bmc, SECRET, "power", "status")
    assert not operations.power_on(client, PATIENT)
    assert operations.cycle(client, PATIENT, graceful=True, force=False)
    assert bmc.machine.kept.read().starts == 2
    assert "off (asked)" in bmc.machine.console()
    assert operations.force_off(client, PATIENT)
    assert operations.power(client, PATIENT) is Power.OFF
    client.close()


def test_the_next_start_is_set_though_it_is_not_told(emulation: Emulation) -> None:
    bmc = emulation.make("hal-data", "ipmi")
    client = bmc.client()
    assert operations.boot_once(client, BootTarget.NETWORK, PATIENT) == (True, False), "changed, and not confirmed"
    assert bmc.machine.override().target == "network"
    assert bmc.machine.override().enabled == "once"
    assert operations.boot_once(client, BootTarget.NONE, PATIENT) == (True, False)
    assert bmc.machine.override().target == "none"


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_is(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal-data", kind)
    client = bmc.client()
    seen = operations.check_identity(client, "SN-HAL-DATA", {}, PATIENT)
    assert seen.bmc_macs == (bmc.machine.spec.macs["bmc"],)
    assert seen.model == bmc.machine.spec.model
    readings = {one.name: one.value for one in client.sensors()}
    for one in bmc.machine.sensors():
        assert readings[one.name] == pytest.approx(one.value, rel=0.05, abs=5), "IPMI has a byte for a reading"
    error = failure(lambda: operations.check_identity(client, "SN-ELSE", {"SN-HAL-DATA": "hal-data"}, PATIENT))
    assert "whether it is the machine SN-ELSE: it is SN-HAL-DATA, which is hal-data" in str(error)


def test_the_clock_is_that_of_its_log(emulation: Emulation) -> None:
    bmc = emulation.make("hal-data", "ipmi")
    client = bmc.client()
    client.set_clock(datetime.now(timezone.utc) - timedelta(days=99))
    assert settings.set_clock(client, 60, PATIENT, check=False)
    assert abs(client.clock().now - datetime.now(timezone.utc)) < timedelta(seconds=60)
    for ask in (lambda: client.set_ntp(["10.0.0.1"]), lambda: client.signing_request(["x"])):
        assert failure(ask).fault is Fault.UNSUPPORTED


@pytest.mark.parametrize("kind", KINDS)
def test_the_password_is_changed(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal-data", kind)
    first = connect(bmc.target, changing_password=True)
    again = replace(bmc.target, password=NEW_SECRET)
    assert operations.change_password(first, lambda: connect(again), NEW_SECRET, PATIENT)
    assert "Chassis Power is off" in said_by_ipmitool(bmc, NEW_SECRET, "power", "status")
    assert "Unable to establish" in said_by_ipmitool(bmc, SECRET, "power", "status")


def test_a_password_that_ipmi_has_no_place_for(emulation: Emulation) -> None:
    bmc = emulation.make("hal-data", "ipmi")
    long = "Zn4+heron+gravel+nine+moss"
    assert "it has more than 20 bytes" in str(failure(lambda: bmc.client().change_password(long)))
    error = failure(lambda: operations.power(bmc.client(password=long), NOT_PATIENT))
    assert str(error).endswith("login of ADMIN: its password is longer than the 20 bytes that IPMI has")
    assert long not in str(error)


def test_a_wrong_password(emulation: Emulation) -> None:
    bmc = emulation.make("hal-data", "ipmi")
    error = failure(lambda: operations.power(bmc.client(password=NEW_SECRET), PATIENT))
    assert error.fault is Fault.LOGIN
    assert "login of ADMIN: Incorrect password provided. User or password is wrong" in str(error)
    assert NEW_SECRET not in f"{error!r} {error.__context__!r}"
    error = failure(lambda: operations.power(bmc.client(user="nobody"), PATIENT))
    assert error.fault is Fault.LOGIN


def test_one_that_is_silent(emulation: Emulation) -> None:
    bmc = emulation.make("hal-data", "ipmi")
    nobody = bmc.client(ipmi_port=bmc.target.ipmi_port + 1)
    error = failure(lambda: operations.power(nobody, NOT_PATIENT))
    assert str(error).startswith(f"BMC of hal-data ({bmc.target.address}): power state: no answer")
    assert error.fault is Fault.SILENT


@pytest.mark.parametrize("kind", KINDS)
def test_power_that_is_ignored(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal-data", kind)
    bmc.fault(power_ignored=True)
    error = failure(lambda: operations.power_on(bmc.client(), replace(PATIENT, power=NOT_PATIENT.power)))
    assert str(error).endswith("power on: it said yes, and its power is off after 0.5 s")
    assert error.fault is Fault.IGNORED


@pytest.mark.parametrize("kind", KINDS)
def test_the_console_is_listened_to(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal-data", kind)
    over = threading.Event()

    def talk() -> None:
        while not over.wait(0.2):
            bmc.machine.write_console("SLOF says hello\r\n")

    talking = threading.Thread(target=talk)
    talking.start()
    try:
        end = time.monotonic() + 600
        text = ""
        while "SLOF says hello" not in text and time.monotonic() < end:
            text = bmc.client().console(0.7).text
    finally:
        over.set()
        talking.join()
    assert "SLOF says hello" in text


def test_one_whose_chassis_does_not_answer(emulation: Emulation) -> None:
    bmc = emulation.make("hal-data", "ipmi")
    bmc.fault(gateway_timeout=True)
    error = failure(lambda: operations.power(bmc.client(), NOT_PATIENT))
    assert error.fault is Fault.REFUSED, "unspecified: nothing says that it passes"
    assert "power state: " in str(error)
    assert "(0xff)" in str(error)
