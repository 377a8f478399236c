"""Many BMCs at once: one that fails is one that failed. And the same as lines on a screen."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from hal_cluster.bmc.choose import client_of, connect
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.many import ask_all
from hal_cluster.bmc.models import Power, Target
from hal_cluster.bmc.report import inventory_table, power_table
from hal_cluster.bmc.tls import fingerprint
from tests.unit.hal_cluster.bmc.emulated import NEW_SECRET, SECRET, Emulation

ON: Mapping[str, Any] = {"power": "on", "boot": {"target": "none", "once": True}}


def power(target: Target) -> Power:
    bmc = connect(target)
    try:
        return bmc.power()
    finally:
        bmc.close()


def test_each_answers_for_itself(emulation: Emulation) -> None:
    specs = [emulation.spec(f"hal{at:02d}", "redfish") for at in range(1, 6)]
    bmcs = emulation.serve(*specs)
    bmcs[0].machine.set_power("On")
    bmcs[3].fault(gateway_timeout=True)
    said = ask_all([one.target for one in bmcs], power)
    assert list(said) == [f"hal{at:02d}" for at in range(1, 6)]
    failed = said.pop("hal04") if isinstance(said, dict) else None
    assert isinstance(failed, BmcError)
    assert failed.fault is Fault.BUSY
    assert f"BMC of hal04 ({bmcs[3].target.address}): login of admin: 504" in str(failed)
    assert said == {"hal01": Power.ON, "hal02": Power.OFF, "hal03": Power.OFF, "hal05": Power.OFF}
    assert ask_all([], power) == {}


def odd(target: Target) -> str:
    if target.name == "hal02":
        raise KeyError(SECRET)
    return "on"


def test_one_that_answers_what_nobody_foresaw_is_one_that_failed() -> None:
    said = ask_all([Target(name, "ipmi", "10.0.0.5", "root", SECRET) for name in ("hal01", "hal02", "hal03")], odd)
    assert {name: str(one) for name, one in said.items()} == {
        "hal01": "on",
        "hal02": "BMC of hal02 (10.0.0.5): what it is: what this program does not understand: KeyError",
        "hal03": "on",
    }


def test_an_error_comes_whole_out_of_another_process() -> None:
    error = BmcError("hal05 (10.0.0.5)", "power on", "503", Fault.BUSY)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "BMC of hal05 (10.0.0.5): power on: 503"
    assert again.may_pass


def test_the_screen_has_a_line_for_each_state_and_each_failure() -> None:
    late = {"fault": "no answer", "asked": "login of root", "answer": "no answer within 30 s", "msg": "BMC of ..."}
    results: dict[str, Mapping[str, Any]] = {f"hal{at:02d}": ON for at in range(1, 15)}
    results |= {
        "hal15": {"power": "on", "boot": {"target": "network", "once": True}},
        "hal16": {"power": "off"},
        "hal-data": {"power": "on", "boot": {"target": "network", "once": False}},
        "hal-dtn": late,
        "hal-mgmt1": late,
        "hal-test": {"msg": "The field 'x'\n is undefined"},
    }
    assert power_table(results) == [
        "on hal[01-14]",
        "on, next start network and every one after it: hal-data",
        "on, next start network: hal15",
        "off hal16",
        "no answer hal-dtn,hal-mgmt1: login of root: no answer within 30 s",
        "not asked hal-test: The field 'x' is undefined",
    ]


def test_the_report_folds_what_is_the_same() -> None:
    same = {
        "firmware": [{"name": "BMC image", "version": "2.3"}],
        "boot_targets": ["none", "network", "disk"],
        "clock": {"now": "x", "ntp": True, "servers": ["10.0.0.1"]},
        "sensors": [{"name": "fan0", "value": 5000.0, "unit": "RPM", "health": "OK"}],
        "without": {},
    }
    hot = {**same, "sensors": [{"name": "cpu0", "value": 105.0, "unit": "C", "health": "Critical"}]}
    old = {"firmware": [], "boot_targets": [], "without": {"firmware": "404", "clock": "it tells no time"}}
    assert inventory_table({"hal01": same, "hal02": same, "hal03": hot, "hal04": old}) == [
        "clock: asks 10.0.0.1  (hal[01-03])",
        "firmware: BMC image 2.3  (hal[01-03])",
        "firmware: firmware 404  (hal04)",
        "one-time boot: network, disk  (hal[01-03])",
        "one-time boot: none: such a node cannot be reimaged  (hal04)",
        "sensor: cpu0 105.0 C is Critical  (hal03)",
    ]


def test_a_fingerprint_is_read_as_it_is_shown_anywhere() -> None:
    plain = "3f" * 32
    with_colons = ":".join(["3F"] * 32)
    for text in (plain, f"sha256:{plain}", f"SHA256 Fingerprint={with_colons}", f"sha256 Fingerprint={with_colons}\n"):
        assert fingerprint(text) == plain


def test_no_log_has_a_password_though_all_of_it_is_wanted(
    emulation: Emulation, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client_of("openbmc")  # what switches logging off is loaded first
    for name in ("sushy", "urllib3", "paramiko"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
    caplog.set_level(logging.DEBUG)
    bmc = emulation.make("hal05", "openbmc")
    client = connect(bmc.target)
    client.power()
    client.change_password(NEW_SECRET)
    client.close()
    assert "AccountService/Accounts/root" in caplog.text, "nothing was logged"
    assert SECRET not in caplog.text
    assert NEW_SECRET not in caplog.text
    assert SECRET not in repr(bmc.target)
