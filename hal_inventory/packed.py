"""An inventory in little space, for the cache, and Ansible's view of it. Imports nothing slow.

Parts of ``hal_node`` that all nodes of a profile have in common are written once. The members of a group are runs of
positions in the order of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from hal_inventory.connection import Connection


class Packed(TypedDict):
    """``site``: its name. ``hosts``: name, ansible_host, profile, the node's own part of hal_node.

    ``groups``: [first, behind last].
    """

    site: str
    common: dict[str, dict[str, Any]]
    hosts: list[tuple[str, str, str, dict[str, Any]]]
    groups: dict[str, list[tuple[int, int]]]


def runs(members: Iterable[str], position: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return members, which are in the order of the model, as runs of positions."""
    spans: list[tuple[int, int]] = []
    for name in members:
        at = position[name]
        if spans and spans[-1][1] == at:
            spans[-1] = (spans[-1][0], at + 1)
        else:
            spans.append((at, at + 1))
    return spans


def host_vars(packed: Packed) -> dict[str, dict[str, Any]]:
    """Return the variables of every host, in the order of the model. Parts of a profile are shared, not copied."""
    common = packed["common"]
    return {
        name: {"ansible_host": contact, "hal_node": {**own, **common[profile]}}
        for name, contact, profile, own in packed["hosts"]
    }


def group_members(packed: Packed) -> dict[str, list[str]]:
    """Return the hosts of every group, sorted by group name."""
    names: Sequence[str] = [host[0] for host in packed["hosts"]]
    return {group: [name for a, b in parts for name in names[a:b]] for group, parts in packed["groups"].items()}


def as_list(packed: Packed, reached: Connection) -> dict[str, Any]:
    """Return the document that an inventory script prints for --list."""
    groups = group_members(packed)
    return {
        "_meta": {"hostvars": {name: {**own, **reached.of(name)} for name, own in host_vars(packed).items()}},
        # Ansible drops a host that is in no group: every node has a role, so every node is in one.
        "all": {"children": ["ungrouped", *groups], "vars": reached.everywhere()},
        **{name: {"hosts": members} for name, members in groups.items()},
    }
