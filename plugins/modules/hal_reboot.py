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
  - C(playbooks/reboot.yml) calls it, delegated to the node where slurmctld runs. The play itself reboots the node and
    checks it in between. C(docs/operations.md) is the runbook.
  - The reason of a drain says whose it is. A drain of the health check becomes ours. Somebody else's drain stays, and
    the node has it again at the end.
options:
  step:
    description:
      - C(plan) shows what would be done to I(nodes). It refuses to drain any of them if too few nodes would be left.
      - C(drain) drains the node of this play, and waits until it has no jobs.
      - C(start) waits until the node's slurmd has registered since the boot.
      - C(return) gives the node back, and waits until slurmctld sends it jobs.
    type: str
    choices: [plan, drain, start, return]
    required: true
  nodes:
    description: For C(plan), the nodes.
    type: list
    elements: str
    default: []
  in_slurm:
    description: For C(plan), those of I(nodes) that may have jobs.
    type: list
    elements: str
    default: []
  record:
    description: For C(start) and C(return), what the step before returned.
    type: dict
  reason:
    description: The reason of the drain. C(hal-reboot) is put before it.
    type: str
    default: playbooks/reboot.yml
  keep:
    description: How many other nodes have to stay for jobs. Of each partition that many stay, but at most half.
    type: int
    default: 0
  wait_seconds:
    description: How long jobs may take to end.
    type: float
    default: 172800
  poll_seconds:
    description: How often to ask Slurm whether they have.
    type: float
    default: 20
author: [HAL toolkit]
attributes:
  check_mode: {support: partial, description: Only C(plan) runs. The other steps are skipped.}
  diff_mode: {support: none, description: The plan says what is done.}
"""

EXAMPLES = r"""
- name: Drain the node and wait for its jobs
  hal_reboot:
    step: drain
    reason: new kernel
    keep: 8
  delegate_to: hal-mgmt1
  register: __reboot_drained
"""

RETURN = r"""
msg:
  description: The plan, or how it ended, or what failed.
  type: str
  returned: with C(plan) and C(return), and when it failed
record:
  description: What the next step needs to know of the node.
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
