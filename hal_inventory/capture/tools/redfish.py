"""Redfish: serial number, model, memory and the BMC's own ports. Members are found by type: makers name them apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hal_inventory.capture.tools.dmidecode import value

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
Resources = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Machine:
    """What a BMC says of its machine; ``macs`` are those of the BMC's ports by their addresses."""

    serial: str | None
    model: str | None
    memory_mb: int
    host_name: str | None
    macs: tuple[tuple[str, tuple[str, ...]], ...]


def parse(resources: Resources) -> Machine:
    """Return the machine. OpenBMC has model and serial number at the system, the LC92x's BMC at a chassis."""
    system = next(iter(machines(list(_of_type(resources, "ComputerSystem")))), {})
    bodies = [system, *_of_type(resources, "Chassis")]
    memory = (system.get("MemorySummary") or {}).get("TotalSystemMemoryGiB")
    return Machine(
        serial=next((serial for body in bodies if (serial := value(body.get("SerialNumber")))), None),
        model=next(
            (model for body in bodies for name in ("Model", "PartNumber") if (model := value(body.get(name)))), None
        ),
        memory_mb=int(memory * 1024) if isinstance(memory, (int, float)) else 0,
        host_name=value(system.get("HostName")),
        macs=tuple(_macs(resources)),
    )


def machines(systems: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return those systems that are machines; all of them if none says so.

    OpenBMC for newer POWER lists its hypervisor as another system that can be reset, of SystemType OS (bmcweb,
    redfish-core/lib/hypervisor_system.hpp). Values: DMTF's ComputerSystem schema.
    """
    physical = [dict(system) for system in systems if system.get("SystemType") == "Physical"]
    return physical or [dict(system) for system in systems]


def _of_type(resources: Resources, name: str) -> Iterator[Mapping[str, Any]]:
    for path in sorted(resources):
        if str(resources[path].get("@odata.type", "")).startswith(f"#{name}."):
            yield resources[path]


def _macs(resources: Resources) -> Iterator[tuple[str, tuple[str, ...]]]:
    for path in sorted(resources):
        port = resources[path]
        mac = str(port.get("PermanentMACAddress") or port.get("MACAddress") or "").lower()
        if "/Managers/" in path and _MAC.fullmatch(mac):
            yield mac, tuple(str(address.get("Address")) for address in port.get("IPv4Addresses") or [])
