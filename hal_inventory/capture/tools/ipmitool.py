"""ipmitool lan print: the MAC and the address of a machine's own BMC."""

from __future__ import annotations

import re

from hal_inventory.capture.tools.indented import parse as parse_indented

_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")


def mac(text: str) -> str | None:
    """Return the BMC's MAC, or None when the text has none, or one that nobody has written into the BMC."""
    address = parse_indented(text).values.get("MAC Address", "").lower()
    return address if _MAC.fullmatch(address) and address != "00:00:00:00:00:00" else None
