#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Ask roles what they refuse. It is done at the controller: plugins/action/hal_validate.py."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_validate
short_description: Ask roles what they refuse, before anything is changed
description:
  - Checks the arguments of roles, and works out their C(tasks/validate.yml), for all hosts at the controller. Contacts
    no node. What a role refuses ends the run, with one line for each text and the nodes as a range.
  - Outside of roles, use it with C(run_once), and register RV(asked) as C(hal_validated). In a role, use it as below.
  - Outside of roles, it asks each role that the running playbook lists under C(roles), for the hosts of its play,
    within C(--limit), C(--tags) and C(--skip-tags). If these leave a role out, it only looks at the role's arguments,
    because Ansible checks them all the same. C(playbooks/validate.yml), started alone, is about C(playbooks/site.yml).
  - In a role, it asks that role for the host of the task, unless it was asked before with the same variables. It could
    not be asked before if tasks import or include it, if it has a condition (C(when)), or if the host comes into the
    run later.
  - C(tasks/validate.yml) may only have tasks of ansible.builtin.assert, and of ansible.builtin.debug for remarks, which
    become warnings. Other tasks are refused.
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Changes nothing.}
  diff_mode: {support: none, description: Has nothing to show.}
"""

EXAMPLES = r"""
- name: Refuse what a role would refuse later
  hal_validate:
  register: hal_validated
  run_once: true

- name: Validate
  hal_validate:
  run_once: "{{ ansible_role_name in hal_validated.asked | default({}) }}"
  any_errors_fatal: true
"""

RETURN = r"""
msg:
  description: What is refused, a line each. If nothing is, how many roles were asked.
  type: str
  returned: always
asked:
  description: For each role, the hosts for which you need not ask it again in this run.
  type: dict
  returned: outside of roles
  sample: {time: [hal01, hal02]}
"""

from ansible.module_utils.hal_node.run_command import AnsibleModule


def main():
    # type: () -> None
    """Say where it runs: the action of this name never sends this to a node."""
    AnsibleModule(argument_spec={}, supports_check_mode=True).fail_json(msg="hal_validate runs at the controller")


if __name__ == "__main__":
    main()
