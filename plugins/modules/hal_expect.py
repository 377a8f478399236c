#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Evaluate expectations on a node, all in one call."""
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: hal_expect
short_description: Check what a role promises, on the node, in one call
description:
  - Evaluates the C(expect.yml) of one or several roles on the node. Fails if an entry does not hold, and names each.
  - Never changes anything. Runs the same in check mode.
  - C(docs/expectations.md) describes the syntax of C(expect.yml).
  - The action plugin of the same name loads and templates the entries at the controller. The module reads and compares.
options:
  role:
    description: The role whose C(expect.yml) is evaluated. The default is the role of the task.
    type: str
  roles:
    description: Several roles, evaluated in one call.
    type: list
    elements: str
  file:
    description: A file of expectations, relative to the role or playbook. It gets the variables of the task.
    type: path
  limit_ids:
    description: Evaluate only the entries with these ids. An id that no entry has is an error.
    type: list
    elements: str
  severity:
    description:
      - The least severity that fails the task.
      - With V(warning), an entry of that severity that does not hold fails the task, too. With V(error) it is shown as
        a warning.
    type: str
    choices: [error, warning]
    default: error
  report_only:
    description:
      - Never fail because of a result, and return all results. For audits.
      - If a file cannot be loaded, or a call failed, its entries are V(unknown).
    type: bool
    default: false
  allow_all_skipped:
    description: Succeed even if every entry was skipped by its C(when). By default a task that checked nothing fails.
    type: bool
    default: false
  entries:
    description: Internal. The templated entries, which the action plugin sets.
    type: list
    elements: dict
requirements:
  - Python 2.7, or 3.6 or later, on the node. Nothing else.
notes:
  - A file, unit or package that only root can read needs C(become). What it may not read is V(unknown), and fails.
author: HAL toolkit
'''

EXAMPLES = r'''
- name: Check what this role promises
  hal_expect: {}

- name: Check two roles in one call, whatever they find
  hal_expect:
    roles: [base, ssh]
    report_only: true
  register: __audit_expectations

- name: Check a single promise again
  hal_expect:
    role: slurm
    limit_ids: [slurmd runs]
'''

RETURN = r'''
results:
  description:
    - One item for each entry, in the order of the files. When the task fails, only those that did not pass.
  returned: always
  type: list
  elements: dict
  contains:
    id: {description: "The entry's id; in a loop, with the item in brackets", type: str}
    role: {description: The role it came from, type: str}
    status: {description: "pass, fail, unknown or skipped", type: str}
    severity: {description: error or warning, type: str}
    expected: {description: "The matcher and its value, e.g. {equal: 160}", type: dict}
    observed: {description: "The value, cut if long; null if there is none; (secret) for a secret entry", type: raw}
    reason: {description: "Why it did not pass, in words", type: str}
    why: {description: Why it matters, type: str}
    source: {description: "file:line of the entry", type: str}
  sample:
    - id: SELinux is enforcing
      role: base
      status: fail
      severity: error
      expected: {equal: Enforcing}
      observed: Permissive
      reason: differs
      why: the paper's site runs it so
      source: roles/base/expect.yml:12
summary:
  description: How many entries have each status.
  returned: always
  type: dict
  sample: {pass: 11, fail: 1, unknown: 0, skipped: 2}
'''

from ansible.module_utils.hal_node.expect.evaluate import evaluate
from ansible.module_utils.hal_node.run_command import AnsibleModule


class QuietModule(AnsibleModule):
    """A module that leaves its arguments out of the node's log: expectations may be secrets."""

    def _log_invocation(self):
        # type: () -> None
        self.log('hal_expect evaluates %d expectations' % len(self.params.get('entries') or []))


def main():
    # type: () -> None
    module = QuietModule(
        argument_spec={'entries': {'type': 'list', 'elements': 'dict', 'required': True, 'no_log': False}},
        supports_check_mode=True,
    )
    # An empty invocation: by default it would repeat the arguments, and with them secrets.
    module.exit_json(changed=False, evaluated=evaluate(module.params['entries']), invocation={})


if __name__ == '__main__':
    main()
