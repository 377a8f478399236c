"""Processes of this controller, and whether the rollout that a node names still lives.

A process is known by its number and the time at which it started, because numbers are used again. Both have a meaning
only on one kernel since one boot, and in one table of processes (proc(5), pid_namespaces(7)).
"""

from __future__ import annotations

import enum
import hashlib
import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROC = Path("/proc")
MACHINE_ID = Path("/etc/machine-id")
IDENTIFIED = re.compile("[0-9a-f]{32}")  # in images of many machines it is empty, or "uninitialized": machine-id(5)
ENDED = ("Z", "X", "x")


class Life(enum.Enum):
    """What can be said of a rollout from here."""

    LIVES = enum.auto()
    OVER = enum.auto()
    UNKNOWN = enum.auto()


@dataclass(frozen=True)
class Here:
    """This controller, as a node can tell it from others. `machine`: "" if this machine has no id of its own."""

    host: str
    machine: str
    boot: str
    namespace: str

    @classmethod
    def look(cls) -> Here:
        """Ask this machine."""
        host = platform.node()
        try:
            identifier = MACHINE_ID.read_text(errors="replace").strip()
        except OSError:
            identifier = ""
        machine = ""
        if IDENTIFIED.fullmatch(identifier):
            # Not the machine's id itself: machine-id(5) wants that kept secret, and clones have the same one.
            machine = hashlib.sha256(f"hal-rollout {host} {identifier}".encode()).hexdigest()[:16]
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return cls(host, machine, boot, os.readlink(PROC / "self/ns/pid"))


def started(pid: int) -> int | None:
    """When a process started, in ticks since the boot; None for one that is not there, or has ended.

    PermissionError if it is there and hidden (hidepid of proc(5)).
    """
    try:
        words = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return None
        except PermissionError:
            raise
        return started(pid) if (PROC / str(pid)).exists() else None
    return None if words[0] in ENDED else int(words[19])


def lives(pid: int, start: int) -> bool:
    """Whether this process is there. A hidden one counts as there: nobody knows when it started."""
    try:
        return started(pid) == start
    except PermissionError:
        return True


def judge(holder: Mapping[str, Any], here: Here) -> Life:
    """Whether the rollout that a node names still lives. What the node says is only compared, and never trusted."""
    pid, start = holder.get("pid"), holder.get("start")
    if type(pid) is not int or type(start) is not int or pid < 1:
        return Life.UNKNOWN
    if (holder.get("boot"), holder.get("namespace")) == (here.boot, here.namespace):
        return Life.LIVES if lives(pid, start) else Life.OVER
    if here.machine and holder.get("machine") == here.machine and holder.get("boot") != here.boot:
        return Life.OVER  # this controller was booted since
    return Life.UNKNOWN
