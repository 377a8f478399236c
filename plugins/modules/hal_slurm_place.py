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
  - New files wait in I(staged_dir). Where one of I(daemons) runs, or has jobs though it does not run (a saved state,
    steps), they go on waiting. M(hal_slurm_daemon) puts them in place when the daemon takes them.
  - Elsewhere they are put in place at once, as root's, readable for all. So it is on a node that is new, and on one
    that has Slurm's commands alone.
options:
  files:
    description: Configuration files, by full path, slurm.conf first.
    type: list
    elements: path
    required: true
  staged_dir:
    description: Directory in which the new ones wait, by the same names.
    type: path
    required: true
  daemons:
    description: Those of this node that read the files.
    type: list
    elements: str
    choices: [slurmctld, slurmd, slurmdbd]
    default: []
  read_elsewhere:
    description:
      - SHA-1 of the slurm.conf that slurmctld, on a node that is not in this run, has read; C(none) where nobody knows.
        Another slurm.conf waits, unless there is none in place.
    type: str
  planned:
    description:
      - In check mode, the files that the run would write, as C(files) of M(hal_files); those of I(staged_dir) are taken
        for what waits there. Ignored otherwise.
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
  description: Why none was, in words; empty when they were.
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
