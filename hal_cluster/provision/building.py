"""What a build of an image is told by the controller: for which machines, by whom, and what must not be in it."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import multiprocessing
import os
import re
import secrets
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hal_cluster.provision.errors import ProvisionError
from hal_cluster.provision.images import NAME

OF_ONE_PROFILE = (
    "profile",
    "arch",
    "model",
    "kernel",
    "cpus",
    "memory_mb",
    "numa",
    "gpus",
    "hcas",
    "interfaces",
    "reimage",
    "virtual",
)
"""Parts of hal_node that all machines of a profile have in common (hal_inventory.derive.inventory)."""
SHORTEST = 8
_OWNER = re.compile(r"image (?P<what>\S+) by (?P<host>\S+) process (?P<pid>[0-9]+) of (?P<start>[0-9]+)")
_PART = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of no name: what all nodes of a profile are. ``node`` is its hal_node, without anything of one node."""

    node: Mapping[str, Any]
    groups: tuple[str, ...]


def machine(profile: str, nodes: Mapping[str, Mapping[str, Any]], groups: Mapping[str, Iterable[str]]) -> Machine:
    """Return the machine of a profile; ProvisionError without a node of it, or without a declared kernel.

    ``nodes``: hal_node by name, of those that the profile's name stands for; ``groups``: each one's group names. The
    machine is in the groups that all of them are in: what one node alone has is not a part of an image.
    """
    others = sorted(name for name, node in nodes.items() if node.get("profile") != profile)
    if not nodes or others:
        raise ProvisionError(f"image_profile is {profile}: no profile of cluster.yml that has nodes")
    first = next(iter(nodes.values()))
    if not first.get("kernel"):
        raise ProvisionError(f"image_profile is {profile}: cluster.yml, profiles.{profile}.kernel declares none")
    common = set.intersection(*(set(groups[name]) for name in nodes))
    node = {part: first[part] for part in OF_ONE_PROFILE if part in first}
    return Machine(node, tuple(sorted(common - {"all", "ungrouped"})))


def problem(
    profile: str,
    name: str,
    wanted: Machine,
    builder: Mapping[str, Any],
    key: Path,
    parts: Mapping[str, Sequence[str]],
    roles: Path,
) -> str:
    """Return why nothing can be built, in one line; "" when it can."""
    arch, theirs = wanted.node["arch"], builder["arch"]
    if not NAME.fullmatch(name):
        return f"image_name is {name}: small letters, digits, . _ and -"
    if arch != theirs:
        return (
            f"profile {profile} is {arch}, and {builder['name']} is {theirs}: packages' scripts run only on their own"
            f" architecture. Name a node that is {arch}: -e image_builder=NODE"
        )
    if not key.is_file():
        return f"{key}: the key that signs images is missing; python -m hal_cluster.provision key {key} makes it, once"
    for role, entries in parts.items():
        for entry in entries:
            if not _PART.fullmatch(entry) or not (roles / role / "tasks" / f"{entry}.yml").is_file():
                return f"image_roles.{role} names {entry}: there is no roles/{role}/tasks/{entry}.yml"
    return ""


def owner(what: str) -> str:
    """Return who builds: this machine, and the process that Ansible runs in with its time of birth."""
    parent = multiprocessing.parent_process()  # tasks are templated in a process of their own
    pid = parent.pid if parent is not None and parent.pid is not None else os.getpid()
    return f"image {what} by {socket.gethostname()} process {pid} of {_born(pid)}"


def abandoned(text: str) -> bool:
    """Tell whether a build was this machine's and its process is no more. One of another machine is never."""
    matched = _OWNER.fullmatch(text)
    if matched is None or matched["host"] != socket.gethostname():
        return False
    return str(_born(int(matched["pid"]))) != matched["start"]


def _born(pid: int) -> int:
    """Return when a process began, in ticks since the machine's start; 0 when there is none. See proc(5), stat."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def digests(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{"key": ..., "digests": {digest: name}}`` of the secrets in these variables.

    The node that builds looks for them in the image without being told any. Texts of 8 characters and more, also those
    within lists and mappings; shorter ones would be found in every file. Of a text that may be hexadecimal or base64
    also what it stands for: the vault has munge's key so, and a node has its bytes.
    """
    key = secrets.token_hex(32)
    by_digest = {}
    for name, value in values.items():
        for text in _texts(value):
            stripped = text.strip()
            for part in {stripped, *(line.strip() for line in stripped.splitlines())}:
                for form in (part.encode(), *_decoded(part)):
                    if len(form) >= SHORTEST:
                        by_digest[hmac.new(key.encode(), form, hashlib.sha256).hexdigest()] = name
    return {"key": key, "digests": by_digest}


def _decoded(text: str) -> Iterable[bytes]:
    for decode in (bytes.fromhex, functools.partial(base64.b64decode, validate=True)):
        with suppress(ValueError):
            yield decode(text)


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, (str, bytes)) or (isinstance(value, int) and not isinstance(value, bool)):
        yield value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def made_from(
    commit: str, lock_file: Path | None, parts: Mapping[str, Sequence[str]], base: Path | None
) -> dict[str, str]:
    """Return what a manifest says of its origin: commit, digests of lock file and base, roles."""
    told = {"commit": commit or "unknown", "roles": " ".join(parts)}
    for name, path in (("lock_sha256", lock_file), ("base_sha256", base)):
        if path is not None and path.is_file():
            digest = hashlib.sha256()
            with path.open("rb") as file:
                while block := file.read(1024 * 1024):
                    digest.update(block)
            told[name] = digest.hexdigest()
    return told
