"""mmfsd of a node: whether it runs, how it starts and what it runs with.

The process is the program `sleep` under another name, which holds a lock; its running configuration is a file beside.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from pathlib import Path

from virtual_scale import VERSION, locks, place, remote
from virtual_scale.attributes import BY_NAME, EVERY
from virtual_scale.cluster import Cluster, Member, write
from virtual_scale.say import Failed

UNIT = "gpfs.service"
KERNEL_MODULES = ("tracedev.ko", "mmfslinux.ko", "mmfs26.ko")
Running = dict[str, dict[str, str]]


def lock(node: Member) -> Path:
    """Return the file that a node's mmfsd locks."""
    return place.of_node(node.short) / "mmfsd.lock"


def runs(cluster: Cluster, node: Member) -> bool:
    """Return whether the node's daemon runs."""
    return cluster.arrays_on if node.array else locks.held(lock(node))


def state(cluster: Cluster, node: Member) -> str:
    """Return the node's state as mmgetstate has it."""
    if runs(cluster, node):
        return "active" if cluster.arrays_on else "arbitrating"
    return "down" if not node.array and remote.answers(node.short) else "unknown"


def mounts_lock(node: Member, file_system: str) -> Path:
    """Return the file that the process behind a mount locks."""
    return place.of_node(node.short) / f"{file_system}.lock"


def mounted_anywhere(cluster: Cluster, node: Member) -> list[str]:
    """Return the file systems that the node has mounted."""
    return [
        file_system.name
        for file_system in cluster.file_systems
        if not node.array and locks.held(mounts_lock(node, file_system.name))
    ]


def require(cluster: Cluster, node: Member) -> None:
    """Raise Failed where the daemon does not run, in the words of commands that need it."""
    if not runs(cluster, node):
        raise Failed("Failed to connect to file system daemon: No such process\n{command}: GPFS is down on this node.")


def kernel() -> str:
    """Return what `uname -r` prints."""
    return subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout.strip()


def missing_module() -> Path | None:
    """Return a module of the GPL layer that is not there for the kernel that runs."""
    folder = place.MODULES / kernel() / "extra"
    return next((folder / name for name in KERNEL_MODULES if not (folder / name).is_file()), None)


def configured(cluster: Cluster, node: Member) -> Running:
    """Return what a daemon that starts now would run with, by attribute."""
    values = {name.lower(): value for name, value in cluster.effective(node).items()}
    made: Running = {}
    for attribute in EVERY:
        if attribute.daemon:
            value = values.get(attribute.name.lower())
            shown = attribute.running(value if value is not None else attribute.default or "")
            made[attribute.name] = {"value": shown, "changed": "static" if value is not None else ""}
    return made


def running(node: Member) -> Running:
    """Return what the daemon runs with."""
    values: Running = json.loads((place.of_node(node.short) / "running.json").read_text())
    return values


def change_running(node: Member, name: str, value: str) -> None:
    """Have the daemon of a node take a value up."""
    now = running(node)
    attribute = BY_NAME[name.lower()]
    now[attribute.name] = {"value": attribute.running(value), "changed": "dynamic"}
    write(place.of_node(node.short) / "running.json", json.dumps(now, indent=1) + "\n")


def become(cluster: Cluster, node: Member) -> None:
    """Be the daemon: take the lock, remember the configuration, and go on as the program that waits."""
    start_log()
    log("runmmfs starting")
    gone = missing_module()
    if gone is not None:
        log(f"[E] {no_module(gone)}")
        raise Failed(f"{{command}}: {no_module(gone)}")
    log(f"Loading modules from {place.MODULES / kernel() / 'extra'}")
    if not locks.take(lock(node)):
        raise Failed("{command}: The GPFS subsystem is already active.")
    write(place.of_node(node.short) / "running.json", json.dumps(configured(cluster, node), indent=1) + "\n")
    write(place.of_node(node.short) / "started", f"{time.time():.0f} {os.getpid()}\n")
    log(f"[I] mmfsd initializing. {{Version: {VERSION}   Built: stand-in of the virtual HAL}} ...")
    log("[N] mmfsd ready")
    _tell_systemd()
    os.execv(place.PROGRAMS / "mmfsd", ["mmfsd", "infinity"])


def no_module(path: Path) -> str:
    """Return what Scale says of a kernel module that was not built."""
    return (
        f"The {path} kernel extension does not exist. Use mmbuildgpl command to create the needed kernel extension "
        "for your kernel or copy the binaries from another node with the identical environment."
    )


def _tell_systemd() -> None:
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(b"READY=1", "\0" + address[1:] if address.startswith("@") else address)


def start_log() -> None:
    """Begin a log of this start, as mmfs.log.latest."""
    place.LOGS.mkdir(parents=True, exist_ok=True)
    name = f"mmfs.log.{time.strftime('%Y.%m.%d.%H.%M.%S')}.{place.this_node()}"
    latest, previous = place.LOGS / "mmfs.log.latest", place.LOGS / "mmfs.log.previous"
    if latest.is_symlink():
        previous.unlink(missing_ok=True)
        latest.rename(previous)
    (place.LOGS / name).touch()
    latest.unlink(missing_ok=True)
    latest.symlink_to(name)


def log(text: str) -> None:
    """Add a line to the daemon's log."""
    place.LOGS.mkdir(parents=True, exist_ok=True)
    with (place.LOGS / "mmfs.log.latest").open("a") as handle:
        handle.write(
            f"{time.strftime('%Y-%m-%d_%H:%M:%S')}.{int(time.time() * 1000) % 1000:03d}{time.strftime('%z')}: {text}\n"
        )
