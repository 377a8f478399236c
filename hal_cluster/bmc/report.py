"""What many BMCs said, on one screen: nodes that said the same are one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hal_inventory.printable import one_line
from hal_inventory.ranges import fold

_ORDER = ("on", "going on", "off", "going off", "unknown")


def power_table(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each state, then for each failure: ``on hal[01-15]``, ``no answer hal16: ...``.

    ``results`` are those of the module by node. A node without a result has a line, too: not asked is not healthy.
    """
    states: dict[tuple[int, str], list[str]] = {}
    faults: dict[tuple[str, str], list[str]] = {}
    for node, said in results.items():
        if "fault" in said:
            why = one_line(f"{said['asked']}: {said['answer']}" if "asked" in said else str(said.get("msg", "")))
            faults.setdefault((str(said["fault"]), why), []).append(node)
        elif "power" in said:
            power = str(said["power"])
            position = _ORDER.index(power) if power in _ORDER else len(_ORDER)
            states.setdefault((position, f"{power}{_next(said.get('boot'))}"), []).append(node)
        else:
            why = one_line(str(said.get("msg") or "nothing came of it"))
            faults.setdefault(("not asked", why), []).append(node)
    lines = [f"{one_line(state)} {fold(nodes)}" for (_, state), nodes in sorted(states.items())]
    return lines + [f"{fault} {fold(nodes)}: {why}" for (fault, why), nodes in sorted(faults.items())]


def _next(boot: Mapping[str, Any] | None) -> str:
    if not boot or boot["target"] == "none":
        return ""
    return f", next start {boot['target']}{'' if boot['once'] else ' and every one after it'}:"


def inventory_table(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line for each firmware level, each set of one-time boot targets, each sensor that is not well.

    ``results`` are those of the module's inventory by node.
    """
    lines: dict[str, list[str]] = {}
    for node, said in results.items():
        without = said.get("without") or {}
        for level in said.get("firmware") or [{"name": "firmware", "version": without.get("firmware", "not told")}]:
            lines.setdefault(f"firmware: {level['name']} {level['version']}", []).append(node)
        targets = [name for name in said.get("boot_targets") or [] if name != "none"]
        once = ", ".join(targets) or without.get("boot_targets", "none: such a node cannot be reimaged")
        lines.setdefault(f"one-time boot: {once}", []).append(node)
        clock = said.get("clock")
        if clock:
            asks = ", ".join(clock["servers"]) if clock["ntp"] else "nobody"
            lines.setdefault(f"clock: asks {asks or 'nobody'}", []).append(node)
        for reading in _unwell(said.get("sensors") or []):
            lines.setdefault(f"sensor: {reading}", []).append(node)
    return [f"{one_line(line)}  ({fold(nodes)})" for line, nodes in sorted(lines.items())]


def _unwell(sensors: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for sensor in sensors:
        if sensor["health"] not in ("", "OK"):
            yield f"{sensor['name']} {sensor['value']} {sensor['unit']} is {sensor['health']}"
