"""The emulated BMCs of an instance: one small container that owns their addresses, and a process that serves them.

The process runs on this machine, in the container's network namespace: it switches nodes on and off with podman,
which it runs in this machine's own namespace. It ends with the container, so what removes containers removes it.
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from testbed.cache import cache_dir
from testbed.errors import VirtualNodesError
from testbed.run import LAB, as_root, capture, need

NAME = "bmcs"
COMMAND = ["sleep", "infinity"]
READY_SECONDS = 120
LEASE = "serving"  # locked by the serving process as long as it lives
# A container that ends does not say why. systemd calls what is in this folder last, with halt, poweroff or reboot
# (systemd-shutdown(8)), also in a container.
SHUTDOWN_HOOK = "usr/lib/systemd/system-shutdown/virtual-node"
LAST_SHUTDOWN = "var/lib/virtual-node/last-shutdown"
_HOOK = f"""#!/bin/sh
echo "$1" >/{LAST_SHUTDOWN}
"""


class Bmc(BaseModel):
    """`hal_node.bmc`."""

    model_config = ConfigDict(frozen=True)

    kind: str
    address: str


class Bmcs(BaseModel):
    """Whether an instance has emulated BMCs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = False


def folder(instance: str) -> Path:
    """Return where the BMCs of an instance keep their state; molecule/virtual_hal/bmc/cli.py looks there too."""
    return cache_dir() / "bmc" / instance


def address(cidr: str, used: Iterable[str]) -> str:
    """Return the container's own address: the last one of the network that nobody has."""
    taken = {ipaddress.ip_address(address) for address in used}
    network = ipaddress.ip_network(cidr)
    for number in range(int(network.broadcast_address) - 1, int(network.network_address), -1):
        if ipaddress.ip_address(number) not in taken:
            return str(ipaddress.ip_address(number))
    raise VirtualNodesError(f"network {cidr}: no address is left for the emulated BMCs' container")


def options(instance: str, label: str, network: str, own: str) -> list[str]:
    """Return the options of `podman create` for the container."""
    return [
        f"--name={instance}-{NAME}",
        f"--hostname={NAME}",
        "--systemd=false",
        "--stop-signal=SIGKILL",
        "--no-hosts",
        f"--label={label}={instance}",
        f"--label=hal.node={NAME}",
        f"--network={instance}-{network}:ip={own},interface_name=eth0",
    ]


def address_commands(addresses: Iterable[str], cidr: str) -> str:
    """Return what `ip -batch` reads to give the container all addresses; one that is there already is not an error."""
    length = ipaddress.ip_network(cidr).prefixlen
    return "".join(f"address replace {address}/{length} dev eth0\n" for address in addresses)


def node_files() -> dict[str, tuple[int, bytes]]:
    """Return the files by which a node's BMC learns why its system ended."""
    return {SHUTDOWN_HOOK: (0o755, _HOOK.encode())}


def fleet(instance: str, specs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the serving process is told (molecule/virtual_hal/bmc/spec.py)."""
    return {"instance": instance, "state": str(folder(instance)), "hardware": "nodes", "bmcs": list(specs)}


def serve_command(instance: str, pid: int) -> list[str]:
    """Return the command line of the serving process."""
    setup = [sys.executable, str(LAB / "setup"), "bmc", "--instance", instance, "serve", f"--network-of={pid}"]
    return as_root(setup, {"HAL_CACHE_DIR": str(cache_dir())})


def start(instance: str, pid: int, addresses: Iterable[str], cidr: str, told: Mapping[str, Any]) -> None:
    """Give the container its addresses and serve the BMCs; return when all answer. ``pid`` is the container's."""
    need("ipmi_sim", "openipmi")
    need("setpriv", "util-linux")
    place = folder(instance)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    (place / "fleet.json").write_text(json.dumps(told, indent=1) + "\n")
    enter = ["nsenter", f"--net=/proc/{pid}/ns/net", "--", "ip", "-batch", "-"]
    capture(as_root(enter), stdin=address_commands(addresses, cidr).encode())
    log = place / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            serve_command(instance, pid), stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    end = time.monotonic() + READY_SECONDS
    while "ready" not in log.read_text(errors="replace").splitlines():
        if process.poll() is not None or time.monotonic() > end:
            words = log.read_text(errors="replace").strip().splitlines()
            _end(process)
            last = words[-1] if words else f"no answer within {READY_SECONDS} s"
            raise VirtualNodesError(f"emulated BMCs of {instance}: {last}; see {log}")
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the serving process, which is root's: by its session, which it leads."""
    if process.poll() is None:
        ended = as_root(["kill", "-TERM", "--", f"-{process.pid}"])
        subprocess.run(ended, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def serving(instance: str) -> bool:
    """Return whether a process serves the BMCs of an instance."""
    try:
        with (folder(instance) / LEASE).open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def kept_off(instance: str, names: Iterable[str]) -> set[str]:
    """Return which of these nodes their BMCs switched off, or left in firmware or installer: they stay so."""
    kept = set()
    for name in names:
        # The state is root's. What is in it: molecule/virtual_hal/bmc/state.py.
        path = folder(instance) / f"{name}.json"
        said = capture(as_root(["sh", "-c", '[ ! -e "$0" ] || cat "$0"', str(path)]))
        state = json.loads(said or "{}")
        if state and (not state["power"] or state["in_firmware"]):
            kept.add(name)
    return kept


def wait_for_end(instance: str) -> None:
    """Return when nobody serves the BMCs of an instance, whose container is gone; raise when that does not come."""
    end = time.monotonic() + READY_SECONDS
    while serving(instance):
        if time.monotonic() > end:
            pid = (folder(instance) / LEASE).read_text().strip()
            raise VirtualNodesError(f"emulated BMCs of {instance}: process {pid} has not ended with its container")
        time.sleep(0.05)


def remove(instance: str) -> list[str]:
    """Remove what the BMCs of an instance remember, when their container is gone; return what was removed."""
    place = folder(instance)
    if not place.exists():
        return []
    wait_for_end(instance)
    capture(as_root(["rm", "-rf", "--", str(place)]))
    return [str(place)]
