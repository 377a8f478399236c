"""Whether nodes may lose their power, by what slurmctld says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hal_inventory.ranges import fold


def power_refusal(nodes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return why the nodes keep their power, with what to do about it; "" if no job is there and none can start.

    ``nodes`` is what the module hal_slurm_node saw. That no job runs now is not enough: one may start between the look
    and the command. A drained node gets no job. A node that is down may: with ReturnToService (slurm.conf(5)) it takes
    jobs as soon as its slurmd answers again.
    """
    busy = [name for name, node in nodes.items() if node["jobs"]]
    takers: dict[str, list[str]] = {}
    for name, node in nodes.items():
        if not node["drained"]:
            takers.setdefault(str(node["state"]), []).append(name)
    why = [f"jobs run on {fold(busy)}"] if busy else []
    why += [f"jobs may start on {fold(names)}: Slurm says {state}" for state, names in sorted(takers.items())]
    if not why:
        return ""
    to_drain = fold(name for names in takers.values() for name in names)
    drain = (
        f"Drain them first: scontrol update NodeName={to_drain} State=DRAIN Reason=..., and"
        if takers
        else "They drain:"
    )
    return f"{'; '.join(why)}. {drain} wait until no job is there; or say power_jobs_ok. Nothing was changed."
