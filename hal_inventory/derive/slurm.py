"""What slurm.conf, gres.conf and topology.conf need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from hal_inventory.declared import Gpu, Profile
from hal_inventory.dependencies import ordered
from hal_inventory.errors import HalInventoryError
from hal_inventory.hardware import cpu_numbers
from hal_inventory.model import MANAGEMENT, Site
from hal_inventory.ranges import fold_in_order
from hal_inventory.validate import SLURM_NODE

_CORE_INDEX_SINCE = (20, 11)
"""Until then gres.conf's Cores= meant the kernel's CPU numbers (slurm.schedmd.com/gres.conf.html)."""


def slurm_nodes(site: Site) -> list[str]:
    """Return the nodes that run slurmd: group slurm_node if a site declares it, else those of its partitions."""
    if SLURM_NODE in site.groups:
        return list(site.groups[SLURM_NODE])
    used = {name for _, nodes in site.partitions.values() for name in nodes}
    return [name for name in site.nodes if name in used]


def nodes(site: Site, *, memory_reserve_mb: int = 0) -> list[dict[str, Any]]:
    """Return one entry for each run of nodes of one profile, for NodeName= lines.

    ``memory_reserve_mb`` is taken off each node's memory. Names and addresses pair by position.
    """
    entries = []
    for profile_name, names in _runs(site):
        profile = site.profiles[profile_name]
        memory_mb = _memory_mb(site, profile_name, memory_reserve_mb)
        entries.append(
            {
                "names": fold_in_order(names),
                "address_pattern": fold_in_order([str(site.nodes[name].addresses[MANAGEMENT]) for name in names]),
                "sockets": profile.cpus.sockets,
                "cores_per_socket": profile.cpus.cores_per_socket,
                "threads_per_core": profile.cpus.threads_per_core,
                "cpus": profile.cpus.total,
                "memory_mb": memory_mb,
                "gres": ",".join(f"gpu:{kind}:{len(gpus)}" for kind, gpus in _by_type(profile.gpus)),
                "features": list(
                    dict.fromkeys([profile_name, profile.arch, *(kind for kind, _ in _by_type(profile.gpus))])
                ),
            }
        )
    return entries


def gres(site: Site, *, slurm_version: str = "22.05.8") -> list[dict[str, Any]]:
    """Return one entry for each set of GPUs of one type on one socket, for gres.conf.

    ``cores`` are core numbers from Slurm 20.11 on, CPU numbers before. "" if the profile does not say which CPUs a
    socket has: without Cores=, Slurm takes all CPUs for equally near (gres.conf(5)).
    """
    by_core = _version(slurm_version) >= _CORE_INDEX_SINCE
    return [
        {
            "nodes": fold_in_order(names),
            "name": "gpu",
            "type": kind,
            "file": fold_in_order([f"/dev/nvidia{gpu.index}" for gpu in gpus]),
            "cores": _cores(site.profiles[profile_name], socket, by_core=by_core),
        }
        for profile_name, names in _runs(site)
        for kind, same in _by_type(site.profiles[profile_name].gpus)
        for socket, gpus in _grouped(same, key="socket")
    ]


def partitions(site: Site, *, memory_reserve_mb: int = 0) -> list[dict[str, Any]]:
    """Return the partitions in the order of the model.

    ``cpus_per_gpu`` and ``memory_per_gpu_mb`` are what a GPU brings if a job says nothing: the node divided by its
    GPUs, in whole cores, without ``memory_reserve_mb``. With several kinds of nodes it is the least of them. None if
    jobs get no GPU. ``refuses_gpus``: its nodes have GPUs, and its jobs must not get any.
    """
    return [
        {
            "name": name,
            "nodes": fold_in_order(names),
            "default": declared.default,
            "max_time": declared.max_time,
            "default_time": declared.default_time,
            "max_cpus_per_node": declared.max_cpus_per_node,
            "refuses_gpus": not declared.gpus and any(site.profiles[site.nodes[node].profile].gpus for node in names),
            **_share_of_a_gpu(site, names if declared.gpus else (), memory_reserve_mb),
            "priority": declared.priority,
            "hidden": declared.hidden,
        }
        for name, (declared, names) in site.partitions.items()
    ]


def topology(site: Site) -> list[dict[str, Any]]:
    """Return a tree of the switches that have nodes of Slurm below them, each with its ``nodes`` or its ``switches``.

    A fat tree is not a tree: its spines are one entry, named after the first, with all of them in ``stands_for``. Slurm
    advises the leaves, and one switch at the top (slurm.schedmd.com/topology.html, "Hierarchical Networks").
    """
    with_slurmd = set(slurm_nodes(site))
    lower = {name: [node for node in switch.nodes if node in with_slurmd] for name, switch in site.switches.items()}
    order, _ = ordered({name: set(switch.switches) for name, switch in site.switches.items()})
    below: dict[str, list[str]] = {}
    for name in order:
        below[name] = [other for other in site.switches[name].switches if lower[other] or below[other]]
    entries: list[dict[str, Any]] = []
    for first, same in _as_one(site.switches, below).items():
        if lower[first]:
            entries.append({"switch": first, "nodes": fold_in_order(lower[first])})
        elif same.switches:
            several = {"stands_for": fold_in_order(same.names)} if len(same.names) > 1 else {}
            entries.append({"switch": first, "switches": fold_in_order(same.switches), **several})
    return entries


@dataclass
class _Same:
    """Switches that are one for Slurm, and the switches below them, each the first of those that are one with it."""

    names: list[str]
    switches: list[str]


def _as_one(names: Iterable[str], below: Mapping[str, list[str]]) -> dict[str, _Same]:
    """Return switches by the first of those that are one with it: they have a switch below them in common."""
    first = {name: name for name in names}
    while True:
        made: dict[str, _Same] = {}
        above: dict[str, str] = {}
        again: dict[str, str] = {}
        for name, leader in first.items():
            same = made.setdefault(leader, _Same([], []))
            same.names.append(name)
            for other in (first[other] for other in below[name] if first[other] not in (leader, *same.switches)):
                same.switches.append(other)
                if above.setdefault(other, leader) != leader:
                    again[leader] = above[other]
        if not again:
            return made
        first = {name: again.get(leader, leader) for name, leader in first.items()}


def _share_of_a_gpu(site: Site, names: Iterable[str], memory_reserve_mb: int) -> dict[str, int | None]:
    profiles = {name: site.profiles[name] for name in dict.fromkeys(site.nodes[node].profile for node in names)}
    with_gpus = {name: profile for name, profile in profiles.items() if profile.gpus}
    cpus, memory = [], []
    for name, profile in with_gpus.items():
        threads = profile.cpus.threads_per_core
        # Slurm gives whole cores away (CR_Core): a share that is not a multiple would not fit once for each GPU.
        cpus.append(max(profile.cpus.total // threads // len(profile.gpus), 1) * threads)
        memory.append(max(_memory_mb(site, name, memory_reserve_mb) // len(profile.gpus), 1))
    return {"cpus_per_gpu": min(cpus, default=None), "memory_per_gpu_mb": min(memory, default=None)}


def _memory_mb(site: Site, profile_name: str, memory_reserve_mb: int) -> int:
    memory_mb = site.profiles[profile_name].memory_mb
    if memory_mb <= memory_reserve_mb:
        raise HalInventoryError(
            f"memory_reserve_mb={memory_reserve_mb} leaves nothing of the {memory_mb} MB of {profile_name}"
        )
    return memory_mb - memory_reserve_mb


def _runs(site: Site) -> Iterable[tuple[str, list[str]]]:
    """Give each profile with its nodes of Slurm, in the order in which they come first."""
    by_profile: dict[str, list[str]] = {}
    for name in slurm_nodes(site):
        by_profile.setdefault(site.nodes[name].profile, []).append(name)
    return by_profile.items()


def _grouped(gpus: Iterable[Gpu], *, key: str) -> list[tuple[Any, list[Gpu]]]:
    ordered = sorted(gpus, key=lambda gpu: (getattr(gpu, key), gpu.index))
    return [(value, list(same)) for value, same in groupby(ordered, key=lambda gpu: getattr(gpu, key))]


def _by_type(gpus: Iterable[Gpu]) -> list[tuple[str, list[Gpu]]]:
    return _grouped(gpus, key="type")


def _cores(profile: Profile, socket: int, *, by_core: bool) -> str:
    cpus = profile.cpus
    if by_core:
        first = socket * cpus.cores_per_socket
        return _ranges(range(first, first + cpus.cores_per_socket))
    if profile.numa:
        return _ranges(sorted(cpu for numa in profile.numa if numa.socket == socket for cpu in cpu_numbers(numa.cpus)))
    return _ranges(range(cpus.total)) if cpus.sockets == 1 else ""


def _ranges(numbers: Iterable[int]) -> str:
    folded = fold_in_order([str(number) for number in numbers])
    return folded.removeprefix("[").removesuffix("]")


def _version(text: str) -> tuple[int, int]:
    match = re.match(r"(\d{1,4})\.(\d{1,2})(\D|$)", text)
    if match is None:
        raise HalInventoryError(f'slurm_version="{text}" is not a version; write one such as "22.05.8"')
    return int(match[1]), int(match[2])
