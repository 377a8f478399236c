#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Keep Slurm's reservations as declared."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_slurm_reservation
short_description: Keep Slurm's reservations as declared
description:
  - Does not make a reservation again that is over. One that should have begun already begins now.
  - Leaves alone reservations that nobody declared, and returns them in C(unmanaged). C(state=absent) deletes.
  - Reads all reservations with one query, and runs one C(scontrol) command for each difference.
options:
  reservations:
    description:
      - Reservations. Keys are name, state, nodes (a host list) or node_count with partition, start and end or duration,
        users (list), accounts (list), flags (list). Times are the cluster's local time, 2026-12-01T08:00:00.
    type: list
    elements: dict
    required: true
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would be changed. Without slurmctld everything would.}
  diff_mode: {support: none, description: The differences are in C(steps).}
"""

EXAMPLES = r"""
- name: Keep reservations as declared
  hal_slurm_reservation:
    reservations:
      - name: vision-paper
        nodes: hal[09-16]
        start: 2026-12-01T08:00:00
        duration: 7-00:00:00
        accounts: [vision]
      - {name: old, state: absent}
"""

RETURN = r"""
steps:
  description: What was changed, one line each.
  type: list
  elements: str
  returned: always
unmanaged:
  description: Names of reservations that are not declared.
  type: list
  elements: str
  returned: always
"""

import datetime

from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.reservations import ReservationError, read, steps

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments


def ask(module, argv, label):
    # type: (Any, list[str], str | None) -> tuple[int, str]
    """Return (exit status, output); a failed change ends the module with one line."""
    status, out, err = module.run_command(["timeout", "60"] + argv, environ_update={"LC_ALL": "C"})
    if status != 0 and label:
        module.fail_json(msg="%s: %s" % (label, " ".join((err or out).split())))
    return status, out


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={"reservations": {"type": "list", "elements": "dict", "required": True}},
        supports_check_mode=True)
    entries = module.params["reservations"]
    if module.check_mode and not module.get_bin_path("scontrol"):
        module.exit_json(changed=bool(entries), steps=["Slurm is not installed yet"], unmanaged=[])
    show = ["scontrol", "--oneliner", "show", "reservation"]
    status, out = ask(module, show, None if module.check_mode else "scontrol show reservation")
    if status != 0:
        module.exit_json(changed=bool(entries), steps=["slurmctld does not answer yet"], unmanaged=[])
    present = read(out)
    try:
        todo = steps(entries, present, datetime.datetime.now())
    except ReservationError as error:
        module.fail_json(msg=error.args[0])
    if not module.check_mode:
        for step in todo:
            ask(module, step.argv, step.text)
    module.exit_json(changed=bool(todo), steps=[step.text for step in todo],
                     unmanaged=sorted(set(present) - {entry["name"] for entry in entries}))


if __name__ == "__main__":
    main()
