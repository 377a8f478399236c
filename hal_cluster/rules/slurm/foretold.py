"""What Slurm's daemons would do, in check mode, for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hal_inventory.ranges import fold


def foretold(hosts: Mapping[str, Mapping[str, Any]], nodes: Iterable[str], results: Mapping[str, str]) -> list[str]:
    """Return lines: for each daemon, in the order of `results`, what it would do on which nodes, and why.

    hosts: variables by host, where `results` has the name of the variable with the result of hal_slurm_daemon; a host
    without one, or without its `foretold`, was not asked.
    `nodes`: the hosts to look at. What many say in the same words is told once, with their names as a range.
    """
    names, lines = list(nodes), list[str]()
    for daemon, variable in results.items():
        saying: dict[tuple[str, ...], list[str]] = {}
        for name in names:
            said = (hosts[name].get(variable) or {}).get("foretold")
            if said:
                saying.setdefault(tuple(said), []).append(name)
        for words, who in saying.items():
            lines += [f"{daemon} on {fold(who)} {words[0]}", *(f"  {word}" for word in words[1:])]
    return lines
