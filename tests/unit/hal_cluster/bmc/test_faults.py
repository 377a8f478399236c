"""Every way in which a BMC fails ends in one line: which BMC, what was asked, what came back. Never with a password."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sushy.exceptions
from bmc.machine import Machine

from hal_cluster.bmc import operations
from hal_cluster.bmc.choose import connect
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import BootTarget, Command, Target
from hal_cluster.bmc.protocol import Bmc
from hal_cluster.bmc.redfish import Redfish
from hal_cluster.bmc.tasks import run
from tests.unit.hal_cluster.bmc.emulated import NOT_PATIENT, PATIENT, SECRET, Emulated, Emulation, task_of
from tests.unit.hal_cluster.bmc.test_retry import Clock


def failure(ask: Callable[[], object]) -> BmcError:
    """Return the error of a question, after a look whether it tells what it must not."""
    with pytest.raises(BmcError) as caught:
        ask()
    error = caught.value
    assert SECRET not in f"{error!r} {error} {error.__cause__!r} {error.__context__!r} {error.args}"
    assert "\n" not in str(error)
    return error


def test_one_that_is_silent(openbmc: Emulated) -> None:
    openbmc.fault(silent=True)
    client = openbmc.client(timeout_seconds=0.2)
    error = failure(lambda: operations.power(client, NOT_PATIENT))
    assert str(error).startswith(f"BMC of hal05 ({openbmc.target.address}): login of root: no answer within 0.2 s")
    assert error.fault is Fault.SILENT


def test_one_that_comes_back_is_asked_again(openbmc: Emulated) -> None:
    openbmc.fault(gateway_timeout=True)
    client, times = openbmc.client(), list[int]()

    def sleep(_: float) -> None:
        times.append(1)
        if len(times) == 3:
            openbmc.fault(gateway_timeout=False)

    operations.power(client, replace(PATIENT, answers=replace(PATIENT.answers, sleep=sleep)))
    assert len(times) == 3


def test_one_that_is_slow_is_waited_for_until_the_time_is_over(openbmc: Emulated) -> None:
    openbmc.fault(slow_seconds=0.3)
    operations.power(openbmc.client(), PATIENT)
    openbmc.fault(slow_seconds=1.0)
    error = failure(lambda: operations.power(openbmc.client(timeout_seconds=0.2), NOT_PATIENT))
    assert error.fault is Fault.SILENT
    assert "no answer within 0.2 s" in str(error)


def test_one_whose_gateway_gives_up(openbmc: Emulated) -> None:
    openbmc.fault(gateway_timeout=True)
    clock = Clock()
    answers = replace(NOT_PATIENT.answers, monotonic=clock.monotonic, sleep=clock.sleep)
    error = failure(lambda: operations.power(openbmc.client(), replace(NOT_PATIENT, answers=answers)))
    address = openbmc.target.address
    assert str(error) == f"BMC of hal05 ({address}): login of root: 504; asked 4 times within 0.3 s"
    assert error.fault is Fault.BUSY


def test_one_that_nobody_answers_for(openbmc: Emulated) -> None:
    with socket.socket() as nobody:
        nobody.bind((openbmc.target.address, 0))
        client = openbmc.client(https_port=nobody.getsockname()[1])
        error = failure(lambda: operations.power(client, NOT_PATIENT))
    assert "login of root: nobody listens there: connection refused" in str(error)


def test_one_of_another_machine(openbmc: Emulated) -> None:
    openbmc.fault(serial="SN-ELSE")
    error = failure(lambda: operations.check_identity(openbmc.client(), "SN-HAL05", {"SN-HAL05": "hal05"}, PATIENT))
    assert str(error) == (
        f"BMC of hal05 ({openbmc.target.address}): whether it is the machine SN-HAL05: it is SN-ELSE."
        " Nothing was done to it"
    )
    assert error.fault is Fault.IDENTITY


def test_one_that_is_swapped_with_another_node(emulation: Emulation) -> None:
    one, other = emulation.serve(emulation.spec("hal05", "openbmc"), emulation.spec("hal06", "openbmc"))
    one.fault(swapped_with="hal06")
    declared = {"SN-HAL05": "hal05", "SN-HAL06": "hal06"}
    error = failure(lambda: operations.check_identity(one.client(), "SN-HAL05", declared, PATIENT))
    assert "it is SN-HAL06, which is hal06: their BMCs are swapped, in the cabling or in cluster.yml. Nothing" in str(
        error
    )
    operations.check_identity(other.client(), "SN-HAL06", declared, PATIENT)


@pytest.mark.parametrize("kind", ["openbmc", "idrac"])
def test_an_override_that_is_ignored(emulation: Emulation, kind: str) -> None:
    bmc = emulation.make("hal05", kind)
    bmc.fault(boot_override_ignored=True)
    error = failure(lambda: operations.boot_once(bmc.client(), BootTarget.NETWORK, NOT_PATIENT))
    assert str(error).endswith("boot network once: it said yes, and the next start goes to what its firmware is set to")
    assert error.fault is Fault.IGNORED


# --- who we are


def test_a_wrong_password_is_tried_once(openbmc: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[str]()
    user = type(openbmc.machine).user

    def counted(self: Machine, name: str, word: str) -> object:
        tried.append(name)
        return user(self, name, word)

    monkeypatch.setattr(type(openbmc.machine), "user", counted)
    client = openbmc.client(password=SECRET[:-1] + "m")
    error = failure(lambda: operations.power(client, PATIENT))
    assert "login of root: 401" in str(error)
    assert "User or password is wrong, or the account is locked after too many tries: it is not tried again" in str(
        error
    )
    assert error.fault is Fault.LOGIN
    assert len(tried) == 1, "each try counts towards locking the account"


def test_an_account_that_is_locked(openbmc: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenBMC answers as to a wrong password, also to the right one: nobody is to learn which it was."""
    monkeypatch.setattr("bmc.sessions.Sessions.open", lambda self, name, password: None)
    error = failure(lambda: operations.power(openbmc.client(), PATIENT))
    assert "User or password is wrong, or the account is locked after too many tries" in str(error)
    assert "While accessing the resource, the service received an authorization error" in str(error)


