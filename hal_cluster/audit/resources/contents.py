"""What the modules of this project would write, by resource: for a comparison with a node that has no record."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any

from hal_cluster.audit.resources.model import text

# Module -> the argument that lists files, and the part of each that is its content.
_LISTS = {
    "hal_files": ("files", "content"),
    "hal_modulefiles": ("files", "content"),
    "hal_network": ("devices", "text"),
}

_HEXADECIMAL = re.compile(r"(?:[0-9a-f]{2})+|(?:[0-9A-F]{2})+")


def contents(module: str, arguments: Mapping[str, Any]) -> dict[str, bytes]:
    """Return {resource: content} of the files that a call gives whole; {} for a module that gives none."""
    if module == "hal_munge_key":
        return _munge_key(arguments)
    name, part = _LISTS.get(module, ("", ""))
    listed = arguments.get(name) or []
    return {
        f"file:{entry['path']}": text(entry.get(part)).encode("utf-8", "surrogateescape")
        for entry in listed
        if isinstance(entry, Mapping) and entry.get("path")
    }


def _munge_key(arguments: Mapping[str, Any]) -> dict[str, bytes]:
    """The key as bytes, from hexadecimal or base64 text. The module refuses what is neither."""
    packed = "".join(text(arguments.get("key") or "").split())
    try:
        key = bytes.fromhex(packed) if _HEXADECIMAL.fullmatch(packed) else base64.b64decode(packed, validate=True)
    except binascii.Error:
        return {}
    return {f"file:{arguments.get('path') or '/etc/munge/munge.key'}": key} if key else {}
