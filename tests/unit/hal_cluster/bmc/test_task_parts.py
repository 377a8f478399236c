"""What a task's result has of each answer, and what the older REST is sent, with a BMC whose answers are given."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from hal_cluster.bmc import tasks
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import SETTABLE, Boot, BootTarget, Clock, Firmware, Identity, Power, Seen, Sensor, Target
from hal_cluster.bmc.openbmc_rest import OpenBmc, Rest
from hal_cluster.bmc.operations import Limits
from hal_cluster.bmc.retry import Patience
from tests.unit.hal_cluster.bmc.emulated import task_of
from tests.unit.hal_cluster.bmc.talking import NAME, PINNED, Service, client, collection, member
from tests.unit.hal_cluster.bmc.test_faults import failure

ONE_TIME = "/xyz/openbmc_project/control/host0/boot/one_time"
SENSORS = "/xyz/openbmc_project/sensors/enumerate"
NOON = datetime(2026, 11, 22, 12, 0, 0, 999999, tzinfo=timezone.utc)


class Bmc:
    """As any client: each method gives what is said for it, or raises it."""

    def __init__(self, **said: Any) -> None:
        usual = {
            "power": Power.ON,
            "boot": None,
            "sensors": (),
            "firmware": (),
            "boot_targets": (),
            "clock": Clock(NOON),
        }
        self.target, self.said, self.asked = PINNED, {**usual, **said}, list[Any]()

    def __getattr__(self, name: str) -> Any:
        def ask(*words: Any) -> Any:
            self.asked.append((name, *words))
            answer = self.said.get(name)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask


def ran(monkeypatch: pytest.MonkeyPatch, bmc: Bmc, action: str, *, check: bool = False, **more: Any) -> dict[str, Any]:
    monkeypatch.setattr(tasks, "connect", lambda target: bmc)
    return tasks.run(task_of(PINNED, action, **{"wait_seconds": 0, **more}), check=check)


def test_a_task_says_whom_it_asks_and_how_long_it_waits() -> None:
    arguments = task_of(PINNED, "status", ca_file=None, https_port="8443", timeout_seconds="7.5", wait_seconds="1.5")
    arguments |= {"power_seconds": "2", "shut_down_seconds": 3}
    assert tasks.target_of(arguments) == Target(
        *("hal05", "openbmc", "10.0.0.5", "root", ""), fingerprint="a" * 64, https_port=8443, timeout_seconds=7.5
    )
    answers, power, shut_down = Patience(seconds=1.5), Patience(seconds=2.0), Patience(seconds=3.0)
    assert tasks.limits_of(arguments) == Limits(answers=answers, power=power, shut_down=shut_down)


@pytest.mark.parametrize(
    ("boot", "found"),
    [
        (Boot(BootTarget.NETWORK), {"boot": {"target": "network", "once": True}}),
        (Boot(BootTarget.DISK, once=False), {"boot": {"target": "disk", "once": False}}),
        (None, {}),
        (BmcError("x", "y", "z", Fault.REFUSED), {}),
    ],
)
def test_a_status_has_the_next_start_where_that_is_told(
    monkeypatch: pytest.MonkeyPatch, boot: Any, found: dict[str, Any]
) -> None:
    bmc = Bmc(boot=boot)
    assert ran(monkeypatch, bmc, "status") == {"changed": False, "power": "on", **found}
    assert bmc.asked[-1] == ("close",)


def test_a_failure_is_said_in_its_parts_and_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = Bmc(power=BmcError("hal05", "power state", "no", Fault.REFUSED))
    said = {"msg": "BMC of hal05: power state: no", "asked": "power state", "answer": "no"}
    assert ran(monkeypatch, bmc, "status") == {**said, "fault": Fault.REFUSED.value}
    assert bmc.asked == [("power",), ("close",)]
    said = ran(monkeypatch, Bmc(power=KeyError("odd")), "status")
    assert (said["asked"], sorted(said)) == ("status", ["answer", "asked", "fault", "msg"])


def test_an_inventory_has_all_that_is_told_and_why_the_rest_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = Identity("SN", "AC922", ("02:00:00:00:00:01",), ())
    told = Bmc(
        identity=identity,
        sensors=(Sensor("Air", 20.0, "C", "OK"),),
        firmware=(Firmware("BMC", "1"),),
        boot_targets=(BootTarget.DISK, BootTarget.NETWORK),
        clock=Clock(NOON, True, ("10.0.0.1",)),
    )
    assert ran(monkeypatch, told, "inventory") == {
        **{"changed": False, "power": "on", "without": {}},
        "identity": {"serial": "SN", "model": "AC922", "macs": ("02:00:00:00:00:01",), "bmc_macs": ()},
        "sensors": [{"name": "Air", "value": 20.0, "unit": "C", "health": "OK"}],
        "firmware": [{"name": "BMC", "version": "1"}],
        "boot_targets": ["disk", "network"],
        "clock": {"now": "2026-11-22T12:00:00+00:00", "ntp": True, "servers": ["10.0.0.1"]},
    }
    lacks = {name: BmcError("x", "y", f"no {name}", Fault.UNSUPPORTED) for name in ("sensors", "boot_targets")}
    lacks |= {name: BmcError("x", "y", f"no {name}", Fault.REFUSED) for name in ("firmware", "clock")}
    found = ran(monkeypatch, Bmc(identity=identity, **lacks), "inventory")
    assert found["without"] == {name: f"no {name}" for name in lacks}
    assert sorted(found) == ["changed", "identity", "power", "without"]
    silent = Bmc(identity=identity, firmware=BmcError("x", "y", "no answer", Fault.SILENT))
    assert ran(monkeypatch, silent, "inventory")["fault"] == Fault.SILENT.value


def test_a_console_is_told_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    bmc = Bmc(console=Seen("hello", "log"))
    found = ran(monkeypatch, bmc, "console", console_seconds="2.5")
    assert found == {"changed": False, "console": "hello", "source": "log"}
    assert bmc.asked == [("console", 2.5), ("close",)]


@pytest.mark.parametrize(
    ("before", "boot", "changed", "was"),
    [
        (Boot(BootTarget.NETWORK), "network", False, ""),
        (Boot(BootTarget.NETWORK, once=False), "network", True, "network, always"),
        (Boot(BootTarget.DISK), "network", True, "disk"),
        (None, "network", True, "not told"),
        (Boot(BootTarget.NETWORK), "none", True, "network"),
    ],
)
def test_a_check_says_what_the_next_start_would_become(
    monkeypatch: pytest.MonkeyPatch, before: Boot | None, boot: str, changed: bool, was: str
) -> None:
    bmc = Bmc(boot=before, boot_targets=(BootTarget.NETWORK,), identity=Identity("SN", "", (), ()))
    said = ran(monkeypatch, bmc, "boot", check=True, boot=boot, serial="SN")
    diff = {"before": f"next start: {was}\n", "after": f"next start: {boot}\n"} if changed else {}
    assert said == {"changed": changed, "confirmed": False, "boot": {"target": boot, "once": True}, "diff": diff}
    assert "set_boot" not in [name for name, *_ in bmc.asked]
    said = ran(monkeypatch, bmc, "boot", check=True, boot="setup", serial="SN")
    assert (said["answer"], said["asked"]) == ("it offers network", "boot setup once")


@pytest.mark.parametrize("action", ["clock", "certificate", "boot", "on"])
def test_another_machine_is_left_alone(monkeypatch: pytest.MonkeyPatch, action: str) -> None:
    bmc = Bmc(identity=Identity("SN-1", "", (), ()))
    said = ran(monkeypatch, bmc, action, serial="SN-2", authority="/none", boot="network")
    assert (said["fault"], said["asked"]) == (Fault.IDENTITY.value, "whether it is the machine SN-2")
    assert bmc.asked == [("identity",), ("close",)]


# --- the older REST


def rest(resources: dict[str, Any]) -> tuple[Rest, Service]:
    found, service = client(resources)
    return Rest(found.connection), service


@pytest.mark.parametrize(
    ("target", "source", "mode"),
    [
        (BootTarget.NETWORK, "Network", "Regular"),
        (BootTarget.DISK, "Disk", "Regular"),
        (BootTarget.SETUP, "Default", "Setup"),
    ],
)
def test_what_is_in_force_is_switched_on_last(target: BootTarget, source: str, mode: str) -> None:
    one, service = rest({})
    one.set_boot(target)
    words = "xyz.openbmc_project.Control.Boot"
    assert service.sent == [
        ("put", f"{ONE_TIME}/attr/BootSource", {"data": f"{words}.Source.Sources.{source}"}),
        ("put", f"{ONE_TIME}/attr/BootMode", {"data": f"{words}.Mode.Modes.{mode}"}),
        ("put", f"{ONE_TIME}/attr/Enabled", {"data": True}),
    ]


def test_what_is_taken_back_is_only_switched_off() -> None:
    one, service = rest({})
    one.set_boot(BootTarget.NONE)
    assert service.sent == [("put", f"{ONE_TIME}/attr/Enabled", {"data": False})]


def test_a_reading_is_an_integer_and_a_power_of_ten() -> None:
    unit = "xyz.openbmc_project.Sensor.Value.Unit"
    readings = {
        **{"/s/none": {"Scale": 1}, "/s/text": "x"},
        "/s/power/total": {"Value": 1234567, "Scale": -6, "Unit": f"{unit}.Watts", "CriticalAlarmLow": True},
        "/s/temperature/air": {"Value": 21, "Unit": f"{unit}.DegreesC", "Scale": None},
        "/s/fan/zero": {"Value": 12, "Scale": 2, "Unit": f"{unit}.RPMS", "CriticalAlarmHigh": True},
        "/s/other": {"Value": 1, "Unit": "odd", "CriticalAlarmLow": False},
    }
    assert rest({SENSORS: {"data": readings}})[0].sensors() == (
        Sensor("air", 21.0, "C", ""),
        Sensor("other", 1.0, "odd", ""),
        Sensor("total", 1.234567, "W", "Critical"),
        Sensor("zero", 1200.0, "RPM", "Critical"),
    )
    for answer in ({}, {"data": ["x"]}, {"data": None}):
        assert rest({SENSORS: answer})[0].sensors() == ()


def openbmc(resources: dict[str, Any]) -> tuple[Any, Service]:
    of, service = client(resources)
    found: Any = OpenBmc(PINNED)
    found.connection._connector, found.connection._root = service, of.connection._root
    return found, service


def systems(boot: Any) -> dict[str, Any]:
    return {"/Systems": collection(member("/Systems/1", Boot=boot))}


def test_the_older_rest_is_asked_where_redfish_offers_no_network() -> None:
    own = {"data": {"BootSource": "x.Network", "Enabled": True}}
    offered = "BootSourceOverrideTarget@Redfish.AllowableValues"
    old, _ = openbmc({**systems({offered: ["Hdd"]}), ONE_TIME: own})
    assert (old.boot(), old.boot_targets()) == (Boot(BootTarget.NETWORK), SETTABLE)
    new, service = openbmc({**systems({offered: ["Pxe"], "BootSourceOverrideTarget": "Hdd"}), ONE_TIME: own})
    assert (new.boot(), new.boot_targets()) == (Boot(BootTarget.NONE), (BootTarget.NETWORK,))
    assert ("get", ONE_TIME) not in service.sent
    none, service = openbmc(systems({}))
    assert (none.boot(), none.boot_targets()) == (None, ())
    error = failure(lambda: none.set_boot(BootTarget.NETWORK))
    answer = "neither Redfish nor the older REST of its firmware has an override"
    assert (str(error), error.fault) == (f"{NAME}: boot network once: {answer}", Fault.UNSUPPORTED)
    assert [one for one in service.sent if one[0] == "put"] == []


def test_readings_of_the_older_rest_stand_in_for_none_of_redfish() -> None:
    readings = {SENSORS: {"data": {"/s/air": {"Value": 21, "Unit": "x.DegreesC"}}}}
    assert openbmc({"/Chassis": collection(), **readings})[0].sensors() == (Sensor("air", 21.0, "C", ""),)
    thermal = {"Thermal": {"@odata.id": "/T"}}
    redfish = {"/Chassis": collection(member("/C", **thermal)), "/T": {"Fans": [{"Name": "Fan", "Reading": 1}]}}
    assert openbmc({**redfish, **readings})[0].sensors() == (Sensor("Fan", 1.0, "RPM", ""),)
