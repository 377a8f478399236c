"""``show``: the site in a few lines, the things of one kind, or one thing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hal_inventory.declared import Profile
from hal_inventory.derive import slices, slurm
from hal_inventory.derive.inventory import pack
from hal_inventory.errors import UnknownNameError
from hal_inventory.model import MANAGEMENT, Site
from hal_inventory.output import Answer, Facts, Table
from hal_inventory.packed import host_vars
from hal_inventory.ranges import fold
from hal_inventory.suggest import did_you_mean


def show(site: Site, words: list[str]) -> Answer:
    """Answer ``show``, ``show KIND``, ``show KIND NAME`` and ``show NAME``."""
    if not words:
        return summary(site)
    if words[0] in KINDS:
        kind = words[0]
        return _all_of(site, kind) if len(words) == 1 else _one_of(site, kind, words[1])
    if len(words) > 1:
        raise UnknownNameError(f'unknown kind "{words[0]}"{did_you_mean(words[0], KINDS, kind="kinds")}')
    name = words[0]
    for kind, collect in KINDS.items():
        if name in collect(site):
            return _one_of(site, kind, name)
    every = {known for collect in KINDS.values() for known in collect(site)} | set(KINDS)
    raise UnknownNameError(f'unknown name "{name}"{did_you_mean(name, every, kind="names")}')


def totals(site: Site) -> dict[str, int]:
    """Return how many of everything a site has."""
    return {
        "nodes": len(site.nodes),
        "gpus": sum(len(site.profile_of(name).gpus) for name in site.nodes),
        "arrays": len(site.arrays),
        "services": len(site.services),
        "partitions": len(site.partitions),
        "file_systems": len(site.file_systems),
    }


def summary(site: Site) -> Answer:
    """Return the site in a few lines."""
    count = totals(site)
    data = {**slices.site(site), **count, "placeholders": len(site.placeholders)}
    facts = [
        ("site", f"{site.name} ({site.domain}){', virtual' if site.virtual else ''}"),
        ("nodes", f"{count['nodes']}: {fold(site.nodes)}"),
        ("GPUs", f"{count['gpus']}{_gpu_types(site)}"),
        ("arrays", f"{count['arrays']}{': ' + fold(site.arrays) if site.arrays else ''}"),
        ("networks", ", ".join(f"{name} {network.cidr}" for name, network in site.networks.items())),
        ("services", ", ".join(f"{name} on {fold(nodes) or 'no node'}" for name, nodes in site.services.items())),
        ("partitions", ", ".join(f"{name} {fold(nodes)}" for name, (_, nodes) in site.partitions.items())),
        ("file systems", ", ".join(f"{name} {use.declared.mount}" for name, use in site.file_systems.items())),
        ("placeholders", str(len(site.placeholders))),
    ]
    return Answer(data, [Facts([(name, value) for name, value in facts if value])])


def _gpu_types(site: Site) -> str:
    types: dict[str, int] = {}
    for name in site.nodes:
        for gpu in site.profile_of(name).gpus:
            types[gpu.type] = types.get(gpu.type, 0) + 1
    return f": {', '.join(f'{number} {kind}' for kind, number in sorted(types.items()))}" if types else ""


def _nodes(site: Site) -> dict[str, Any]:
    return {name: values["hal_node"] for name, values in host_vars(pack(site)).items()}


def _profiles(site: Site) -> dict[str, Any]:
    return {
        name: {**profile.model_dump(), "nodes": list(site.members[name])} for name, profile in site.profiles.items()
    }


def _members(site: Site) -> dict[str, Any]:
    return {name: {"nodes": list(site.members[name])} for name in sorted(site.members)}


def _services(site: Site) -> dict[str, Any]:
    return {name: {"nodes": nodes} for name, nodes in slices.services(site).items()}


def _partitions(site: Site) -> dict[str, Any]:
    # The memory of a GPU depends on what Slurm's policy keeps back, and that is not in the model.
    hidden = ("name", "memory_per_gpu_mb")
    return {
        partition["name"]: {key: value for key, value in partition.items() if key not in hidden}
        for partition in slurm.partitions(site)
    }


def _raid_sets(site: Site) -> dict[str, Any]:
    return {f"{raid_set['node']}/{raid_set['name']}": raid_set for raid_set in slices.raid_sets(site)}


KINDS: Mapping[str, Callable[[Site], dict[str, Any]]] = {
    "node": _nodes,
    "profile": _profiles,
    "network": slices.networks,
    "service": _services,
    "group": _members,
    "partition": _partitions,
    "array": slices.arrays,
    "file-system": slices.file_systems,
    "raid-set": _raid_sets,
    "external": slices.external,
}
"""What can be shown. A name without a kind is looked for in this order."""


def _all_of(site: Site, kind: str) -> Answer:
    collected = KINDS[kind](site)
    if kind == "node":
        return Answer(collected, [node_table(site, list(site.nodes))])
    if kind == "profile":
        return Answer(collected, [_profile_table(site)])
    keys = list(dict.fromkeys(key for entry in collected.values() for key in entry))
    keys = [key for key in keys if key != "name" and not any(_is_large(entry.get(key)) for entry in collected.values())]
    rows = [[name, *(_cell(entry.get(key)) for key in keys)] for name, entry in collected.items()]
    return Answer(collected, [Table([kind, *(key.replace("_", " ") for key in keys)], rows)])


def _profile_table(site: Site) -> Table:
    rows = []
    for name, profile in site.profiles.items():
        cpus = profile.cpus
        shape = f"{cpus.sockets}x{cpus.cores_per_socket}x{cpus.threads_per_core}"
        nodes = fold(site.members[name]) or "-"
        memory = str(profile.memory_mb)
        rows.append(
            [
                name,
                profile.arch,
                shape,
                memory,
                _gpus(profile),
                profile.bmc or "-",
                profile.reimage,
                nodes,
                profile.model,
            ]
        )
    headings = ["profile", "arch", "cpus", "memory MB", "gpus", "bmc", "reimage", "nodes", "model"]
    return Table(headings, rows, numbers=frozenset({"memory MB"}))


def _gpus(profile: Profile) -> str:
    types: dict[str, int] = {}
    for gpu in profile.gpus:
        types[gpu.type] = types.get(gpu.type, 0) + 1
    return ", ".join(f"{number} {kind}" for kind, number in types.items()) or "-"


def _one_of(site: Site, kind: str, name: str) -> Answer:
    collected = KINDS[kind](site)
    if name not in collected:
        raise UnknownNameError(f'unknown {kind} "{name}"{did_you_mean(name, collected, kind=kind + "s")}')
    entry = collected[name]
    rows = [(kind, name), *_flat(entry)]
    return Answer({"kind": kind, "name": name, **entry}, [Facts(rows)])


def _flat(fields: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for key, value in fields.items():
        label = f"{prefix}{key.replace('_', ' ')}"
        if not prefix and key == "name":
            continue
        if isinstance(value, Mapping) and value:
            rows += _flat(value, f"{label} ")
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
            rows += [(label, ", ".join(f"{part} {_cell(value)}" for part, value in entry.items())) for entry in value]
        else:
            rows.append((label, _cell(value)))
    return rows


def _is_large(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, (list, tuple)) and any(isinstance(v, Mapping) for v in value)
    )


def _cell(value: Any) -> str:
    if value is None or value in ((), [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return fold(str(part) for part in value)
    return str(value)


def node_table(site: Site, names: list[str]) -> Table:
    """Return the table of nodes, one a row."""
    runs: dict[str, list[str]] = {name: [] for name in names}
    for service, nodes in site.services.items():
        for name in nodes:
            if name in runs:
                runs[name].append(service)
    rows = []
    for name in names:
        node, profile = site.nodes[name], site.profile_of(name)
        address = str(node.addresses[MANAGEMENT])
        rows.append(
            [name, node.role, node.profile, profile.arch, _gpus(profile), address, ", ".join(runs[name]) or "-"]
        )
    return Table(["node", "role", "profile", "arch", "gpus", "address", "services"], rows)
