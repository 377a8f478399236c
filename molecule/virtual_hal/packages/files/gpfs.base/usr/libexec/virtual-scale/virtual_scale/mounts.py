"""Mounts of this node: bindfs serves a folder of the arrays through FUSE, one unit of systemd for each file system."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from virtual_scale import daemon, locks, place
from virtual_scale.cluster import Cluster, FileSystem, Member, write
from virtual_scale.say import Failed

SECONDS = 10


@dataclass(frozen=True)
class Mounted:
    """A line of the kernel's table of mounts."""

    file_system: str
    folder: str
    options: str


def table() -> list[Mounted]:
    """Return what this node has mounted of the arrays, without asking a file system."""
    lines = (place.ROOT / "proc/self/mounts").read_text().splitlines()
    split = (line.split() for line in lines)
    return [Mounted(words[0], words[1], words[3]) for words in split if words[2] == "fuse.gpfs"]


def unit(name: str) -> str:
    """Return the unit of systemd behind a file system's mount."""
    return f"virtual-scale-mount@{name}.service"


def _systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)


def alive(node: Member, name: str) -> bool:
    """Return whether the process behind a mount lives."""
    return locks.held(daemon.mounts_lock(node, name))


def mount(node: Member, file_system: FileSystem, folder: str | None, options: str | None, wait: bool = True) -> None:
    """Mount a file system here; nothing when it is mounted. Failed when that does not succeed."""
    name = file_system.name
    if alive(node, name):
        return
    clear(node)
    request = {"folder": folder or file_system.mount, "options": options or ""}
    write(place.of_node(node.short) / f"{name}.json", json.dumps(request) + "\n")
    done = _systemctl("start", *([] if wait else ["--no-block"]), unit(name))
    if done.returncode != 0:
        raise Failed(f"mount: {request['folder']}: {done.stderr.strip()}")


def become(node: Member, name: str) -> None:
    """Be the process behind a mount: lock, and go on as bindfs."""
    request = json.loads((place.of_node(node.short) / f"{name}.json").read_text())
    if not locks.take(daemon.mounts_lock(node, name)):
        raise Failed(f"{name} is mounted already")
    Path(request["folder"]).mkdir(parents=True, exist_ok=True)
    # Other nodes change files too, so what is there is remembered for a moment only: without that, each file costs a
    # question for each folder above it. The rest is what a mount of Scale has.
    options = "allow_other,dev,suid,nonempty,entry_timeout=0.1,attr_timeout=0.1,negative_timeout=0"
    if request["options"]:
        options += f",{request['options']}"
    words = [
        "bindfs",
        "-o",
        f"fsname={name},subtype=gpfs,{options}",
        str(place.SERVED / name),
        request["folder"],
    ]
    os.execv(place.PROGRAMS / "bindfs", words)


def clear(node: Member) -> None:
    """Take away mounts whose process is gone."""
    for mounted in table():
        if not alive(node, mounted.file_system):
            _umount("--lazy", mounted.folder)


def _umount(*words: str) -> subprocess.CompletedProcess[str]:
    # Not canonicalized: that would ask the file system, which may hang.
    command = ["timeout", str(SECONDS), "umount", "--no-canonicalize", "--internal-only", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def unmount(name: str, force: bool) -> None:
    """Unmount a file system here; Failed when it is in use, and not by force."""
    for mounted in table():
        if mounted.file_system != name:
            continue
        if not force:
            done = _umount(mounted.folder)
            if done.returncode != 0:
                raise Failed(done.stderr.strip() or f"umount: {mounted.folder}: did not answer within {SECONDS} s")
            continue
        if _umount("--force", mounted.folder).returncode != 0:
            _umount("--lazy", mounted.folder)
        kill(name, "KILL")


def kill(name: str, signal: str) -> None:
    """Send a signal to the process behind a mount."""
    _systemctl("kill", f"--signal={signal}", unit(name))


def hung(name: str) -> bool:
    """Return whether the process behind a mount is stopped, so that nobody who uses it gets an answer."""
    number = _systemctl("show", "--property=MainPID", unit(name)).stdout.strip().partition("=")[2]
    try:
        text = (place.ROOT / "proc" / number / "stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] == "T"


def of_all_nodes(cluster: Cluster, name: str) -> list[Member]:
    """Return the nodes that have a file system mounted."""
    return [node for node in cluster.nodes if not node.array and alive(node, name)]
