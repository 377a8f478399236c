"""What the sensors of an emulated machine measure: the same values for the same machine, since tests read them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal

from bmc.spec import Spec

Quantity = Literal["temperature", "fan_tach", "power"]
UNITS = {"temperature": "DegreesC", "fan_tach": "RPMS", "power": "Watts"}


@dataclass(frozen=True)
class Sensor:
    """One sensor. ``value`` is in degrees Celsius, revolutions a minute or watts; ``critical`` is the upper limit."""

    name: str
    quantity: Quantity
    value: float
    critical: float


def sensors(spec: Spec, *, on: bool) -> list[Sensor]:
    """Return the sensors of a machine. One that is off has its ambient temperature and what the BMC itself takes."""
    offset = zlib.crc32(spec.name.encode()) % 5
    ambient = Sensor("ambient", "temperature", 20.0 + offset, 40.0)
    if not on:
        return [ambient, Sensor("total_power", "power", 25.0, 3300.0)]
    return [
        ambient,
        *(Sensor(f"p{socket}_core0_temp", "temperature", 50.0 + offset + socket, 95.0) for socket in range(2)),
        *(Sensor(f"gpu{index}_core_temp", "temperature", 40.0 + offset + index, 84.0) for index in range(spec.gpus)),
        *(Sensor(f"fan{index}_0", "fan_tach", 5000.0 + 10 * offset, 12000.0) for index in range(4)),
        Sensor("total_power", "power", 500.0 + 10 * offset + 300 * spec.gpus, 3300.0),
    ]
