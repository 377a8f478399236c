"""What a machine and its emulated BMC are by Redfish: boot override, the BMC itself, chassis, sensors, firmware.

sushy-tools' emulator lacks these resources, or has them with constants instead of facts (see `redfish`).
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from typing import Any

import flask

from bmc.machine import Processor, identifier
from bmc.redfish_forms import RefusedError, blueprint, collection, manager_path, member, resource, sent
from bmc.state import Enabled, Target
from bmc.web import asked

facts = blueprint("redfish_facts")
TARGETS: dict[str, Target] = {"None": "none", "Pxe": "network", "Hdd": "disk", "BiosSetup": "setup"}
REDFISH_TARGETS = {target: name for name, target in TARGETS.items()}
ENABLED: dict[str, Enabled] = {"Disabled": "disabled", "Once": "once", "Continuous": "continuous"}


@facts.get("")
def versions() -> dict[str, Any]:
    """Which versions of Redfish there are."""
    return {"v1": "/redfish/v1/"}


# The system's boot override: sushy-tools answers GET, and knows neither Once nor Disabled


@facts.patch("/v1/Systems/<system>")
def system(system: str) -> tuple[str, int]:
    """Set the boot override."""
    processor = member(system, "system")
    boot = sent("Boot").get("Boot")
    if not isinstance(boot, dict):
        raise RefusedError(400, "PropertyMissing", "The property Boot is a required property.", "Boot")
    if not processor.offers_override:
        name = next(iter(boot), "Boot")
        raise RefusedError(400, "PropertyUnknown", f"The property {name} is not in the list of valid properties.", name)
    now = processor.host.override()
    boot = {name: value for name, value in boot.items() if name != "BootSourceOverrideMode"}
    for name in boot:
        if name not in ("BootSourceOverrideTarget", "BootSourceOverrideEnabled"):
            raise RefusedError(
                400, "PropertyUnknown", f"The property {name} is not in the list of valid properties.", name
            )
    target = _one_of(TARGETS, boot, "BootSourceOverrideTarget", now.target)
    enabled = _one_of(ENABLED, boot, "BootSourceOverrideEnabled", now.enabled if now.enabled != "disabled" else "once")
    processor.set_override(target, enabled)
    return "", 204


def _one_of(values: Mapping[str, Any], given: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    if name not in given:
        return otherwise
    if given[name] not in values:
        text = f"The value {given[name]} for the property {name} is not in the list of acceptable values."
        raise RefusedError(400, "PropertyValueNotInList", text, str(given[name]), name)
    return values[given[name]]


# The BMC itself


@facts.route("/v1/Managers/<manager>", methods=["GET", "PATCH"])
def manager(manager: str) -> Any:
    """The BMC: firmware, clock, and where its parts are."""
    processor = member(manager, "manager")
    path, delivered = manager_path(processor), processor.own.spec.delivered
    if flask.request.method == "PATCH":
        given = sent("DateTime").get("DateTime")
        try:
            moment = datetime.datetime.fromisoformat(str(given).replace("Z", "+00:00"))
        except ValueError:
            text = f"The value {given} for the property DateTime is of a different format than the property can accept."
            raise RefusedError(400, "PropertyValueFormatError", text, str(given), "DateTime") from None
        if processor.own.kept.read().ntp_enabled:
            text = "The property DateTime could not be written because NTP sets the clock; switch NTP off first."
            raise RefusedError(400, "PropertyValueConflict", text, "DateTime", "NTP/ProtocolEnabled")
        processor.own.set_clock(moment)
        return "", 204
    return resource(
        path,
        "Manager",
        "v1_9_0",
        Id=manager,
        Name="OpenBmc Manager" if processor.own.spec.kind == "openbmc" else "Manager",
        Description="Baseboard Management Controller",
        ManagerType="BMC",
        Model=delivered.manager_model,
        UUID=identifier(processor, "manager"),
        ServiceEntryPointUUID=identifier(processor, "root"),
        FirmwareVersion=processor.own.firmware()["bmc"],
        PowerState="On",
        Status={"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        DateTime=processor.own.clock().isoformat(timespec="seconds"),
        DateTimeLocalOffset="+00:00",
        EthernetInterfaces={"@odata.id": f"{path}/EthernetInterfaces"},
        NetworkProtocol={"@odata.id": f"{path}/NetworkProtocol"},
        SerialConsole={
            "ServiceEnabled": delivered.console or delivered.ipmi,
            "MaxConcurrentSessions": 15,
            "ConnectTypesSupported": [
                *(["IPMI"] if delivered.ipmi else []),
                *(["SSH"] if delivered.console else []),
            ],
        },
        Links={
            "ManagerForServers": [{"@odata.id": f"/redfish/v1/Systems/{delivered.members.system}"}],
            "ManagerForChassis": [{"@odata.id": f"/redfish/v1/Chassis/{delivered.members.chassis}"}],
        },
    )


@facts.get("/v1/Managers/<manager>/EthernetInterfaces")
def manager_ports(manager: str) -> dict[str, Any]:
    """The BMC's own ports."""
    return collection(f"{manager_path(member(manager, 'manager'))}/EthernetInterfaces", "EthernetInterface", ["eth0"])


