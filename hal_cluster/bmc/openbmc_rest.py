"""OpenBMC: Redfish, and its older REST for what Redfish of a firmware level lacks, in the same session.

Paths and words: github openbmc/docs (rest-api.md, host-management.md), phosphor-dbus-interfaces (Control.Boot.Source,
Control.Boot.Mode, Sensor.Value). bmcweb takes the session's X-Auth-Token for both.
"""

from __future__ import annotations

from typing import Any

from hal_cluster.bmc.connection import Connection
from hal_cluster.bmc.errors import Fault
from hal_cluster.bmc.models import SETTABLE, Boot, BootTarget, Seen, Sensor, Target
from hal_cluster.bmc.redfish import Redfish

_ONE_TIME = "/xyz/openbmc_project/control/host0/boot/one_time"
_SENSORS = "/xyz/openbmc_project/sensors/enumerate"
_SOURCES = "xyz.openbmc_project.Control.Boot.Source.Sources"
_MODES = "xyz.openbmc_project.Control.Boot.Mode.Modes"
_WORDS = {
    BootTarget.NONE: ("Default", "Regular", False),
    BootTarget.NETWORK: ("Network", "Regular", True),
    BootTarget.DISK: ("Disk", "Regular", True),
    BootTarget.SETUP: ("Default", "Setup", True),
}
_UNITS = {"DegreesC": "C", "RPMS": "RPM", "Volts": "V", "Watts": "W", "Amperes": "A", "Joules": "J"}


class Rest:
    """The older REST of a BMC, by a connection that is logged in to its Redfish."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def _get(self, path: str) -> dict[str, Any]:
        data = (self.connection.find(path) or {}).get("data")
        return data if isinstance(data, dict) else {}

    def boot(self) -> Boot | None:
        """Return what the next start goes to; None where this firmware has no such setting."""
        said = self._get(_ONE_TIME)
        if "BootSource" not in said:
            return None
        if not said.get("Enabled"):
            return Boot(BootTarget.NONE)
        source, mode = (str(said.get(name, "")).rsplit(".", 1)[-1] for name in ("BootSource", "BootMode"))
        targets = (target for target, words in _WORDS.items() if words[:2] == (source, mode or "Regular"))
        return Boot(next(targets, BootTarget.OTHER))

    def set_boot(self, target: BootTarget) -> None:
        """Set it, the switch last, so that it is never in force by half."""
        source, mode, enabled = _WORDS[target]
        if enabled:
            self.connection.put(f"{_ONE_TIME}/attr/BootSource", {"data": f"{_SOURCES}.{source}"})
            self.connection.put(f"{_ONE_TIME}/attr/BootMode", {"data": f"{_MODES}.{mode}"})
        self.connection.put(f"{_ONE_TIME}/attr/Enabled", {"data": enabled})

    def sensors(self) -> tuple[Sensor, ...]:
        """Return the readings. A value is an integer and a power of ten."""
        sensors = []
        for path, reading in self._get(_SENSORS).items():
            if not isinstance(reading, dict) or "Value" not in reading:
                continue
            unit = str(reading.get("Unit", "")).rsplit(".", 1)[-1]
            value = float(reading["Value"]) * 10.0 ** int(reading.get("Scale") or 0)
            health = "Critical" if reading.get("CriticalAlarmHigh") or reading.get("CriticalAlarmLow") else ""
            sensors.append(Sensor(path.rsplit("/", 1)[-1], round(value, 6), _UNITS.get(unit, unit), health))
        return tuple(sorted(sensors, key=lambda sensor: sensor.name))


class OpenBmc(Redfish):
    """The BMC of an AC922; satisfies ``protocol.Bmc``."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.rest = Rest(self.connection)

    def _by_rest(self) -> bool:
        """Whether Redfish of this firmware has no override: then the older REST is asked."""
        return BootTarget.NETWORK not in self._targets(self._system())

    def boot(self) -> Boot | None:
        """Return what the next start goes to."""
        with self.connection.asking("what it boots next"):
            return self.rest.boot() if self._by_rest() else self._override(self._system())

    def boot_targets(self) -> tuple[BootTarget, ...]:
        """Return what can be set for one start."""
        with self.connection.asking("what it can boot once"):
            if not self._by_rest():
                return self._targets(self._system())
            return SETTABLE if self.rest.boot() else ()

    def set_boot(self, target: BootTarget) -> None:
        """Set what the next start, and only that one, goes to."""
        with self.connection.asking(f"boot {target.value} once"):
            if self._by_rest():
                if self.rest.boot() is None:
                    answer = "neither Redfish nor the older REST of its firmware has an override"
                    raise self.connection.failed(answer, Fault.UNSUPPORTED)
                self.rest.set_boot(target)
                return
        super().set_boot(target)

    def sensors(self) -> tuple[Sensor, ...]:
        """Return the readings of Redfish; those of the older REST if there are none."""
        sensors = super().sensors()
        if sensors:
            return sensors
        with self.connection.asking("its sensors"):
            return self.rest.sensors()

    def console(self, seconds: float) -> Seen:
        """Return what the console says within so many seconds: ssh at a port of its own."""
        from hal_cluster.bmc.console import by_ssh  # paramiko takes a while to load

        return by_ssh(self.target, seconds)