def test_a_password_that_has_to_be_changed(openbmc: Emulated) -> None:
    with openbmc.machine.kept.change() as state:
        state.users["root"] = state.users["root"].model_copy(update={"must_change": True})
    error = failure(lambda: operations.power(openbmc.client(), PATIENT))
    assert "power state: 403: the password has to be changed first: playbooks/bmc.yml does that" in str(error)
    assert error.fault is Fault.PASSWORD_CHANGE


@pytest.mark.parametrize("status", [401, 403])
def test_what_is_refused_is_sent_once(openbmc: Emulated, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    client = openbmc.client()
    assert isinstance(client, Redfish)
    client.power()
    sent = list[str]()
    session = client.connection._connector._session
    request = session.request

    def refusing(method: str, url: str, **keywords: Any) -> Any:
        response = request(method, url, **keywords)
        if "Reset" in url:
            sent.append(url)
            response.status_code = status
        return response

    monkeypatch.setattr(session, "request", refusing)
    with pytest.raises((BmcError, sushy.exceptions.AccessError)):
        client.connection._connector.post("/redfish/v1/Systems/system/Actions/ComputerSystem.Reset", data={})
    assert len(sent) == 1


def test_a_session_that_the_bmc_forgot_is_begun_again(openbmc: Emulated) -> None:
    client = openbmc.client()
    operations.power_on(client, PATIENT)
    client.connection._connector._session.headers["X-Auth-Token"] = "forgotten"  # type: ignore[attr-defined]
    assert operations.force_off(client, PATIENT)


@pytest.mark.parametrize("word", ["0penBmc", "ADMIN", "calvin", "PASSW0RD", "", " "])
def test_passwords_that_everybody_knows_are_refused(openbmc: Emulated, word: str) -> None:
    error = failure(lambda: openbmc.client(password=word))
    assert str(error).endswith("its password is one that everybody knows, or empty; playbooks/bmc.yml changes it")
    assert error.fault is Fault.DEFAULT_PASSWORD
    client: Bmc = connect(replace(openbmc.target, password=word), changing_password=True)
    assert client.target.password == word


def test_what_cannot_be_spoken_with() -> None:
    target = Target("hal05", "ilo", "10.0.0.1", "root", SECRET, ca_file="x")
    assert "kind 'ilo' is not one of openbmc, supermicro, idrac, redfish, ipmi" in str(failure(lambda: connect(target)))
    target = replace(target, kind="ipmi", address="hal05.address-is-a-placeholder.invalid")
    assert str(failure(lambda: connect(target))) == (
        "BMC of hal05: a connection: its address is a placeholder: put the real one into cluster.yml and take"
        " !placeholder away"
    )


def test_no_part_of_a_target_shows_its_password(openbmc: Emulated) -> None:
    assert SECRET not in repr(openbmc.target)
    assert SECRET not in str(openbmc.target)


# --- what nobody foresaw


def test_an_error_that_nobody_knows_is_no_lack(emulation: Emulation) -> None:
    """What a BMC lacks is passed over here and there; an error is not."""
    client = emulation.make("hal05", "redfish").client()
    assert isinstance(client, Redfish)

    def ask() -> None:
        with client.connection.asking("its sensors"):
            raise sushy.exceptions.MissingAttributeError(attribute="Id", resource="/redfish/v1")

    assert failure(ask).fault is Fault.REFUSED


HYPERVISOR = {
    "@odata.id": "/redfish/v1/Systems/hypervisor",
    "@odata.type": "#ComputerSystem.v1_6_0.ComputerSystem",
    "Id": "hypervisor",
    "Name": "Hypervisor",
    "SystemType": "OS",
    "PowerState": "On",
    "Actions": {"#ComputerSystem.Reset": {"target": "/redfish/v1/Systems/hypervisor/Actions/ComputerSystem.Reset"}},
}
"""As newer OpenBMCs for POWER list it (bmcweb, redfish-core/lib/hypervisor_system.hpp)."""


def test_a_hypervisor_that_can_be_reset_is_no_machine(emulation: Emulation, monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = emulation.make("hal05", "openbmc")
    client = bmc.client()
    assert isinstance(client, Redfish)
    collection = client._collection

    def two(name: str) -> list[dict[str, Any]]:
        physical = [{**one, "SystemType": "Physical"} for one in collection(name)]
        return [HYPERVISOR, *physical] if name == "Systems" else collection(name)

    monkeypatch.setattr(client, "_collection", two)
    assert client.identity().serial == "SN-HAL05"
    assert operations.power_on(client, PATIENT)
    assert bmc.machine.power()


@pytest.mark.parametrize("resettable", [False, True])
def test_the_machine_that_is_known_is_the_one_that_commands_go_to(
    emulation: Emulation, monkeypatch: pytest.MonkeyPatch, resettable: bool
) -> None:
    client = emulation.make("hal05", "redfish").client()
    assert isinstance(client, Redfish)
    collection = client._collection
    actions = {"#ComputerSystem.Reset": {"target": "/nowhere"}} if resettable else {}
    other = {"@odata.id": "/a", "SystemType": "Physical", "SerialNumber": "SN-ELSE", "Actions": actions}

    def two(name: str) -> list[dict[str, Any]]:
        return [other, *collection(name)] if name == "Systems" else collection(name)

    monkeypatch.setattr(client, "_collection", two)
    if not resettable:
        assert client.identity().serial == "SN-HAL05"
        return
    for ask in (client.identity, client.power, lambda: client.command(Command.ON)):
        error = failure(ask)
        assert error.fault is Fault.CONFIGURATION
        assert "it has several systems that can be reset: /a, /redfish/v1/Systems/" in str(error)


def test_ipmi_alone_is_asked_for_no_certificate(emulation: Emulation) -> None:
    """Nobody may listen at its port 443."""
    bmc = emulation.make("hal05", "ipmi")
    with socket.socket() as nobody:
        nobody.bind((bmc.target.address, 0))
        changes = {"https_port": nobody.getsockname()[1], "authority": str(emulation.authority), "names": ["hal05-bmc"]}
        assert bmc.run("certificate", **changes)["fault"] == "not supported"


def test_a_client_that_breaks_is_a_failure_without_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def power(self) -> None:
            raise KeyError(SECRET)

        def close(self) -> None:
            """Nothing."""

    monkeypatch.setattr("hal_cluster.bmc.tasks.connect", lambda target: Broken())
    target = Target("hal05", "ipmi", "10.0.0.5", "root", SECRET)
    assert run(task_of(target, "status"), check=False) == {
        "msg": "BMC of hal05 (10.0.0.5): status: what this program does not understand: KeyError",
        "fault": "refused",
        "asked": "status",
        "answer": "what this program does not understand: KeyError",
    }
