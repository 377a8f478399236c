"""lscpu of util-linux 2.23: processors and NUMA nodes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hal_inventory.capture.tools.indented import parse as parse_indented

_NUMA = re.compile(r"NUMA node(\d+) CPU\(s\)")


@dataclass(frozen=True)
class Processors:
    """What lscpu shows. ``numa`` has the CPUs of each NUMA node that has any; ``offline`` is empty if all is well."""

    arch: str
    model: str
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    total: int
    numa: tuple[tuple[int, str], ...]
    offline: str = ""


def parse(text: str) -> Processors | None:
    """Return the processors, or None when the text is not lscpu's."""
    # A NUMA node without CPUs has an empty value, and is not a heading.
    values = parse_indented(re.sub(r":[ \t]*$", ": -", text, flags=re.MULTILINE)).values
    try:
        return Processors(
            arch=values["Architecture"],
            model=tidy(values.get("Model name", "")),
            sockets=int(values["Socket(s)"]),
            cores_per_socket=int(values["Core(s) per socket"]),
            threads_per_core=int(values["Thread(s) per core"]),
            total=int(values["CPU(s)"]),
            numa=tuple(
                (int(match[1]), cpus)
                for name, cpus in values.items()
                if (match := _NUMA.fullmatch(name)) and cpus != "-"
            ),
            offline=values.get("Off-line CPU(s) list", ""),
        )
    except (KeyError, ValueError):
        return None


def tidy(model: str) -> str:
    """Return a processor's name without trade marks, clock and what the kernel adds: "Xeon Gold 6148", "POWER9"."""
    model = re.sub(r"\((R|TM|raw|architected)\)|\(tm\)|\bCPU\b|@.*|,.*|\b\d+-Core Processor\b|\bIntel\b", " ", model)
    return " ".join(model.split())
