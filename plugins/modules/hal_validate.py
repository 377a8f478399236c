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
  - Works out the argument specs of roles and their C(tasks/validate.yml) for all hosts, at the controller. No node is
    contacted. What is refused ends the run with one line for each text, the nodes as a range.
  - Outside of roles, as in C(playbooks/validate.yml), it asks each role that the running playbook lists under C(roles),
    for the hosts of its play, within C(--limit), C(--tags) and C(--skip-tags). Of a role that these leave out only the
    arguments are looked at, because Ansible checks them all the same. C(playbooks/validate.yml) alone is about
    C(playbooks/site.yml).
  - In a role it asks that role for the host of the task, unless it was asked before with the same variables. That was
    not possible for what tasks import or include, for roles with a condition (C(when)), and for hosts that come into a
    run later.
  - C(tasks/validate.yml) has tasks of ansible.builtin.assert, and ansible.builtin.debug for remarks, which become
    warnings. Other tasks are refused.
  - Outside of roles use it with C(run_once), and register RV(asked) as C(hal_validated). In a role use it as below.
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
  description: What is refused, a line each; else how many roles were asked.
  type: str
  returned: always
asked:
  description: For each role the hosts for which it need not be asked again in this run.
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