@facts.get("/v1/Managers/<manager>/EthernetInterfaces/eth0")
def manager_port(manager: str) -> dict[str, Any]:
    """The BMC's own port: MAC and address."""
    processor = member(manager, "manager")
    spec = processor.own.spec
    mac = processor.host.spec.macs.get("bmc", "")
    return resource(
        f"{manager_path(processor)}/EthernetInterfaces/eth0",
        "EthernetInterface",
        "v1_4_1",
        Id="eth0",
        Name="Manager Ethernet Interface",
        Description="Management Network Interface",
        InterfaceEnabled=True,
        LinkStatus="LinkUp",
        MACAddress=mac,
        PermanentMACAddress=mac,
        IPv4Addresses=[{"Address": spec.address, "AddressOrigin": "Static", "SubnetMask": "255.255.255.0"}],
    )


@facts.route("/v1/Managers/<manager>/NetworkProtocol", methods=["GET", "PATCH"])
def network_protocol(manager: str) -> Any:
    """What the BMC serves, and where it has its time from."""
    processor = member(manager, "manager")
    own, path = processor.own, f"{manager_path(processor)}/NetworkProtocol"
    if flask.request.method == "PATCH":
        ntp = sent("NTP").get("NTP")
        servers = ntp.get("NTPServers", own.kept.read().ntp_servers) if isinstance(ntp, dict) else None
        enabled = ntp.get("ProtocolEnabled", own.kept.read().ntp_enabled) if isinstance(ntp, dict) else None
        if (
            not isinstance(servers, list)
            or not all(isinstance(server, str) for server in servers)
            or not isinstance(enabled, bool)
        ):
            raise RefusedError(
                400,
                "PropertyValueTypeError",
                "NTP has NTPServers, a list of names, and ProtocolEnabled, true or false.",
                "NTP",
            )
        with own.kept.change() as state:
            state.ntp_servers, state.ntp_enabled = servers, enabled
        return "", 204
    state, ports, delivered = own.kept.read(), own.spec.ports, own.spec.delivered
    return resource(
        path,
        "ManagerNetworkProtocol",
        "v1_5_0",
        Id="NetworkProtocol",
        Name="Manager Network Protocol",
        HostName=f"{own.spec.name}-bmc",
        HTTP={"ProtocolEnabled": False, "Port": None},
        HTTPS={
            "ProtocolEnabled": True,
            "Port": ports.https,
            "Certificates": {"@odata.id": f"{path}/HTTPS/Certificates"},
        },
        IPMI={"ProtocolEnabled": delivered.ipmi, "Port": ports.ipmi if delivered.ipmi else None},
        SSH={"ProtocolEnabled": delivered.console, "Port": 22 if delivered.console else None},
        NTP={"ProtocolEnabled": state.ntp_enabled, "NTPServers": state.ntp_servers},
    )


# The machine's body and its sensors


@facts.get("/v1/Chassis/<chassis>")
def chassis(chassis: str) -> dict[str, Any]:
    """The machine's body: serial number and model, which the LC92x have only here."""
    processor = member(chassis, "chassis")
    spec, members = processor.host.spec, processor.own.spec.delivered.members
    path = f"/redfish/v1/Chassis/{chassis}"
    return resource(
        path,
        "Chassis",
        "v1_14_0",
        Id=chassis,
        Name=chassis,
        ChassisType="RackMount",
        Manufacturer=spec.delivered.manufacturer,
        Model=spec.model,
        SerialNumber=processor.serial,
        PartNumber=spec.model.split()[-1],
        PowerState="On" if processor.host.power() else "Off",
        Status={"State": "Enabled", "Health": "OK"},
        Thermal={"@odata.id": f"{path}/Thermal"},
        Power={"@odata.id": f"{path}/Power"},
        Links={
            "ComputerSystems": [{"@odata.id": f"/redfish/v1/Systems/{members.system}"}],
            "ManagedBy": [{"@odata.id": f"/redfish/v1/Managers/{members.manager}"}],
        },
    )


