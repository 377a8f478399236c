"""Ansible lookup plugin: the checks of a node's health, from the promises of its roles."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.audit import health
from hal_cluster.audit.errors import AuditError

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
    """Thin: hal_cluster.audit.health decides."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return what is asked for as one list; raise AnsibleError for an expectation that cannot be asked."""
        try:
            if terms == ["gpu_settings"] and not kwargs:
                return [health.gpu_settings(variables or {}, self._loader)]
            if terms == ["checks"] and set(kwargs) <= {"left_out"}:
                return [health.checks(variables or {}, self._loader, set(kwargs.get("left_out") or ()))]
        except AuditError as error:
            raise AnsibleError(f"lookup hal_node_health: {error}") from None
        raise AnsibleError("lookup hal_node_health: checks and gpu_settings are all it knows")
