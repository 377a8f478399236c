#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Take nodes out of Slurm for a reboot, and back. The controller does it: plugins/action/hal_reboot.py."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_reboot
short_description: Drain a node for its reboot, and give it back
description:
  - C(playbooks/reboot.yml) calls it, delegated to the node where slurmctld runs. The play reboots the node and checks
    it in between. docs/operations.md is the runbook.
  - The reason of a drain says whose it is. A drain of the health check becomes ours. One of somebody else stays, and
    the node has it again at the end.
options:
  step:
    description:
      - C(plan) shows what would be done to I(nodes), and refuses to drain all of them when too few would be left.
      - C(drain) drains the node of this play and waits until it has no jobs.
      - C(start) waits until its slurmd has registered since the boot.
      - C(return) gives it back, and waits until slurmctld sends it jobs.
    type: str
    choices: [plan, drain, start, return]
    required: true
  nodes:
    description: For C(plan), the nodes.
    type: list
    elements: str
    default: []
  in_slurm:
    description: For C(plan), those of them that may have jobs.
    type: list
    elements: str
    default: []
  record:
    description: For C(start) and C(return), what the step before returned.
    type: dict
  reason:
    description: The reason of the drain, which C(hal-reboot) begins.
    type: str
    default: playbooks/reboot.yml
  keep:
    description: How many other nodes have to stay for jobs. Each partition keeps half of its nodes, but no more.
    type: int
    default: 0
  wait_seconds:
    description: How long jobs may take to end.
    type: float
    default: 172800
  poll_seconds:
    description: How often Slurm is asked whether they have.
    type: float
    default: 20
author: [HAL toolkit]
attributes:
  check_mode: {support: partial, description: C(plan) is for it. The other steps are skipped.}
  diff_mode: {support: none, description: The plan says what is done.}
"""

EXAMPLES = r"""
- name: Drain it and wait for its jobs
  hal_reboot:
    step: drain
    reason: new kernel
    keep: 8
  delegate_to: hal-mgmt1
  register: __reboot_drained
"""

RETURN = r"""
msg:
  description: The plan, how it ended, or what failed.
  type: str
  returned: with C(plan) and C(return), and when it failed
record:
  description: Where the node is, for the next step.
  type: dict
  returned: with C(drain) and C(start), unless it failed
"""

from ansible.module_utils.hal_node.run_command import AnsibleModule


def main():
    # type: () -> None
    """Say where it runs: the action of this name never sends this to a node."""
    module = AnsibleModule(
        argument_spec={
            "step": {"type": "str", "choices": ["plan", "drain", "start", "return"], "required": True},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "in_slurm": {"type": "list", "elements": "str", "default": []},
            "record": {"type": "dict"},
            "reason": {"type": "str", "default": "playbooks/reboot.yml"},
            "keep": {"type": "int", "default": 0},
            "wait_seconds": {"type": "float", "default": 172800},
            "poll_seconds": {"type": "float", "default": 20},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg="hal_reboot runs at the controller")


if __name__ == "__main__":
    main()