@facts.get("/v1/Chassis/<chassis>/Thermal")
def thermal(chassis: str) -> dict[str, Any]:
    """Temperatures and fans."""
    processor = member(chassis, "chassis")
    path = f"/redfish/v1/Chassis/{chassis}/Thermal"
    measured = processor.host.sensors()
    warm = [sensor for sensor in measured if sensor.quantity == "temperature"]
    fans = [sensor for sensor in measured if sensor.quantity == "fan_tach"]
    return resource(
        path,
        "Thermal",
        "v1_4_0",
        Id="Thermal",
        Name="Thermal",
        Temperatures=[
            _reading(
                f"{path}#/Temperatures/{at}",
                at,
                sensor.name,
                ReadingCelsius=sensor.value,
                UpperThresholdCritical=sensor.critical,
            )
            for at, sensor in enumerate(warm)
        ],
        Fans=[
            _reading(f"{path}#/Fans/{at}", at, sensor.name, Reading=int(sensor.value), ReadingUnits="RPM")
            for at, sensor in enumerate(fans)
        ],
    )


@facts.get("/v1/Chassis/<chassis>/Power")
def power(chassis: str) -> dict[str, Any]:
    """What the machine takes."""
    processor = member(chassis, "chassis")
    path = f"/redfish/v1/Chassis/{chassis}/Power"
    watts = [sensor for sensor in processor.host.sensors() if sensor.quantity == "power"]
    return resource(
        path,
        "Power",
        "v1_5_2",
        Id="Power",
        Name="Power",
        PowerControl=[
            _reading(
                f"{path}#/PowerControl/{at}",
                at,
                sensor.name,
                PowerConsumedWatts=sensor.value,
                PowerCapacityWatts=sensor.critical,
            )
            for at, sensor in enumerate(watts)
        ],
    )


def _reading(path: str, at: int, name: str, **values: Any) -> dict[str, Any]:
    return {
        "@odata.id": path,
        "MemberId": str(at),
        "Name": name,
        "Status": {"State": "Enabled", "Health": "OK"},
        **values,
    }


# Firmware


@facts.get("/v1/UpdateService")
def update_service() -> dict[str, Any]:
    """The service itself; an emulated BMC is not updated."""
    path = "/redfish/v1/UpdateService"
    below = {"FirmwareInventory": {"@odata.id": f"{path}/FirmwareInventory"}}
    return resource(
        path, "UpdateService", "v1_4_0", Id="UpdateService", Name="Update Service", ServiceEnabled=False, **below
    )


def _firmware(processor: Processor) -> dict[str, tuple[str, str]]:
    """Return purpose and version by id, which is eight digits of a hash as in phosphor-bmc-code-mgmt."""
    versions = processor.own.firmware()
    return {hashlib.sha512(version.encode()).hexdigest()[:8]: (part, version) for part, version in versions.items()}


@facts.get("/v1/UpdateService/FirmwareInventory")
def firmware_inventory() -> dict[str, Any]:
    """The firmware that is there."""
    return collection(
        "/redfish/v1/UpdateService/FirmwareInventory", "SoftwareInventory", sorted(_firmware(asked().processor))
    )


@facts.get("/v1/UpdateService/FirmwareInventory/<number>")
def firmware(number: str) -> dict[str, Any]:
    """One firmware: of the BMC or of the host."""
    installed = _firmware(asked().processor).get(number)
    if installed is None:
        raise RefusedError(404, "ResourceNotFound", f"The requested resource named {number} was not found.", number)
    purpose, version = installed
    words = {"bmc": "BMC image", "host": "Host image"}
    path = f"/redfish/v1/UpdateService/FirmwareInventory/{number}"
    return resource(
        path,
        "SoftwareInventory",
        "v1_1_0",
        Id=number,
        Name="Software Inventory",
        Description=words[purpose],
        Version=version,
        Updateable=False,
        Status={"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
    )
