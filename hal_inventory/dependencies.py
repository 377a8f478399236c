"""The order of things that need each other: services and groups by their expressions, switches by what is below."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter


def ordered(needs: Mapping[str, set[str]]) -> tuple[list[str], dict[str, list[str]]]:
    """Return the names, each after those that it needs; and for each name that needs itself the names of its circle."""
    try:
        return list(TopologicalSorter(needs).static_order()), {}
    except CycleError:
        reached = {name: _reached(name, needs) for name in needs}
    circles = {
        name: sorted(other for other in needed if name in reached[other])
        for name, needed in reached.items()
        if name in needed
    }
    others = {name: needed - circles.keys() for name, needed in needs.items() if name not in circles}
    return list(TopologicalSorter(others).static_order()), circles


def _reached(name: str, needs: Mapping[str, set[str]]) -> set[str]:
    """Return what a name needs, and what that needs, and so on."""
    reached: set[str] = set()
    ahead = set(needs[name])
    while ahead:
        reached |= ahead
        ahead = {further for other in ahead for further in needs[other]} - reached
    return reached
