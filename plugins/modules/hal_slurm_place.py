#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Put Slurm's new configuration in place on a node where no daemon and no job depends on the present one."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_slurm_place
short_description: Put Slurm's new configuration in place where nothing depends on the present one
description:
  - New files wait in I(staged_dir). They go on waiting if one of I(daemons) runs, or has jobs though it does not run (a
    saved state, steps). M(hal_slurm_daemon) puts them in place when the daemon takes them.
  - Otherwise, as on a new node or one that has only Slurm's commands, the module puts them in place at once. They
    belong to root and are readable for all.
options:
  files:
    description: Full paths of the configuration files, slurm.conf first.
    type: list
    elements: path
    required: true
  staged_dir:
    description: Directory in which the new files wait, with the same names.
    type: path
    required: true
  daemons:
    description: The daemons of this node that read the files.
    type: list
    elements: str
    choices: [slurmctld, slurmd, slurmdbd]
    default: []
  read_elsewhere:
    description:
      - If slurmctld is on a node outside this run, SHA-1 of the slurm.conf that it has read; C(none) if nobody knows.
        Another slurm.conf waits, unless there is none in place.
    type: str
  planned:
    description:
      - For check mode only, the files that the run would write, like C(files) of M(hal_files). Those of I(staged_dir)
        count as waiting there.
    type: list
    elements: dict
    default: []
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would be put in place.}
  diff_mode: {support: none, description: The task that writes the new files shows them.}
"""

EXAMPLES = r"""
- name: Put the configuration in place where nothing depends on the present one
  hal_slurm_place:
    files: [/etc/slurm/slurm.conf, /etc/slurm/gres.conf]
    staged_dir: /var/lib/hal/slurm/next
    daemons: [slurmd]
"""

RETURN = r"""
placed:
  description: The files that were put in place.
  type: list
  elements: str
  returned: always
waits:
  description: Why no file was put in place, in words. Empty if the files were.
  type: str
  returned: always
"""

import hashlib

from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.placed import Files, at_stake, text_of
from ansible.module_utils.hal_node.slurm.process import NoAnswer, unit_properties

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

ENDED = ("inactive", "failed")


def in_use(module, daemon, conf):
    # type: (Any, str, str) -> str
    """Return why the present files of a daemon stay, "" where nothing depends on them."""
    try:
        state = unit_properties(module, daemon + ".service", ("ActiveState",))["ActiveState"]
    except NoAnswer as error:
        return "%s" % error
    return at_stake(daemon, conf) if state in ENDED else "%s runs" % daemon


def not_read(content, digest):
    # type: (bytes | None, str) -> str
    """Return why a new slurm.conf waits for a slurmctld that has read the one with this digest, "" if that is it."""
    if hashlib.sha1(content or b"").hexdigest() == digest:
        return ""
    return "slurmctld has another slurm.conf, or does not say which: roll out its node, too"


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "path", "required": True},
            "staged_dir": {"type": "path", "required": True},
            "daemons": {"type": "list", "elements": "str", "choices": ["slurmctld", "slurmd", "slurmdbd"],
                        "default": []},
            "read_elsewhere": {"type": "str"},
            "planned": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    planned = module.params["planned"] if module.check_mode else []
    files = Files(module.params["files"], module.params["staged_dir"],
                  {entry["path"]: entry.get("content") for entry in planned})
    conf = text_of(files.paths[0])
    reasons = [in_use(module, daemon, conf) for daemon in module.params["daemons"]]
    if conf and module.params["read_elsewhere"] is not None and files.differing():
        reasons.append(not_read(files.new(files.paths[0]), module.params["read_elsewhere"]))
    waits = "; ".join(reason for reason in reasons if reason)
    placed = [] if waits else files.place(module)
    module.exit_json(changed=bool(placed), placed=placed, waits=waits)


if __name__ == "__main__":
    main()
