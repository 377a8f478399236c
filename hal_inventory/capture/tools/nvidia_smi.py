"""nvidia-smi -q: the GPUs, and those that the driver has lost."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hal_inventory.capture.tools.dmidecode import value
from hal_inventory.capture.tools.indented import parse as parse_indented

_GPU = re.compile(r"GPU ([0-9A-Fa-f]+:[0-9A-Fa-f:.]+)")
_LOST = re.compile(
    r"Unable to determine the device handle for (?:gpu|GPU) ?([0-9A-Fa-f:.]+[0-9A-Fa-f]): (.*?)\.?\s*$", re.MULTILINE
)


@dataclass(frozen=True)
class Gpu:
    """A GPU that answered. ``index`` is the minor number of its device, which is that of /dev/nvidia0."""

    index: int
    bus_id: str
    model: str
    uuid: str
    serial: str | None
    memory_mb: int


@dataclass(frozen=True)
class Gpus:
    """What nvidia-smi said: GPUs that answered, what it says is attached, and a line for each that is lost."""

    answered: tuple[Gpu, ...]
    attached: int
    lost: tuple[str, ...]


def parse(text: str) -> Gpus:
    """Return the GPUs; none for an output without any. ``text`` is standard output and errors together."""
    root = parse_indented(text)
    made: list[Gpu] = []
    for section in root.sections:
        bus = _GPU.fullmatch(section.title)
        memory = section.find("FB Memory Usage")
        if bus is None:
            continue
        size = re.match(r"(\d+) MiB", memory.values.get("Total", "")) if memory else None
        minor = section.values.get("Minor Number", "")
        made.append(
            Gpu(
                index=int(minor) if minor.isdigit() else len(made),
                bus_id=bus[1].lower(),
                model=section.values.get("Product Name", ""),
                uuid=section.values.get("GPU UUID", ""),
                serial=value(section.values.get("Serial Number", "").replace("N/A", "")),
                memory_mb=int(size[1]) if size else 0,
            )
        )
    attached = root.values.get("Attached GPUs", "")
    lost = tuple(f"GPU {bus}: {why}" for bus, why in _LOST.findall(text))
    return Gpus(tuple(made), int(attached) if attached.isdigit() else len(made), lost)
