"""ibstat: ports of InfiniBand adapters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hal_inventory.capture.tools.indented import parse as parse_indented


@dataclass(frozen=True)
class Port:
    """A port, as ``mlx5_0/1``. A healthy one is Active and LinkUp."""

    name: str
    type: str
    guid: str
    state: str
    physical: str
    rate_gbps: int
    layer: str


def parse(text: str) -> tuple[Port, ...]:
    """Return the ports whose link layer is InfiniBand, in the order of the output. What is cut off is left out."""
    made: list[Port] = []
    for adapter in parse_indented(text).sections:
        name = re.fullmatch(r"CA '(.+)'", adapter.title)
        for port in adapter.sections:
            number = re.fullmatch(r"Port (\d+)", port.title)
            if name is None or number is None or "Port GUID" not in port.values:
                continue
            rate = re.match(r"\d+", port.values.get("Rate", ""))
            made.append(
                Port(
                    name=f"{name[1]}/{number[1]}",
                    type=adapter.values.get("CA type", ""),
                    guid=port.values["Port GUID"].lower(),
                    state=port.values.get("State", ""),
                    physical=port.values.get("Physical state", ""),
                    rate_gbps=int(rate[0]) if rate else 0,
                    layer=port.values.get("Link layer", "InfiniBand"),
                )
            )
    return tuple(port for port in made if port.layer == "InfiniBand")
