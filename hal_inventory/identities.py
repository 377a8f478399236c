"""Identities that a machine and its parts keep for life: why a text cannot be one; "" if it can."""

from __future__ import annotations

import re

from hal_inventory.names import RESERVED, is_node_name, is_wwn

_NOBODY_FILLED_IN = "PLACEHOLDER"  # what `hal-inventory capture` writes for a node that it has not seen

_GUID = re.compile(r"0x[0-9a-f]{16}")
_NOT_SET = ("0x" + 16 * "0", "0x" + 16 * "f")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def is_guid(text: str) -> bool:
    """Tell whether a text is the GUID of a port or a switch. Firmware has all zeros or ones before it is set."""
    return _GUID.fullmatch(text) is not None and text not in _NOT_SET


def why_no_guid(text: str) -> str:
    """Say why a text is not the GUID of a switch."""
    return "" if is_guid(text) else "is not a GUID; write 0x and 16 small digits such as 0x506b4b0300c2b2f0"


def why_no_port_guid(text: str) -> str:
    """Say why a text is not the GUID of a port."""
    return "" if text.startswith(_NOBODY_FILLED_IN) else why_no_guid(text)


def why_no_wwn(text: str) -> str:
    """Say why a text is not the world-wide name of a disk, in small letters or capitals."""
    if is_wwn(text) or text.startswith(_NOBODY_FILLED_IN):
        return ""
    return "is not a world-wide name; lsblk -o NAME,WWN shows them: write one such as 0x5000c500a1b2c3d4"


def why_no_uuid(text: str) -> str:
    """Say why a text is not the UUID of a GPU."""
    return "" if text.strip() else "is empty; write the UUID that nvidia-smi -L shows, or take the field away"


def why_no_mac(text: str) -> str:
    """Say why a text in small letters is not an interface's MAC; that of a group has an odd first pair (IEEE 802)."""
    if not _MAC.fullmatch(text):
        return "is not a MAC; write six pairs such as 02:48:41:4c:00:10"
    if text == "00:00:00:00:00:00":
        return "is not a machine's MAC; ip link shows its own"
    return "is a group's MAC, not a machine's; ip link shows its own" if int(text[:2], 16) & 1 else ""


def why_no_serial(text: str) -> str:
    """Say why a text is not a serial number."""
    if not text.strip():
        return "is empty; write the serial number, or take the field away"
    return "begins or ends with a blank; take it away" if text != text.strip() else ""


def why_no_host(name: str) -> str:
    """Say why a name cannot be a host's."""
    if name in RESERVED:
        return "is a reserved word"
    return "" if is_node_name(name) else "is not a host name; write small letters, digits and -"
