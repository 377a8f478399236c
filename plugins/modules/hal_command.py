#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Run a program and return all that it printed."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_command
short_description: Run a program and return all that it printed
description:
  - Use it as ansible.builtin.command with C(argv), for a program whose output somebody reads. On a busy node
    ansible.builtin.command may return status 0 with an empty or cut output (ansible issue 51393), and an empty output
    often means that there is nothing to do.
  - A status other than 0 fails, as it does there. Each run is a change, unless the task has C(changed_when).
options:
  argv:
    description: The program and its words. No shell reads them, and C($HOME) or C(~) stay as they are.
    type: list
    elements: str
    required: true
  chdir:
    description: The folder to run it in.
    type: path
  stdin:
    description: Its input. A newline is added.
    type: str
author: [HAL toolkit]
attributes:
  check_mode: {support: partial, description: "Skipped, unless the task has C(check_mode: false)."}
  diff_mode: {support: none, description: The module does not know what the program changes.}
"""

EXAMPLES = r"""
- name: See which packages are installed
  hal_command:
    argv: [rpm, -qa, --qf, '%{NAME}\n']
  register: __cuda_installed
  changed_when: false
  check_mode: false
"""

RETURN = r"""
rc:
  description: Its exit status.
  type: int
  returned: always
stdout:
  description: What it printed, without newlines at the end. C(stdout_lines) has it line by line.
  type: str
  returned: always
stderr:
  description: What it printed as errors, in the same way.
  type: str
  returned: always
"""

from ansible.module_utils.common.text.converters import to_text
from ansible.module_utils.hal_node.run_command import AnsibleModule


def main():
    # type: () -> None
    module = AnsibleModule(
        argument_spec={
            "argv": {"type": "list", "elements": "str", "required": True},
            "chdir": {"type": "path"},
            "stdin": {"type": "str"},
        },
        supports_check_mode=True,
    )
    argv = module.params["argv"]
    if module.check_mode:
        module.exit_json(skipped=True, rc=0, stdout="", stderr="", msg="Skipped: it is a check")
    status, out, err = module.run_command(
        argv, cwd=module.params["chdir"], ignore_invalid_cwd=False, data=module.params["stdin"], encoding=None,
        expand_user_and_vars=False,
    )
    said = {"cmd": argv, "rc": status, "stdout": printed(out), "stderr": printed(err), "changed": True}
    if status != 0:
        module.fail_json(msg="non-zero return code", **said)
    module.exit_json(msg="", **said)  # as ansible.builtin.command: tasks read it whatever came of them


def printed(output):
    # type: (bytes | str) -> str
    """Return what a program printed, as text without newlines at its end."""
    return to_text(output).rstrip("\r\n")


if __name__ == "__main__":
    main()
