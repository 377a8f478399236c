"""dmidecode --type 1,17: maker, model, serial number and memory modules of an x86 machine."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hal_inventory.capture.tools.indented import Section
from hal_inventory.capture.tools.indented import parse as parse_indented

# What firmware says instead of a value.
_NOTHING = re.compile(
    r"(not specified|not provided|not settable|none|unknown|default string|to be filled by o\.e\.m\."
    r"|0+|x+|\*+|0123456789)?",
    re.IGNORECASE,
)
_SIZE = re.compile(r"(\d+) (MB|GB)")


@dataclass(frozen=True)
class System:
    """A machine as its firmware describes it; None for what the firmware leaves out. Memory is what is plugged in."""

    model: str | None
    serial: str | None
    memory_mb: int


def value(text: str | None) -> str | None:
    """Return a value, or None for the words that firmware has for "nothing"."""
    text = (text or "").strip()
    return None if _NOTHING.fullmatch(text) else text


def parse(text: str) -> System | None:
    """Return the system, or None when the text is not dmidecode's."""
    blocks = [_block(part) for part in re.split(r"^Handle ", text, flags=re.MULTILINE)[1:]]
    system = next((block for title, block in blocks if title == "System Information"), None)
    if system is None:
        return None
    sizes = [_SIZE.match(block.values.get("Size", "")) for title, block in blocks if title == "Memory Device"]
    memory = sum(int(size[1]) * (1024 if size[2] == "GB" else 1) for size in sizes if size)
    return System(value(system.values.get("Product Name")), value(system.values.get("Serial Number")), memory)


def _block(text: str) -> tuple[str, Section]:
    """Return the title and the values of what follows a handle."""
    lines = text.splitlines()
    return (lines[1].strip() if len(lines) > 1 else ""), parse_indented("\n".join(lines[2:]))
