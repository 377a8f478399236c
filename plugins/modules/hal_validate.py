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
  - In a role it asks that role for the hosts of the play. Elsewhere, as in C(playbooks/validate.yml), it asks each role
    that the running playbook lists, for the hosts of its play, within C(--limit), C(--tags) and C(--skip-tags). These
    are not asked again later in the run. A playbook that lists none is taken to be about C(playbooks/site.yml).
  - C(tasks/validate.yml) has tasks of ansible.builtin.assert, and ansible.builtin.debug for remarks, which become
    warnings. Other tasks are refused.
  - Use it with C(run_once).
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Changes nothing.}
  diff_mode: {support: none, description: Has nothing to show.}
"""

EXAMPLES = r"""
- name: Validate
  hal_validate:
  run_once: true
"""

RETURN = r"""
msg:
  description: What is refused, a line each; else how many roles were asked.
  type: str
  returned: always
"""

from ansible.module_utils.hal_run_command import AnsibleModule


def main():
    """Say where it runs: the action of this name never sends this to a node."""
    AnsibleModule(argument_spec={}, supports_check_mode=True).fail_json(msg="hal_validate runs at the controller")


if __name__ == "__main__":
    main()
