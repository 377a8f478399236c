"""What IPMI keeps as bytes: the inventory of the machine (FRU) and the descriptions of its sensors (SDR).

Sources: IPMI Platform Management FRU Information Storage Definition 1.0; IPMI 2.0, table 43-1.
"""

from __future__ import annotations

from dataclasses import dataclass

from bmc.sensors import Quantity, Sensor

FRU_BYTES = 256
END = b"\xc1"
ENGLISH = 25


def fru(manufacturer: str, model: str, serial: str) -> bytes:
    """Return board and product information of a machine."""
    part = model.split()[-1]
    board = _area(bytes([ENGLISH, 0, 0, 0]), manufacturer, model, serial, part, "")
    product = _area(bytes([ENGLISH]), manufacturer, model, part, "", serial, "", "")
    header = bytes([1, 0, 0, 1, 1 + len(board) // 8, 0, 0])
    return (header + _checksum(header) + board + product).ljust(FRU_BYTES, b"\0")


def _area(start: bytes, *fields: str) -> bytes:
    content = start + b"".join(_field(text) for text in fields) + END
    length = -(-(len(content) + 3) // 8)  # in units of eight, with version, length and checksum
    area = (bytes([1, length]) + content).ljust(length * 8 - 1, b"\0")
    return area + _checksum(area)


def _field(text: str) -> bytes:
    content = text.encode("ascii", "replace")[:31]
    if len(content) == 1:  # 0xc1 would end the area
        content += b" "
    return bytes([0xC0 | len(content)]) + content


def _checksum(content: bytes) -> bytes:
    return bytes([-sum(content) % 256])


@dataclass(frozen=True)
class Form:
    """How a quantity is carried in one byte: its IPMI codes, and what one step of the byte is worth."""

    sensor_type: int
    unit: int
    step: int


FORMS: dict[Quantity, Form] = {
    "temperature": Form(0x01, 1, 1),
    "fan_tach": Form(0x04, 18, 100),
    "power": Form(0x0B, 6, 20),
}


def raw(quantity: Quantity, value: float) -> int:
    """Return the byte that carries a value."""
    return min(255, round(value / FORMS[quantity].step))


def record(number: int, sensor: Sensor) -> bytes:
    """Return the description of a sensor, a full sensor record with one critical limit."""
    form = FORMS[sensor.quantity]
    critical = raw(sensor.quantity, sensor.critical)
    name = sensor.name.encode()[:16]
    upper_critical = 0x10
    body = bytes(
        [
            *(0x20, 0, number),  # owner, LUN, number
            *(0x07, 0x01),  # of the system board
            *(0x67, 0x68),  # initialised; readable limits
            *(form.sensor_type, 0x01),  # it has limits
            *(0, 0x02, 0, 0x02),  # which events come and go
            *(0, upper_critical),  # which limits can be read
            *(0, form.unit, 0),
            0,  # linear
            *(form.step, 0, 0, 0, 0, 0),  # value = byte * step
            *(0, 0, 0, 0),
            *(255, 0),  # highest and lowest byte
            *(0, critical, 0, 0, 0, 0),
            *(1, 1, 0, 0, 0),
            0xC0 | len(name),
        ]
    )
    return bytes([number, 0, 0x51, 0x01, len(body) + len(name)]) + body + name
