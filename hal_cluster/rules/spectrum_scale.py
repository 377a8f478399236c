"""Spectrum Scale: which node has which attributes, and what is wrong with declared ones."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

from hal_cluster.rules.errors import RuleError
from hal_node.scale import rules, text

Attributes = Mapping[str, Any]
FIELDS = {"name", "group", "attributes"}


def attributes_of(
    classes: Sequence[Mapping[str, Any]], groups: Iterable[str], ports: Sequence[str] | None
) -> dict[str, Any]:
    """Return the attributes of a node: those of the first class whose group it is in, and RDMA by its ports.

    `ports` of None leaves RDMA to the class; without any port it is off.
    `classes`: each with name, group and attributes; RuleError for other fields. `groups`: those of the node.
    `ports`: names of its InfiniBand ports. A value of None is the default of Spectrum Scale.
    """
    declared, attributes = set(groups), {}
    for node_class in classes:
        if set(node_class) != FIELDS:
            raise RuleError(f"spectrum_scale_classes: write name, group and attributes, not {sorted(node_class)}")
        if node_class["group"] in declared:
            attributes = dict(node_class["attributes"])
            break
    if ports is not None:
        rdma = (
            {"verbsRdma": "enable", "verbsPorts": " ".join(ports)} if ports else {"verbsRdma": None, "verbsPorts": None}
        )
        attributes = {**rdma, **attributes}
    return attributes


def classes_of(
    classes: Sequence[Mapping[str, Any]],
    groups: Mapping[str, Sequence[str]],
    nodes: Iterable[str],
    ports: Mapping[str, Sequence[str]] | None,
) -> dict[str, dict[str, Any]]:
    """Return {class: {nodes, attributes}} for hal_scale_config: a class is parted where its nodes have other ports.

    `classes`, and what is raised: as `attributes_of` has them. `groups`: nodes by group. `nodes`: those to be in
    classes; a node that no class has is in `others`. `ports`: names by node, or None to leave RDMA to the class.
    """
    of_group = {entry["group"]: frozenset(groups.get(entry["group"], ())) for entry in classes if "group" in entry}
    made: dict[str, dict[str, Any]] = {}
    parts: dict[tuple[str, tuple[str, ...] | None], str] = {}
    for node in nodes:
        mine = [entry for entry in classes if node in of_group.get(entry.get("group", ""), ())][:1]
        name = mine[0]["name"] if mine else "others"
        own = None if ports is None else tuple(ports.get(node, ()))
        if (name, own) not in parts:
            label = name if name not in made else f"{name} {' '.join(own or ()) or 'without RDMA'}"
            attributes = attributes_of(mine, [mine[0]["group"]] if mine else [], own)
            parts[name, own] = label
            made[label] = {"nodes": [], "attributes": attributes}
        made[parts[name, own]]["nodes"].append(node)
    return made


def problems(attributes: Attributes, unchecked: Sequence[str]) -> list[str]:
    """Return a sentence for each attribute that cannot be meant.

    Names, types and ranges are known (hal_node/scale/rules.py has IBM's pages). `unchecked`: attributes that
    are not looked at.
    """
    faults = (rules.problem(name, attributes[name], unchecked) for name in sorted(attributes))
    return [fault for fault in faults if fault]


def memory_problem(attributes: Attributes, memory_mb: int | str, percent: int | str) -> str:
    """Return why a node cannot spare the memory that these attributes take, or an empty text.

    That memory is pagepool, 10 KB an entry of the file cache and 400 bytes an entry of the stat cache; the text has the
    sum and its parts. `memory_mb`: memory of the node, in MB of 2^20 bytes. `percent`: the share that Spectrum Scale
    may take.
    """
    problem: str = rules.memory_problem(attributes, int(memory_mb), int(percent))
    return problem


def remark(attributes: Attributes, version: str) -> str:
    """Return what is without effect in this version, or an empty text.

    Before 5.0.2 maxStatCache has no effect on Linux without LROC (IBM Docs, mmchconfig 5.0.2). `version`: as 5.0.4-1.
    """
    words: str = rules.stat_cache_remark(attributes, version)
    return words


def member(output: str, name: str, addresses: Iterable[str]) -> str:
    """Return what a cluster calls a node, from the output of mmlscluster -Y; an empty text where it is not in it.

    That is the first part of its adminNodeName. A node is known by the short or full name of its admin or daemon
    interface, or by one of `addresses`. RuleError for output that is broken.
    """
    try:
        return text.member(text.members(output), name, addresses) or ""
    except text.ScaleTextError as error:
        raise RuleError(str(error)) from error


def addresses(
    hosts: Iterable[Mapping[str, Any]], names: Container[str], networks: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[str]]:
    """Return {name: addresses} of those hosts of the model, without those of BMCs, which are computers of their own.

    `hosts`, `networks`: as lookup hal has them. `names`: which hosts.
    """
    of_bmcs = {name for name, network in networks.items() if network["kind"] == "bmc"}
    return {
        host["name"]: [address for network, address in sorted(host["addresses"].items()) if network not in of_bmcs]
        for host in hosts
        if host["name"] in names
    }
