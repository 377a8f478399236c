"""What must be true before a node gets jobs: the promises of its roles that say `health`.

The questions are written in the roles, so the health check asks what a rollout and an audit ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ansible.utils.vars import load_extra_vars

from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.questions import ROLES, prepare, templated
from hal_cluster.expect.prepare import Prepared
from hal_inventory import managed

GPU_ROLE = "nvidia_driver"


def checks(variables: dict[str, Any], loader: Any, left_out: Set[str]) -> list[dict[str, Any]]:
    """Return the checks of the host that has these variables, without those of the roles that are left out.

    AuditError for a role that is not there, and for a promise that cannot be asked: without it, it would never fail.
    """
    unknown = left_out - set(ROLES.folders(loader))
    if unknown:
        raise AuditError(f"left_out: there is no role {', '.join(sorted(unknown))}")
    mine = ROLES.of(variables.get("group_names") or [], loader)
    # A promise of a role that does not act here is not a reason to drain the node.
    acting = templated(variables.get(managed.VARIABLE, mine), loader, variables)
    names = [name for name in mine if name not in left_out and name in acting]
    prepared = prepare(names, loader, variables, {}, having="health")
    faults = [promise for promise in prepared if promise.question is None and promise.status == "unknown"]
    if faults:
        raise AuditError(
            "; ".join(f"{promise.source}: {promise.role}: {promise.id}: {promise.reason}" for promise in faults)
        )
    return [_check(promise) for promise in prepared if promise.question is not None]


def _check(promise: Prepared) -> dict[str, Any]:
    return {
        "role": promise.role,
        "id": promise.id,
        "words": promise.health,
        "why": promise.why,
        "hardware": promise.finding == "hardware",
        "question": promise.question,
    }


def gpu_settings(variables: Mapping[str, Any], loader: Any) -> list[list[str]]:
    """Return the calls of nvidia-smi that give GPUs the settings of role nvidia_driver; none without that role."""
    if GPU_ROLE not in (variables.get("group_names") or []):
        return []
    seen = ROLES.role(GPU_ROLE, loader).layers.around(variables, {}, load_extra_vars(loader))
    mode = templated(seen.get("nvidia_driver_compute_mode"), loader, seen)
    clocks = templated(seen.get("nvidia_driver_application_clocks"), loader, seen)
    settings = ["--reset-applications-clocks"]
    if clocks:
        settings = [f"--applications-clocks={clocks['memory_mhz']},{clocks['graphics_mhz']}"]
    return [settings, *([[f"--compute-mode={mode}"]] if mode else [])]
