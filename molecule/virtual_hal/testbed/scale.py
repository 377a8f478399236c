"""The emulated Spectrum Scale of an instance: a volume that the nodes share, laid down from the model's file systems.

The volume is the arrays: the cluster's configuration as their vendor delivers it, and a folder for each file system.
The commands that read and change it are in the stand-in package gpfs.base.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from testbed.run import LAB

FOLDER = "/srv/virtual-scale"
NODE_FILE = "var/lib/virtual-node/scale.json"
SERVED = "file systems"  # below it; the stand-in says why it has a blank
KIND = "spectrum_scale"
RELEASE = "5.0.4.0"
BLOCK_SIZE_KB = 4096  # of a file system that declares none: the default of mmcrfs since 5.0
LOG_SIZE = 4 << 20  # what mmcrfs makes unless it is told
NSDS_PER_ARRAY = 2
SERVERS = "nsdservers"
HOME = "/home"
ACCOUNTS = {"alice": (5001, 5000), "bob": (5002, 5000)}  # the users of the node image
SKEL = LAB / "image" / "files" / "etc" / "skel"
Files = dict[str, tuple[int, bytes]]


class FileSystem(BaseModel):
    """A file system, as lookup('hal', 'file_systems') has it."""

    model_config = ConfigDict(frozen=True)

    kind: str
    mount: str
    arrays: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    block_size_kb: int | None = None


class Machine(BaseModel):
    """A node, or an array that has no container: by which name and address it is in the cluster."""

    model_config = ConfigDict(frozen=True)

    name: str
    address: str


class Scale(BaseModel):
    """The file systems of all kinds, and the nodes that administer Spectrum Scale."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file_systems: dict[str, FileSystem] = {}
    admins: tuple[str, ...] = ()

    @property
    def used(self) -> dict[str, FileSystem]:
        """Those that arrays serve by Spectrum Scale."""
        return {
            name: file_system
            for name, file_system in self.file_systems.items()
            if file_system.kind == KIND and file_system.arrays
        }

    @property
    def arrays(self) -> list[str]:
        """The arrays, each once."""
        return sorted({array for file_system in self.used.values() for array in file_system.arrays})

    def reaches(self, node: str) -> bool:
        """Return whether a node reaches the arrays: it mounts what they serve, or administers them."""
        return bool(self.used) and (
            node in self.admins or any(node in file_system.clients for file_system in self.used.values())
        )


def volume(instance: str) -> str:
    """Return the name of an instance's volume."""
    return f"{instance}-scale"


def node_file(machine: Machine) -> bytes:
    """Return what a node knows of itself: name and address by which it would join."""
    return (machine.model_dump_json() + "\n").encode()


def array_addresses(names: Iterable[str], cidr: str, used: Iterable[str]) -> dict[str, str]:
    """Return addresses for arrays: the last ones of the network that nobody has, in order."""
    taken = {ipaddress.ip_address(address) for address in used}
    at = ipaddress.ip_network(cidr).broadcast_address - 1
    made = {}
    for name in sorted(names, reverse=True):
        while at in taken:
            at -= 1
        made[name] = str(at)
        at -= 1
    return dict(sorted(made.items()))


def cluster(scale: Scale, domain: str, addresses: Mapping[str, str], admins: Iterable[Machine]) -> dict[str, Any]:
    """Return the cluster as the arrays' vendor leaves it: they serve and vote, the administration node is a client."""
    suffix = f".{domain}" if domain else ""
    name = f"scale{suffix}"
    digest = hashlib.sha256(f"{name} {sorted(addresses)}".encode()).hexdigest()
    nodes: list[dict[str, Any]] = []
    for array, address in addresses.items():
        role = {"designation": "quorumManager", "license": "server", "array": True}
        nodes.append({"number": len(nodes) + 1, "name": array + suffix, "address": address, **role})
    for admin in admins:
        role = {"designation": "", "license": "client", "array": False}
        nodes.append({"number": len(nodes) + 1, "name": admin.name, "address": admin.address, **role})
    return {
        "name": name,
        "identity": str(int(digest[:15], 16) + 10**18),
        "release": RELEASE,
        "nodes": nodes,
        "file_systems": [_file_system(share, scale.used[share], digest) for share in scale.used],
        "disks": [disk for share in scale.used for disk in _disks(share, scale.used[share], suffix)],
        "classes": {SERVERS: [array + suffix for array in addresses]},
        "settings": {
            "dmapiFileHandleSize": {"": "32"},
            "ccrEnabled": {"": "yes"},
            "cipherList": {"": "AUTHONLY"},
            "autoload": {"": "no", SERVERS: "yes"},
            "pagepool": {SERVERS: "32G"},
            "nsdBufSpace": {SERVERS: "70"},
            "adminMode": {"": "central"},
        },
    }


def _file_system(name: str, file_system: FileSystem, digest: str) -> dict[str, Any]:
    return {
        "name": name,
        "mount": file_system.mount,
        "block_size": (file_system.block_size_kb or BLOCK_SIZE_KB) * 1024,
        "log_size": LOG_SIZE,
        "uid": f"{digest[:8].upper()}:{hashlib.sha256(name.encode()).hexdigest()[:8].upper()}",
        "created": "Mon Jan 20 12:00:00 2020",
    }


def _disks(name: str, file_system: FileSystem, suffix: str) -> list[dict[str, Any]]:
    """Return the volumes of a file system; each array serves its own first."""
    made = []
    for array in file_system.arrays:
        others = [other for other in file_system.arrays if other != array]
        for number in range(1, NSDS_PER_ARRAY + 1):
            label = f"{name}_{array}_{number}"
            made.append(
                {
                    "name": label,
                    "file_system": name,
                    "volume": hashlib.sha256(label.encode()).hexdigest()[:16].upper(),
                    "servers": [server + suffix for server in (array, *others)],
                }
            )
    return made


def files(content: Mapping[str, Any]) -> Files:
    """Return mode and content of the volume's files; a path that ends in / is a folder."""
    # Users reach what is served by mounts only.
    made: Files = {"nodes/": (0o755, b""), f"{SERVED}/": (0o700, b"")}
    made |= {f"{SERVED}/{file_system['name']}/": (0o755, b"") for file_system in content["file_systems"]}
    made["cluster.json"] = (0o644, (json.dumps(content, indent=1) + "\n").encode())
    return made


def homes(scale: Scale) -> tuple[Files, dict[str, tuple[int, int]]]:
    """Return the homes on the file system that is mounted over the image's own: what is in them, and whose it is.

    A home has what the image has in /etc/skel, as useradd and pam_mkhomedir leave it.
    """
    folders = [f"{SERVED}/{name}/" for name, file_system in scale.used.items() if file_system.mount == HOME]
    made: Files = {}
    owners: dict[str, tuple[int, int]] = {}
    for path, numbers in ((f"{folder}{user}/", numbers) for folder in folders for user, numbers in ACCOUNTS.items()):
        own: Files = {path: (0o700, b"")}
        own |= {f"{path}{source.name}": (0o644, source.read_bytes()) for source in sorted(SKEL.iterdir())}
        made |= own
        owners |= dict.fromkeys(own, numbers)
    return made, owners
