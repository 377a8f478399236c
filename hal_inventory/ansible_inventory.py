"""Puts a packed inventory into Ansible's inventory data, and node ranges into patterns. Imports nothing of Ansible."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary, ref

from hal_inventory import patterns
from hal_inventory.connection import Connection
from hal_inventory.errors import RangeError
from hal_inventory.packed import Packed, group_members, host_vars
from hal_inventory.sources import Source, one_site

_added: WeakKeyDictionary[Any, dict[str, set[str]]] = WeakKeyDictionary()
"""For each inventory data object: the groups that earlier sources of ours filled, with the hosts they put there."""
_sources: WeakKeyDictionary[Any, list[Source]] = WeakKeyDictionary()
"""For each inventory data object: the sources of ours that it was filled from."""
_latest: list[ref[Any]] = []
"""The inventory data object that was filled last: patterns mean its names."""

_bases: dict[str, tuple[str, ...]] = {}
"""For the folder of each source that was read: the folders of its bases."""


def refuse_another_site(inventory: Any, source: Source) -> None:
    """Raise SourceFileError if a source is of another site than those from which an ``InventoryData`` was filled."""
    earlier = _sources.setdefault(inventory, [])
    one_site([*earlier, source])
    earlier.append(source)


def remember_bases(source: Source) -> None:
    """Keep which folders' group_vars belong to a source beside those of its own folder."""
    own = os.path.abspath(source.path.parent)
    folders = dict.fromkeys(os.path.abspath(path.parent) for path in source.bases)
    _bases[own] = tuple(folder for folder in folders if folder != own)


def variable_folders(folder: str) -> tuple[str, ...]:
    """Return the folders whose group_vars and host_vars count for the source in this folder, which is the last of them.

    Empty if no source was read here.
    """
    own = os.path.abspath(folder)
    return (*_bases[own], own) if own in _bases else ()


def understand_ranges(manager: ModuleType) -> None:
    """Make ``ansible.inventory.manager`` read node ranges in every pattern: --limit, hosts, those of ad hoc commands.

    Ansible has no hook for it. Its function splits a pattern before anything else looks at it, and cuts it at the
    commas of hal[01-04,08]. It does not split lines of --limit @FILE at all; here each is a pattern like others.
    May be called again. From then on a pattern may raise ``RangeError`` as an AnsibleError.
    """
    ansibles = manager.split_host_pattern
    if hasattr(ansibles, "understands_ranges"):
        return

    def split_host_pattern(pattern: Any) -> list[str]:
        inventory = _latest[0]() if _latest else None
        if inventory is None or not isinstance(pattern, str):
            if isinstance(pattern, list):
                return [single for part in pattern for single in split_host_pattern(part)]
            return list(ansibles(pattern))
        try:
            return patterns.split(pattern, inventory.hosts, inventory.groups, ansibles)
        except RangeError as error:
            raise manager.AnsibleError(str(error)) from None

    split_host_pattern.understands_ranges = True  # type: ignore[attr-defined]
    manager.split_host_pattern = split_host_pattern  # type: ignore[attr-defined]
    ansibles_subset = manager.InventoryManager.subset

    def subset(self: Any, subset_pattern: Any) -> None:
        ansibles_subset(self, subset_pattern)
        if self._subset:
            # What is not a line of a file was split before, and stays the same. A regular expression is not split.
            whole = [not line or line.lstrip("!&").startswith("~") for line in self._subset]
            parts = zip(self._subset, whole, strict=True)
            self._subset = [
                single for line, is_whole in parts for single in ([line] if is_whole else split_host_pattern(line))
            ]

    manager.InventoryManager.subset = subset


def fill(inventory: Any, packed: Packed, reached: Connection | None = None) -> None:
    """Add hosts, variables and groups to an ``ansible.inventory.data.InventoryData``.

    Hosts, memberships and groups that earlier sources of ours added, and this one lacks, are taken away again. Those of
    other plugins stay. ``reached``: how nodes are reached; without it no variable says so.
    """
    _latest[:] = [ref(inventory)]
    variables = host_vars(packed)
    if reached is not None:
        variables = {name: {**own, **reached.of(name)} for name, own in variables.items()}
        for variable, value in reached.everywhere().items():
            inventory.groups["all"].set_variable(variable, value)
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
