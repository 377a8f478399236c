"""A BMC by Redfish. Members are found by walking the collections: every maker names them its own way.

Schemas: DMTF DSP0266 and DSP8010. CertificateService as OpenBMC's bmcweb has it (redfish-core/lib).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import sushy.resources.constants as resource_words
import sushy.resources.system.constants as system_words

from hal_cluster.bmc.connection import Connection
from hal_cluster.bmc.errors import Fault
from hal_cluster.bmc.models import (
    SETTABLE,
    Boot,
    BootTarget,
    Clock,
    Command,
    Firmware,
    Identity,
    Power,
    Seen,
    Sensor,
    Target,
)
from hal_inventory.capture.tools import redfish as inventory

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
_POWER = {"On": Power.ON, "Off": Power.OFF, "PoweringOn": Power.GOING_ON, "PoweringOff": Power.GOING_OFF}
_RESET = {
    Command.ON: resource_words.ResetType.ON,
    Command.SHUT_DOWN: resource_words.ResetType.GRACEFUL_SHUTDOWN,
    Command.FORCE_OFF: resource_words.ResetType.FORCE_OFF,
}
_SOURCE = {
    BootTarget.NONE: system_words.BootSource.NONE,
    BootTarget.NETWORK: system_words.BootSource.PXE,
    BootTarget.DISK: system_words.BootSource.HDD,
    BootTarget.SETUP: system_words.BootSource.BIOS_SETUP,
}
_TARGET = {source.value: target for target, source in _SOURCE.items()}
# Of Thermal and Power: the list, the field with the reading, its unit.
_READINGS = (
    ("Thermal", "Temperatures", "ReadingCelsius", "C"),
    ("Thermal", "Fans", "Reading", "RPM"),
    ("Power", "Voltages", "ReadingVolts", "V"),
    ("Power", "PowerControl", "PowerConsumedWatts", "W"),
)
_UNITS = {"Cel": "C", "Percent": "%"}


class Redfish:
    """A BMC that speaks Redfish; satisfies ``protocol.Bmc``."""

    def __init__(self, target: Target) -> None:
        """BmcError (CONFIGURATION) if neither authority nor fingerprint is given. Nothing is sent yet."""
        self.target = target
        self.connection = Connection(target)

    def close(self) -> None:
        """End the session."""
        self.connection.close()

    # --- members, found

    def _collection(self, name: str) -> list[dict[str, Any]]:
        return self.connection.members(self.connection.linked(self.connection.root.json, name))

    def _system(self) -> dict[str, Any]:
        """Return the machine: of several systems the one that can be reset; CONFIGURATION if several can."""
        systems = inventory.machines(self._collection("Systems"))
        resettable = [system for system in systems if "#ComputerSystem.Reset" in (system.get("Actions") or {})]
        if not systems:
            raise self.connection.failed("it has no system", Fault.UNSUPPORTED)
        if len(resettable) > 1:
            names = ", ".join(sorted(str(system["@odata.id"]) for system in resettable))
            raise self.connection.failed(f"it has several systems that can be reset: {names}", Fault.CONFIGURATION)
        return (resettable or systems)[0]

    def _manager(self) -> dict[str, Any]:
        """Return the BMC itself: of several managers the one of that type, else the first."""
        managers = self._collection("Managers")
        if not managers:
            raise self.connection.failed("it has no manager", Fault.UNSUPPORTED)
        return next((manager for manager in managers if manager.get("ManagerType") == "BMC"), managers[0])

    # --- power

    def power(self) -> Power:
        """Return whether the machine has power."""
        with self.connection.asking("power state"):
            return _POWER.get(str(self._system().get("PowerState")), Power.UNKNOWN)

    def command(self, command: Command) -> None:
        """Send a command, once; UNSUPPORTED where the BMC does not offer it."""
        with self.connection.asking(f"power {command.value}"):
            system = self.connection.root.get_system(self._system()["@odata.id"])
            offered = system.get_allowed_reset_system_values()
            if _RESET[command] not in offered:
                words = ", ".join(sorted(reset.value for reset in offered))
                raise self.connection.failed(f"it offers {words or 'nothing'}", Fault.UNSUPPORTED)
            self.connection.again(lambda: system.reset_system(_RESET[command]))

    # --- one-time boot

    def boot(self) -> Boot | None:
        """Return what the next start goes to."""
        with self.connection.asking("what it boots next"):
            return self._override(self._system())

    def _override(self, system: Mapping[str, Any]) -> Boot | None:
        said = system.get("Boot") or {}
        if "BootSourceOverrideTarget" not in said:
            return None
        enabled = said.get("BootSourceOverrideEnabled")
        if enabled in ("Disabled", None):
            return Boot(BootTarget.NONE)
        target = _TARGET.get(str(said["BootSourceOverrideTarget"]), BootTarget.OTHER)
        return Boot(target, once=enabled == "Once")

    def boot_targets(self) -> tuple[BootTarget, ...]:
        """Return what can be set for one start."""
        with self.connection.asking("what it can boot once"):
            return self._targets(self._system())

    def _targets(self, system: Mapping[str, Any]) -> tuple[BootTarget, ...]:
        said = system.get("Boot") or {}
        offered = said.get("BootSourceOverrideTarget@Redfish.AllowableValues")
        if offered is None:
            # It does not say: if there is an override at all, every target may be tried.
            return SETTABLE if "BootSourceOverrideTarget" in said else ()
        settable = {_TARGET[source] for source in offered if source in _TARGET}
        return tuple(target for target in SETTABLE if target in settable)

    def set_boot(self, target: BootTarget) -> None:
        """Set what the next start, and only that one, goes to."""
        with self.connection.asking(f"boot {target.value} once"):
            machine = self._system()
            if target not in self._targets(machine) and target is not BootTarget.NONE:
                raise self.connection.failed("its firmware offers no such override", Fault.UNSUPPORTED)
            system = self.connection.root.get_system(machine["@odata.id"])
            words = system_words.BootSourceOverrideEnabled
            enabled = words.DISABLED if target is BootTarget.NONE else words.ONCE
            source = _SOURCE[target] if target in self._targets(machine) else None
            self.connection.again(lambda: system.set_system_boot_options(target=source, enabled=enabled))

    # --- what it is

    def identity(self) -> Identity:
        """Return serial number, model and MACs: of the system that commands go to, else of a chassis."""
        with self.connection.asking("its identity"):
            system = self._system()
            seen = inventory.parse({str(system["@odata.id"]): system, **self._resources(("Chassis",), ())})
            ports = self.connection.members(self.connection.linked(system, "EthernetInterfaces"))
            own = self.connection.members(self.connection.linked(self._manager(), "EthernetInterfaces"))
            return Identity(seen.serial, seen.model, _macs(ports), _macs(own))

    def resources(self) -> dict[str, dict[str, Any]]:
        """Return what an inventory is made of, by paths: ``hal-inventory capture`` reads it."""
        with self.connection.asking("its inventory"):
            return self._resources(("Systems", "Managers", "Chassis"), ("EthernetInterfaces", "NetworkProtocol"))

    def _resources(self, names: Sequence[str], below: Sequence[str]) -> dict[str, dict[str, Any]]:
        resources: dict[str, dict[str, Any]] = {}
        for name in names:
            for member in self._collection(name):
                resources[str(member["@odata.id"])] = member
                for link in below:
                    resource = self.connection.linked(member, link)
                    if resource is not None:
                        resources[str(resource["@odata.id"])] = resource
                        resources |= {str(inner["@odata.id"]): inner for inner in self.connection.members(resource)}
        return resources

    def sensors(self) -> tuple[Sensor, ...]:
        """Return the readings of all chassis, from the older resources and the newer one, each name once."""
        sensors: dict[str, Sensor] = {}
        with self.connection.asking("its sensors"):
            for chassis in self._collection("Chassis"):
                for sensor in [*self._sensors(chassis), *self._readings(chassis)]:
                    sensors.setdefault(sensor.name, sensor)
        return tuple(sensors[name] for name in sorted(sensors))

    def _readings(self, chassis: Mapping[str, Any]) -> Iterator[Sensor]:
        resources = {name: self.connection.linked(chassis, name) or {} for name in ("Thermal", "Power")}
        for resource, many, reading, unit in _READINGS:
            for sensor in resources[resource].get(many) or []:
                name = sensor.get("Name") or sensor.get("FanName") or sensor.get("MemberId")
                yield _sensor(name, sensor.get(reading), str(sensor.get("ReadingUnits") or unit), sensor)

    def _sensors(self, chassis: Mapping[str, Any]) -> Iterator[Sensor]:
        for sensor in self.connection.members(self.connection.linked(chassis, "Sensors")):
            unit = str(sensor.get("ReadingUnits") or "")
            yield _sensor(sensor.get("Name"), sensor.get("Reading"), unit, sensor)

    def firmware(self) -> tuple[Firmware, ...]:
        """Return the inventory of the update service, else what system and manager say of theirs."""
        with self.connection.asking("its firmware"):
            service = self.connection.linked(self.connection.root.json, "UpdateService")
            listed = self.connection.members(self.connection.linked(service or {}, "FirmwareInventory"))
            versions = {
                Firmware(_named(image), str(image["Version"]))
                for image in listed
                if image.get("Version") and image.get("Id")
            }
            if not versions:
                said = (("BIOS", self._system().get("BiosVersion")), ("BMC", self._manager().get("FirmwareVersion")))
                versions = {Firmware(name, str(version)) for name, version in said if version}
        return tuple(sorted(versions, key=lambda firmware: (firmware.name, firmware.version)))

    # --- clock

    def clock(self) -> Clock:
        """Return the BMC's time, and whom it asks."""
        with self.connection.asking("its clock"):
            manager = self._manager()
            try:
                now = datetime.fromisoformat(str(manager["DateTime"]).replace("Z", "+00:00"))
            except (KeyError, ValueError):
                raise self.connection.failed("it tells no time", Fault.UNSUPPORTED) from None
            ntp = (self.connection.linked(manager, "NetworkProtocol") or {}).get("NTP") or {}
        servers = tuple(str(server) for server in ntp.get("NTPServers") or [] if server)
        return Clock(now.astimezone(), ntp.get("ProtocolEnabled"), servers)

    def set_clock(self, now: datetime) -> None:
        """Set the BMC's time."""
        with self.connection.asking("its clock to be set"):
            text = now.astimezone().isoformat(timespec="seconds")
            self.connection.patch(str(self._manager()["@odata.id"]), {"DateTime": text})

    def set_ntp(self, servers: Sequence[str]) -> None:
        """Have the BMC ask these servers."""
        with self.connection.asking("its time servers to be set"):
            protocol = self.connection.linked(self._manager(), "NetworkProtocol")
            if protocol is None or "NTP" not in protocol:
                raise self.connection.failed("it knows of no time servers", Fault.UNSUPPORTED)
            asked = {"ProtocolEnabled": bool(servers), "NTPServers": list(servers)}
            self.connection.patch(str(protocol["@odata.id"]), {"NTP": asked})

    # --- account

    def change_password(self, new: str) -> None:
        """Change our own password. If the BMC insists on that, it must come before anything else."""
        with self.connection.asking(f"a new password for {self.target.user}"):
            self.connection.open()
            self.connection.patch(self.connection.password_change_at or self._account(), {"Password": new})

    def _account(self) -> str:
        accounts = self.connection.linked(self.connection.root.json, "AccountService", "Accounts")
        for account in self.connection.members(accounts):
            if account.get("UserName") == self.target.user:
                return str(account["@odata.id"])
        raise self.connection.failed(f"it lists no account {self.target.user}", Fault.UNSUPPORTED)

    # --- certificate

    def signing_request(self, names: Sequence[str]) -> str:
        """Have the BMC make a key, and return its signing request."""
        with self.connection.asking("a signing request"):
            asked = {
                "CertificateCollection": {"@odata.id": self._certificates()},
                "CommonName": names[0],
                "AlternativeNames": list(names),
                # The schema requires these; the site's authority decides what stands in the certificate.
                **dict.fromkeys(("City", "Organization", "OrganizationalUnit", "State"), "HAL"),
                "Country": "US",
                "KeyPairAlgorithm": "EC",
                "KeyCurveId": "prime256v1",
            }
            said = self.connection.post(self._certificate_action("GenerateCSR"), asked)
            if not said.get("CSRString"):
                raise self.connection.failed("an answer without a request", Fault.REFUSED)
            return str(said["CSRString"])

    def install_certificate(self, certificate: str) -> None:
        """Have the BMC show this certificate instead of the one that it shows."""
        with self.connection.asking("a new certificate"):
            present = self.connection.members(self.connection.get(self._certificates()))
            if not present:
                raise self.connection.failed("it has none that could be replaced", Fault.UNSUPPORTED)
            self.connection.post(
                self._certificate_action("ReplaceCertificate"),
                {
                    "CertificateString": certificate,
                    "CertificateType": "PEM",
                    "CertificateUri": {"@odata.id": str(present[0]["@odata.id"])},
                },
            )

    def _certificates(self) -> str:
        protocol = self.connection.linked(self._manager(), "NetworkProtocol") or {}
        link = (protocol.get("HTTPS") or {}).get("Certificates") or {}
        if "@odata.id" not in link:
            raise self.connection.failed("its certificate cannot be replaced over Redfish", Fault.UNSUPPORTED)
        return str(link["@odata.id"])

    def _certificate_action(self, name: str) -> str:
        service = self.connection.linked(self.connection.root.json, "CertificateService") or {}
        action = (service.get("Actions") or {}).get(f"#CertificateService.{name}") or {}
        if "target" not in action:
            raise self.connection.failed(f"it has no {name}", Fault.UNSUPPORTED)
        return str(action["target"])

    # --- console

    def console(self, seconds: float) -> Seen:
        """UNSUPPORTED: Redfish says where a console is, and does not show it."""
        with self.connection.asking("its console"):
            raise self.connection.failed("Redfish shows no console; its web page does", Fault.UNSUPPORTED)


def _macs(ports: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    macs = (str(port.get("PermanentMACAddress") or port.get("MACAddress") or "").lower() for port in ports)
    return tuple(sorted({mac for mac in macs if _MAC.fullmatch(mac)}))


def _sensor(name: Any, reading: Any, unit: str, said: Mapping[str, Any]) -> Sensor:
    value = float(reading) if isinstance(reading, (int, float)) and not isinstance(reading, bool) else None
    health = str((said.get("Status") or {}).get("Health") or "")
    return Sensor(str(name or said.get("@odata.id") or "?"), value, _UNITS.get(unit, unit), health)


def _named(image: Mapping[str, Any]) -> str:
    """OpenBMC names its images by hashes; what they are for is the description."""
    text = str(image.get("Description") or "") if re.fullmatch(r"[0-9a-f]{8}", str(image["Id"])) else ""
    return text or str(image.get("Name") or image["Id"])
