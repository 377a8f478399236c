"""What the module does with a task's arguments: checks that change nothing, turns, and passwords that were changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.ipmi import Ipmi
from hal_cluster.bmc.supermicro import Supermicro
from tests.unit.hal_cluster.bmc.emulated import NEW_SECRET, SECRET, Emulated, Emulation
from tests.unit.hal_cluster.bmc.test_faults import failure


def kept(bmc: Emulated) -> Any:
    return bmc.machine.kept.read()


@pytest.mark.parametrize("on", [False, True], ids=["off", "on"])
@pytest.mark.parametrize("action", ["on", "off", "force_off", "cycle"])
def test_a_check_of_power_says_what_would_be_and_does_nothing(
    openbmc: Emulated, tmp_path: Path, action: str, on: bool
) -> None:
    if on:
        openbmc.machine.set_power("On")
    before = kept(openbmc)
    said = openbmc.run(action, check=True, on_turns=str(tmp_path / "power_on"), on_pause_seconds=3600)
    assert kept(openbmc) == before
    wanted = "on" if action in ("on", "cycle") else "off"
    assert said["changed"] == (action == "cycle" or on != (wanted == "on"))
    assert said["power"] == wanted
    was = "on" if on else "off"
    through = "off, then " if action == "cycle" and on else ""
    assert said["diff"] == {"before": f"{was}\n", "after": f"{through}{wanted}\n"}
    assert not (tmp_path / "power_on").exists(), "a check takes no turn"


def test_a_check_of_the_next_start_does_nothing(openbmc: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept(openbmc)
    said = openbmc.run("boot", check=True, boot="network")
    assert kept(openbmc) == before
    assert said["changed"]
    assert said["diff"] == {"before": "next start: none\n", "after": "next start: network\n"}
    assert not openbmc.run("boot", check=True, boot="none")["changed"]
    monkeypatch.setattr("hal_cluster.bmc.openbmc_rest.OpenBmc.boot_targets", lambda self: ())
    refused = openbmc.run("boot", check=True, boot="network")
    assert refused["fault"] == Fault.UNSUPPORTED.value
    assert refused["answer"] == "it offers no override"


def test_a_check_of_another_machine_fails_as_the_deed_would(openbmc: Emulated) -> None:
    for check in (True, False):
        said = openbmc.run("on", check=check, serial="SN-ELSE")
        assert said["fault"] == Fault.IDENTITY.value
    assert not openbmc.machine.power()


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({"on_turns": "{folder}/nowhere/power_on"}, "nowhere/power_on: No such file or directory"),
        ({"on_turns": "{folder}/power_on", "on_at_once": 0}, "0 at once, 5 s between: give 1 or more, and 0 s or more"),
    ],
)
def test_turns_that_cannot_be_taken(openbmc: Emulated, tmp_path: Path, changes: dict[str, Any], answer: str) -> None:
    changes["on_turns"] = changes["on_turns"].format(folder=tmp_path)
    said = openbmc.run("on", **{"on_pause_seconds": 5.0, **changes})
    assert said["fault"] == Fault.CONFIGURATION.value
    assert said["answer"].endswith(answer)
    assert said["asked"] == "its turn to be switched on"
    assert not openbmc.machine.power()
    openbmc.machine.set_power("On")
    for check in (True, False):  # before it is off
        assert openbmc.run("cycle", check=check, **{"on_pause_seconds": 5.0, **changes})["answer"] == said["answer"]
    assert openbmc.machine.kept.read().starts == 1


# --- password


def insisting(emulation: Emulation, kind: str = "openbmc") -> Emulated:
    bmc = emulation.make("hal05", kind, password="0penBmc")
    with bmc.machine.kept.change() as state:
        for name, user in state.users.items():
            state.users[name] = user.model_copy(update={"must_change": True})
    return bmc


@pytest.mark.parametrize("serial", ["S9", "S6"])
def test_a_password_that_was_changed_before_the_machine_was_known_is_told_of(emulation: Emulation, serial: str) -> None:
    """AC922s from 2020 on say nothing before that."""
    bmc = insisting(emulation)
    bmc.fault(serial=serial)
    said = bmc.run("password", password=NEW_SECRET, former_password="0penBmc", serials={"S6": "hal06"})
    assert said["fault"] == Fault.IDENTITY.value
    assert "Nothing was done" not in said["msg"]
    assert said["msg"].endswith("It has the site's password now; nothing else was done to it")
    assert "hal06" in said["msg"] or serial == "S9"
    assert bmc.machine.users()["root"].password == NEW_SECRET


def test_so_it_is_when_the_bmc_falls_silent_after_the_change(
    emulation: Emulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    bmc = insisting(emulation)

    def silent(self: object) -> None:
        raise BmcError("hal05", "its identity", "no answer within 5 s", Fault.SILENT)

    identity = "hal_cluster.bmc.redfish.Redfish.identity"
    monkeypatch.setattr("hal_cluster.bmc.operations.change_password", _then(monkeypatch, identity, silent))
    said = bmc.run("password", password=NEW_SECRET, former_password="0penBmc", wait_seconds=0)
    assert said["msg"] == (
        "BMC of hal05: its identity: no answer within 5 s. It has the site's password now; nothing else was done to it"
    )


def _then(monkeypatch: pytest.MonkeyPatch, name: str, value: Any) -> Any:
    """Return what changes a password, and puts a value in place when that is done."""
    from hal_cluster.bmc.operations import change_password

    def change(*arguments: Any) -> bool:
        done = change_password(*arguments)
        monkeypatch.setattr(name, value)
        return done

    return change


def test_a_new_password_of_an_LC922_goes_by_TLS(emulation: Emulation, monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = emulation.make("hal-data", "supermicro")
    by_ipmi = list[str]()
    monkeypatch.setattr(Ipmi, "change_password", lambda self, new: by_ipmi.append(new))
    said = bmc.run("password", password=NEW_SECRET, former_password=SECRET)
    assert said == {"changed": True}
    assert by_ipmi == []
    assert bmc.machine.users()["ADMIN"].password == NEW_SECRET


def test_it_goes_by_IPMI_where_redfish_has_no_accounts(emulation: Emulation, monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = emulation.make("hal-data", "supermicro")
    client = bmc.client()
    assert isinstance(client, Supermicro)
    by_ipmi = list[str]()
    monkeypatch.setattr(client.ipmi, "change_password", by_ipmi.append)
    monkeypatch.setattr(client.redfish.connection, "linked", lambda *_: None)
    client.change_password(NEW_SECRET)
    assert by_ipmi == [NEW_SECRET]


def test_it_does_not_go_by_IPMI_where_redfish_failed(emulation: Emulation, monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = emulation.make("hal-data", "supermicro")
    client = bmc.client(ca_file="", fingerprint="ab" * 32)
    assert isinstance(client, Supermicro)
    by_ipmi = list[str]()
    monkeypatch.setattr(client.ipmi, "change_password", by_ipmi.append)
    assert failure(lambda: client.change_password(NEW_SECRET)).fault is Fault.CERTIFICATE
    assert by_ipmi == []


def test_a_certificate_that_nobody_can_have_is_refused_before_anybody_is_asked(
    emulation: Emulation, tmp_path: Path
) -> None:
    """IPMI has no HTTPS: port 443 of its address may be somebody else's."""
    ipmi = emulation.make("hal05", "ipmi")
    said = ipmi.run("certificate", authority=str(tmp_path), serial="SN-ELSE")
    assert (said["fault"], said["answer"]) == (Fault.UNSUPPORTED.value, "IPMI has no certificates")
    said = ipmi.run("certificate", authority=str(tmp_path), days=30, renew_days=30)
    assert said["fault"] == Fault.CONFIGURATION.value
    assert said["answer"] == "for 30 days, of which the last 30 would already renew it: give more days"


@pytest.mark.parametrize("action", ["certificate", "clock"])
def test_another_machine_than_the_model_s_gets_nothing(openbmc: Emulated, tmp_path: Path, action: str) -> None:
    before = kept(openbmc)
    said = openbmc.run(action, serial="SN-ELSE", authority=str(tmp_path), ntp_servers=["10.99.0.11"])
    assert said["fault"] == Fault.IDENTITY.value
    assert kept(openbmc) == before
