"""Ansible lookup plugin: why a run must not begin: a callback is not loaded. Decided in hal_cluster.audit.active."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from hal_cluster.audit import active

DOCUMENTATION = r"""
name: hal_callback_problem
author: HAL toolkit
short_description: Why a run must not begin, because a callback is not loaded
description:
  - >-
    Programs that start Ansible themselves, as ansible-runner does, replace the folders that it looks for callbacks in.
    Ansible warns, and goes on: nothing is recorded, no audit has a verdict. This says so before anything is done.
options:
  _terms:
    description: What the run is, which says the callbacks that have to take part. In check mode a rollout needs fewer.
    type: str
    choices: [rollout, audit]
    required: true
"""

EXAMPLES = r"""
- ansible.builtin.assert:
    that: lookup('hal_callback_problem', 'rollout') | length == 0
    fail_msg: "{{ lookup('hal_callback_problem', 'rollout') }}"
"""

RETURN = r"""
_raw:
  description: For each kind one line that names all that are missing, empty where they are loaded.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    """Thin: asks hal_cluster.audit.active."""

    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return a line for each kind."""
        for name in terms:
            if name not in active.NEEDED:
                raise AnsibleError(f"lookup hal_callback_problem: {name} is not one of {', '.join(active.NEEDED)}")
        check = bool((variables or {}).get("ansible_check_mode"))
        return [active.run_problem(str(name), check=check) for name in terms]
