"""Puts a packed inventory into Ansible's inventory data. Imports nothing of Ansible."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from hal_inventory.packed import Packed, group_members, host_vars

_added: WeakKeyDictionary[Any, dict[str, set[str]]] = WeakKeyDictionary()
"""For each inventory data object: the groups that earlier sources of ours filled, with the hosts they put there."""


def fill(inventory: Any, packed: Packed) -> None:
    """Add hosts, variables and groups to an ``ansible.inventory.data.InventoryData``.

    What earlier sources of ours added and this one does not have is taken away again: hosts, memberships and groups.
    Other plugins' hosts, groups and memberships stay.
    """
    variables = host_vars(packed)
    groups = group_members(packed)
    earlier = _added.get(inventory)
    if earlier:
        _take_back(inventory, earlier, variables, groups)
    for name, values in variables.items():
        inventory.add_host(name)
        host = inventory.hosts[name]
        for variable, value in values.items():
            host.vars.pop(variable, None)  # set_variable would merge dicts where hash_behaviour says so
            host.set_variable(variable, value)
    for name, members in groups.items():
        group = inventory.groups[inventory.add_group(name)]
        for member in members:
            group.add_host(inventory.hosts[member])
    inventory._groups_dict_cache = {}  # as InventoryData.add_host does for each
    _added[inventory] = {"all": set(variables), **{name: set(members) for name, members in groups.items()}}


def _take_back(
    inventory: Any, earlier: dict[str, set[str]], variables: dict[str, Any], groups: dict[str, list[str]]
) -> None:
    for name in sorted(earlier["all"] - variables.keys()):
        host = inventory.hosts.get(name)
        if host is not None:
            inventory.remove_host(host)
    for name, members in earlier.items():
        group = inventory.groups.get(name)
        if group is None or name == "all":
            continue
        for member in sorted(members - set(groups.get(name, ()))):
            host = inventory.hosts.get(member)
            if host is not None:
                group.remove_host(host)
        if name not in groups and not (group.hosts or group.child_groups or group.vars):
            for parent in list(group.parent_groups):
                parent.child_groups.remove(group)
            inventory.remove_group(name)
