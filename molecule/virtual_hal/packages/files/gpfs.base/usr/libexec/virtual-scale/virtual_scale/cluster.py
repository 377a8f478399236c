"""The cluster's configuration, which all nodes share: one file, changed by one command at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from virtual_scale import place
from virtual_scale.say import Failed

EVERY_NODE = ""  # the target of a value that no -N restricts


@dataclass
class Member:
    """A node of the cluster, by its admin node name. `daemon`: the name of another interface that its daemon uses.

    An `array` has no container: it always answers, unless the arrays are off.
    """

    number: int
    name: str
    address: str
    designation: str = ""
    license: str = "none"
    array: bool = False
    daemon: str = ""

    @property
    def daemon_name(self) -> str:
        """The daemon node name."""
        return self.daemon or self.name

    @property
    def short(self) -> str:
        """The name without its domain."""
        return self.name.partition(".")[0]

    @property
    def quorum(self) -> bool:
        """Whether it counts for the quorum."""
        return "quorum" in self.designation.lower()

    @property
    def required_license(self) -> str:
        """The license that its roles need."""
        return "server" if self.quorum or "manager" in self.designation.lower() or self.array else "client"


@dataclass
class FileSystem:
    """A file system on the arrays."""

    name: str
    mount: str
    block_size: int
    log_size: int
    uid: str
    created: str
    automount: str = "yes"
    options: str = "none"


@dataclass
class Disk:
    """An NSD: a volume of the arrays."""

    name: str
    file_system: str
    volume: str
    servers: list[str]


@dataclass
class Cluster:
    """What the commands read and change. `settings` are values by attribute and target: all, a class or a node."""

    name: str
    identity: str
    release: str
    nodes: list[Member]
    file_systems: list[FileSystem]
    disks: list[Disk]
    classes: dict[str, list[str]] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    arrays_on: bool = True
    generation: int = 1

    def member(self, name: str) -> Member | None:
        """Return the node of a name (short, full), number or address."""
        for node in self.nodes:
            daemon = node.daemon_name
            if name in (node.name, node.short, daemon, daemon.partition(".")[0], str(node.number), node.address):
                return node
        return None

    def file_system(self, name: str) -> FileSystem | None:
        """Return the file system of a name, with or without /dev/."""
        return next(
            (file_system for file_system in self.file_systems if file_system.name == name.removeprefix("/dev/")), None
        )

    def effective(self, node: Member) -> dict[str, str]:
        """Return the values set for a node: its own before those of its classes before everybody's."""
        settings = {}
        for attribute, values in self.settings.items():
            targets = [
                node.short,
                *(name for name, members in self.classes.items() if node.name in members),
                EVERY_NODE,
            ]
            value = next((values[target] for target in targets if target in values), None)
            if value is not None:
                settings[attribute] = value
        return settings


def from_json(text: str) -> Cluster:
    """Return the cluster of a file."""
    data: dict[str, Any] = json.loads(text)
    data["nodes"] = [Member(**node) for node in data["nodes"]]
    data["file_systems"] = [FileSystem(**file_system) for file_system in data["file_systems"]]
    data["disks"] = [Disk(**disk) for disk in data["disks"]]
    return Cluster(**data)


def to_json(cluster: Cluster) -> str:
    """Return the text of the file."""
    return json.dumps(asdict(cluster), indent=1) + "\n"


def load() -> Cluster:
    """Return the cluster as it is now; Failed where the arrays cannot be reached."""
    try:
        return from_json((place.ARRAYS / "cluster.json").read_text())
    except FileNotFoundError:
        raise Failed("virtual-scale: the model has no file system of kind spectrum_scale for this node") from None


@contextlib.contextmanager
def changing() -> Iterator[Cluster]:
    """Give the cluster to a change, and keep it when that succeeds. Other changes wait."""
    cluster = load()  # says that there is none, before a lock is made
    with (place.ARRAYS / "cluster.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        cluster = load()
        yield cluster
        cluster.generation += 1
        write(place.ARRAYS / "cluster.json", to_json(cluster))


def write(path: Path, text: str) -> None:
    """Replace a file in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_text(text)
    new.replace(path)


def joined() -> tuple[Cluster, Member]:
    """Return the cluster and this node in it; Failed on a node that does not know the cluster, or is not in it."""
    cluster = load()
    node = cluster.member(place.this_node())
    if node is None or not place.MMSDRFS.exists():
        raise Failed("{command}: This node does not belong to a GPFS cluster.")
    return cluster, node


def write_node_files(cluster: Cluster, node: Member) -> None:
    """Write what makes this node know its cluster, as mmaddnode and mmsdrrestore do."""
    write(
        place.NODE_DATA,
        f"%%home%%:20_MEMBER_NODE::{node.number}:{node.number}:{node.short}:{node.address}:{node.name}:\n",
    )
    servers = ":".join([member.short for member in cluster.nodes if member.array][:2])
    write(
        place.MMSDRFS,
        f"%%9999%%:00_VERSION_LINE::1900:3:{cluster.generation}::lc:{servers}:0:/usr/bin/ssh:/usr/bin/scp:"
        f"{cluster.identity}:lc2:0::{cluster.name}:\n",
    )
