"""The emulated GPUs that a virtual node gets from its model: their state file, and the program that breaks them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent.parent / "gpus" / "virtual_gpu.py"
COMMAND = b'#!/bin/sh\nexec /usr/bin/python3 /usr/libexec/virtual-node/virtual_gpu.py "$@"\n'
RULES = Path(__file__).parent.parent / "gpus" / "40-redhat.rules"
# Where the GPUs of a socket are on the PCI bus: an AC922's (NVIDIA's numbers there), and any x86_64 server's.
BUSES = {
    "ppc64le": (("00000004:04", "00000004:05", "00000004:06"), ("00000035:03", "00000035:04", "00000035:05")),
    "x86_64": (("00000000:3B", "00000000:5E", "00000000:86"), ("00000000:AF", "00000000:D8", "00000000:E1")),
}
MAJOR, CONTROL = 195, 255  # numbers of the driver's devices: /dev/nvidia0 and so on, /dev/nvidiactl
# Of 16384 MiB the driver shows 16130 on an AC922: error correction and its own pages take the rest.
SHOWN_PERCENT = 98.45


def hardware(
    name: str, arch: str, gpus: Sequence[Mapping[str, Any]], numa: Sequence[Mapping[str, Any]], uuids: Mapping[Any, str]
) -> list[dict[str, Any]]:
    """Return the GPUs of the state file, from the model. Numbers that nobody declared follow from the node's name."""
    places = BUSES.get(arch, BUSES["x86_64"])
    used: dict[int, int] = {}
    made = []
    for gpu in gpus:
        socket = gpu["socket"]
        place = used[socket] = used.get(socket, -1) + 1
        digest = hashlib.sha256(f"{name}/{gpu['index']}".encode()).hexdigest()
        node = next((entry for entry in numa if entry["socket"] == socket), {"id": socket, "cpus": "N/A"})
        uuid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
        made.append(
            {
                "model": gpu["model"],
                "memory_mib": int(gpu["memory_mb"] * SHOWN_PERCENT / 100),
                "bus_id": f"{places[socket % 2][place % 3]}:00.0",
                "uuid": uuids.get(str(gpu["index"]), uuids.get(gpu["index"], f"GPU-{uuid}")),
                "serial": f"03217{int(digest[:12], 16) % 10**8:08d}",
                "socket": socket,
                "numa": node["id"],
                "cpus": node["cpus"],
                "link": gpu.get("link", "pcie"),
            }
        )
    return made


def minors(count: int) -> list[int]:
    """Return the minor numbers of the devices of so many GPUs; an empty list where there are none."""
    return [*range(count), CONTROL] if count else []


def files(gpus: Sequence[Mapping[str, Any]], arch: str) -> dict[str, tuple[int, bytes]]:
    """Return mode and content, by path, of what a machine with these GPUs has; nothing for one without."""
    if not gpus:
        return {}
    made = {
        "var/lib/virtual-node/gpus.json": (
            0o644,
            (json.dumps({"gpus": gpus}, indent=1, sort_keys=True) + "\n").encode(),
        ),
        "usr/libexec/virtual-node/virtual_gpu.py": (0o644, PROGRAM.read_bytes()),
        "usr/sbin/virtual-gpu": (0o755, COMMAND),
    }
    if arch == "ppc64le":
        # Of CentOS 7.7's systemd; Debian's has neither.
        made["etc/udev/rules.d/"] = (0o755, b"")
        made["usr/lib/udev/rules.d/40-redhat.rules"] = (0o644, RULES.read_bytes())
    return made
