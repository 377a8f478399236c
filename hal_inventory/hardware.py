"""Cross-checks of a profile: NUMA nodes, CPUs and GPUs must fit the sockets."""

from __future__ import annotations

import re

from hal_inventory.checks import Checks
from hal_inventory.declared import Profile
from hal_inventory.errors import RangeError
from hal_inventory.ranges import expand
from hal_inventory.reader import Path_

CORE_MB = (256, 1048576)
"""Memory that a machine has for each core, in MB. Real ones have 0.5 to 400 GB. A number in GB is less, in kB more."""

GPU_MB = (1000, 1048576)
"""Memory that a GPU has, in MB. Real ones have 1 to 300 GB. A number in GB is less, in kB more."""


def cpu_numbers(text: str) -> list[int]:
    """Return the CPUs of a list such as ``0-19,40-59``; RangeError if it is not one."""
    if not re.fullmatch(r"[\d,/ -]+", text):
        raise RangeError(f'"{text}" is not a list of CPUs; write 0-79 or 0-19,40-59')
    return [int(number) for number in expand(f"[{text}]")]


def check_profile(name: str, profile: Profile, checks: Checks) -> None:
    """Note what does not fit together in a profile."""
    path: Path_ = ("profiles", name)
    cpus = profile.cpus
    cores = cpus.sockets * cpus.cores_per_socket
    _check_memory((*path, "memory_mb"), profile.memory_mb // cores, "a core", CORE_MB, checks)
    sockets = f"profile {name} has sockets 0 to {cpus.sockets - 1}" if cpus.sockets > 1 else "it has only socket 0"
    for at, gpu in enumerate(profile.gpus):
        _check_memory((*path, "gpus", at, "memory_mb"), gpu.memory_mb, "a GPU", GPU_MB, checks)
        if gpu.socket >= cpus.sockets:
            checks.fault((*path, "gpus", at, "socket"), f"there is no socket {gpu.socket}; {sockets}")
        if gpu.index != at:
            checks.fault(
                (*path, "gpus", at, "index"), f"must be {at}, not {gpu.index}: GPUs are listed from 0 without gaps"
            )
    if profile.numa:
        _check_numa(path, profile, sockets, checks)


def _check_memory(path: Path_, memory_mb: int, of: str, bounds_mb: tuple[int, int], checks: Checks) -> None:
    """Note a fault if the memory ``of`` something is so large or small that another unit must have been meant."""
    least, most = bounds_mb
    if not least <= memory_mb <= most:
        checks.fault(path, f"{memory_mb} MB {of}, not {least} MB to {most // 1024} GB; the unit is MB: 16 GB are 16384")


def _check_numa(path: Path_, profile: Profile, sockets: str, checks: Checks) -> None:
    total = profile.cpus.total
    in_socket = dict.fromkeys(range(profile.cpus.sockets), 0)
    owner: dict[int, int] = {}
    ids: set[int] = set()
    sound = True
    for at, numa in enumerate(profile.numa):
        where: Path_ = (*path, "numa", at)
        if numa.id in ids:
            checks.fault((*where, "id"), f"NUMA node {numa.id} is listed twice")
        ids.add(numa.id)
        if numa.socket >= profile.cpus.sockets:
            checks.fault((*where, "socket"), f"there is no socket {numa.socket}; {sockets}")
            sound = False
        try:
            numbers = cpu_numbers(numa.cpus)
        except RangeError as error:
            checks.fault((*where, "cpus"), str(error))
            return
        if max(numbers) >= total:
            checks.fault((*where, "cpus"), f"there is no CPU {max(numbers)}; {_arithmetic(profile)}")
            sound = False
        twice = sorted(number for number in numbers if number in owner)
        if twice:
            checks.fault((*where, "cpus"), f"CPU {twice[0]} is in NUMA node {owner[twice[0]]} too")
            sound = False
        owner.update(dict.fromkeys(numbers, numa.id))
        in_socket[numa.socket] = in_socket.get(numa.socket, 0) + len(numbers)
    if not sound:
        return
    if len(profile.numa) == 1 and in_socket[profile.numa[0].socket] == total and profile.cpus.sockets > 1:
        checks.fault((*path, "numa"), "one NUMA node has the CPUs of all sockets; leave numa out of such a profile")
        return
    per_socket = profile.cpus.cores_per_socket * profile.cpus.threads_per_core
    for socket, count in in_socket.items():
        if count != per_socket:
            checks.fault((*path, "numa"), f"socket {socket} has {count} CPUs here; {_arithmetic(profile)}")


def _arithmetic(profile: Profile) -> str:
    cpus = profile.cpus
    per_socket = cpus.cores_per_socket * cpus.threads_per_core
    return (
        f"cpus says {cpus.sockets} sockets of {cpus.cores_per_socket} cores with {cpus.threads_per_core} threads:"
        f" {per_socket} a socket, numbered 0 to {cpus.total - 1}"
    )
