"""Which nodes may be erased at all, and which an expression names: asked before anything is looked at."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hal_cluster.reimage.errors import ReimageError
from hal_inventory import managed
from hal_inventory.ranges import fold

ROLES = ("compute", "test")
"""Nodes that no other depends on. If a login, management, data or transfer node goes, all lose what it serves."""


def named(expression: str, nodes: Sequence[str], every: Collection[str]) -> list[str]:
    """Return the nodes that were named; ReimageError when nobody can have meant them."""
    words = expression.strip()
    if not words:
        raise ReimageError("name the nodes: -e reimage_nodes=hal05")
    if "all" in re.split(r"[\s,()]+", words.lower()) or "*" in words or "?" in words:
        raise ReimageError(f"reimage_nodes is {words}: name nodes, such as hal05 or hal[05-08]")
    if not nodes:
        raise ReimageError(f"reimage_nodes is {words}: this selects no node")
    if set(nodes) >= set(every):
        raise ReimageError(f"reimage_nodes is {words}: every node of the site, which nobody wants")
    return list(nodes)


def refuse(
    nodes: Mapping[str, Mapping[str, Any]], placeholders: Mapping[str, Sequence[str]], servers: Collection[str]
) -> None:
    """Raise ReimageError with a line for each reason why some of these may not be erased.

    ``nodes``: hal_node by name; ``placeholders``: fields of each that are not filled in, as slice ``boot`` has them
    (``macs.management``); ``servers``: nodes that the reimage itself stands on.
    """
    why: dict[str, list[str]] = {}
    for name, node in nodes.items():
        for reason in _reasons(node, placeholders.get(name, ()), name in servers):
            why.setdefault(reason, []).append(name)
    if why:
        raise ReimageError("\n".join(f"{fold(names)}: {reason}" for reason, names in sorted(why.items())))


def refuse_left_alone(groups: Mapping[str, Collection[str]], acting: Mapping[str, Collection[str] | None]) -> None:
    """Raise ReimageError for nodes on which not all of their roles act (managed_roles): nobody would roll them out.

    ``groups``: of each node; ``acting``: the roles that act on it, None for all.
    """
    why: dict[str, list[str]] = {}
    for name, roles in acting.items():
        if left := sorted(set(groups[name]) & set(managed.known_roles()) - set(roles)) if roles is not None else []:
            why.setdefault(", ".join(left), []).append(name)
    if why:
        raise ReimageError(
            "\n".join(
                f"{fold(names)}: not managed there ({managed.VARIABLE}): {left}. What others made of them would be"
                " gone, and no rollout makes it. Take them over first"
                for left, names in sorted(why.items())
            )
        )


def _reasons(node: Mapping[str, Any], placeholders: Sequence[str], server: bool) -> list[str]:
    reasons = []
    if server:
        reasons.append("the reimage itself stands on it")
    if node["role"] not in ROLES:
        reasons.append(f"is a {node['role']} node; {' and '.join(ROLES)} nodes are reimaged, and no others")
    if node["reimage"] != "allowed":
        reasons.append(f"its profile {node['profile']} says reimage: {node['reimage']}")
    if not node["bmc"]:
        reasons.append("has no BMC in cluster.yml")
    if not node["serial"]:
        reasons.append("has no serial number in cluster.yml, by which its BMC is known")
    if not node.get("virtual"):
        named = [field for field in placeholders if _matters(field)]
        if named:
            reasons.append(f"placeholders in cluster.yml: {', '.join(sorted(named))}; put the machine's own there")
    return reasons


def _matters(field: str) -> bool:
    """Return whether this field of a node decides which machine, or which disk, is meant."""
    return field.partition(".")[0] in ("serial", "macs", "addresses", "disks")
