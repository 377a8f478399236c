"""Ansible lookup plugin: the checks of a node's health, from the promises of its roles."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible.utils.vars import load_extra_vars

from hal_cluster.audit.questions import ROLES, prepare, templated
from hal_cluster.expect.prepare import Prepared
from hal_inventory import managed

GPU_ROLE = "nvidia_driver"

DOCUMENTATION = r"""
name: hal_node_health
short_description: What has to be true for a node to have jobs
description:
  - Collects the expectations of every role that the host has (the group with the role's name) that say C(health), and
    fills in their templates with the variables of their role. So the health check asks what a rollout and an audit ask.
  - An expectation that cannot be templated is an error. A check that is left out would be one that never fails.
options:
  _terms:
    description: V(checks) or V(gpu_settings), see below.
    required: true
  left_out:
    description: Roles whose checks are not asked; with V(checks).
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show what keeps this node from jobs
  ansible.builtin.debug:
    msg: "{{ lookup('hal_node_health', 'checks') | map(attribute='words') }}"
"""

RETURN = r"""
_raw:
  description:
    - V(checks) gives one list of checks with C(role), C(id), C(words) for the reason of a drain, C(why), C(hardware)
      (no rollout repairs it), and C(question) as the module hal_expect takes it.
    - V(gpu_settings) gives one list of arguments of nvidia-smi, a list for each call, that give GPUs the settings which
      the role nvidia_driver has for them. A job may have changed them.
  type: list
  elements: list
"""


class LookupModule(LookupBase):
    """Reads and templates; what is asked is written in the roles."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return what is asked for as one list; raise AnsibleError for an expectation that cannot be asked."""
        if terms == ["gpu_settings"] and not kwargs:
            return [self._gpu_settings(variables or {})]
        if terms == ["checks"] and set(kwargs) <= {"left_out"}:
            return [self._checks(variables or {}, set(kwargs.get("left_out") or ()))]
        raise AnsibleError("lookup hal_node_health: checks and gpu_settings are all it knows")

    def _checks(self, variables: dict[str, Any], left_out: set[str]) -> list[dict[str, Any]]:
        unknown = left_out - set(ROLES.folders(self._loader))
        if unknown:
            raise AnsibleError(f"lookup hal_node_health: left_out: there is no role {', '.join(sorted(unknown))}")
        mine = ROLES.of(variables.get("group_names") or [], self._loader)
        # A promise of a role that does not act here is nobody's reason to drain the node.
        acting = templated(variables.get(managed.VARIABLE, mine), self._loader, variables)
        names = [name for name in mine if name not in left_out and name in acting]
        prepared = prepare(names, self._loader, variables, {}, having="health")
        faults = [one for one in prepared if one.question is None and one.status == "unknown"]
        if faults:
            words = "; ".join(f"{one.source}: {one.role}: {one.id}: {one.reason}" for one in faults)
            raise AnsibleError(f"lookup hal_node_health: {words}")
        return [_check(one) for one in prepared if one.question is not None]

    def _gpu_settings(self, variables: dict[str, Any]) -> list[list[str]]:
        if GPU_ROLE not in (variables.get("group_names") or []):
            return []
        seen = ROLES.role(GPU_ROLE, self._loader).layers.around(variables, {}, load_extra_vars(self._loader))
        mode = templated(seen.get("nvidia_driver_compute_mode"), self._loader, seen)
        clocks = templated(seen.get("nvidia_driver_application_clocks"), self._loader, seen)
        settings = ["--reset-applications-clocks"]
        if clocks:
            settings = [f"--applications-clocks={clocks['memory_mhz']},{clocks['graphics_mhz']}"]
        return [settings, *([[f"--compute-mode={mode}"]] if mode else [])]


def _check(one: Prepared) -> dict[str, Any]:
    return {
        "role": one.role,
        "id": one.id,
        "words": one.health,
        "why": one.why,
        "hardware": one.finding == "hardware",
        "question": one.question,
    }
