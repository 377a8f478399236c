"""Ansible filters: what nodes keep and give back, in lines for people. Decided in hal_cluster.audit.originals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


def hal_originals_lost(results: dict[str, Any], check: bool = False) -> list[str]:
    """Return a line for each kind of what is changed and cannot be given back."""
    from hal_cluster.audit.originals import lost_lines

    return lost_lines(results, check=check)


def hal_originals_plan(
    results: dict[str, Any],
    role: str,
    changed_ok: bool = False,
    queue: dict[str, Any] | None = None,
    unasked_ok: bool = False,
) -> dict[str, Any]:
    """Return {text, code, refused} of what giving back a role would do on nodes."""
    from hal_cluster.audit.originals import plan_of

    return plan_of(results, role, changed_ok=changed_ok, queue=queue, unasked_ok=unasked_ok)


class FilterModule:
    """What Ansible asks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"hal_originals_lost": hal_originals_lost, "hal_originals_plan": hal_originals_plan}
