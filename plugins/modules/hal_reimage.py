#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Reimage nodes. What it does, it does at the controller: plugins/action/hal_reimage.py."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_reimage
short_description: Show what a reimage of nodes would do, and do it with the code that confirms it
description:
  - Only C(playbooks/reimage.yml) calls it. C(docs/reimage.md) is the runbook.
  - Without I(code) it looks and changes nothing. It asks BMCs which machines they have, the server for images and
    records, and Slurm for jobs. It returns the plan and its code.
  - >-
    With the code, each node goes through the steps identity, drain, off, arm, boot, install, start, converge, gates,
    job and return. It begins where its record says. If the code belongs to another plan, the module refuses it and
    changes nothing.
  - >-
    C(hal-reimage status) on the server shows the nodes at work, those whose turn has not come, and those that nobody
    drives any more because the controller died. Make the same call again to go on with them.
  - >-
    Refuses a node that is not a compute or test node, whose profile does not say C(reimage: allowed), or on which the
    installation itself stands.
options:
  nodes:
    description: An expression of the model, such as C(hal05) or C(hal[05-08]). Never all nodes.
    type: str
    default: ""
  code:
    description: The code of the plan.
    type: str
    default: ""
  settings:
    description: All settings, as C(playbooks/reimage.yml) puts them together from variables.
    type: dict
    required: true
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Shows the plan and whether the code is right for it.}
  diff_mode: {support: none, description: The plan says what is erased.}
"""

EXAMPLES = r"""
- name: Reimage
  hal_reimage:
    nodes: "{{ reimage_nodes }}"
    code: "{{ reimage_code | default('') }}"
    settings: "{{ settings }}"
"""

RETURN = r"""
msg:
  description: The plan, or how it ended for each node.
  type: str
  returned: always
code:
  description: The code of the plan.
  type: str
  returned: when nothing was refused
"""

from ansible.module_utils.hal_node.run_command import AnsibleModule


def main():
    # type: () -> None
    """Say where it runs: the action of this name never sends this to a node."""
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "str", "default": ""},
            "code": {"type": "str", "default": ""},
            "settings": {"type": "dict", "required": True},
        },
        supports_check_mode=True,
    )
    module.fail_json(msg="hal_reimage runs at the controller")


if __name__ == "__main__":
    main()
