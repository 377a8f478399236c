"""Ansible filters: what nodes keep and give back, in lines for people. Decided in hal_cluster.audit.originals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def hal_originals_lost(results: dict[str, Any], check: bool = False) -> list[str]:
    """Return a line for each kind of what is changed and cannot be given back.

    `results`: those of module hal_originals with state=kept, by node. `check`: say what would be kept, too. A line has
    its nodes as a range; without lines all comes back.
    """
    from hal_cluster.audit.originals import lost_lines

    return lost_lines(results, check=check)


def hal_originals_plan(
    results: dict[str, Any],
    role: str,
    changed_ok: bool = False,
    queue: dict[str, Any] | None = None,
    unasked_ok: bool = False,
) -> dict[str, Any]:
    """Return {text, code, refused} of what giving back a role would do on nodes.

    `results`: those of module hal_originals with state=planned, by node. `changed_ok`: what others changed may be lost.
    `unasked_ok`: what jobs need may stop though Slurm does not say whether one runs. `queue`: what squeue returned at
    the node of slurmctld, where something would stop that jobs need. `code` confirms exactly this plan and is empty
    where nothing is kept; `refused` has lines.
    """
    from hal_cluster.audit.originals import plan_of

    return plan_of(results, role, changed_ok=changed_ok, queue=queue, unasked_ok=unasked_ok)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"hal_originals_lost": hal_originals_lost, "hal_originals_plan": hal_originals_plan}
