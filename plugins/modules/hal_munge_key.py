#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Install MUNGE's key from text, and say whether munged runs with it."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_munge_key
short_description: Install the key of MUNGE
description:
  - Writes the binary key with mode 0400. You give it as hexadecimal or base64 text. ansible.builtin.copy cannot write
    it, because its content has to be text.
  - The key is in no log, no diff and no command line.
  - C(restart_needed) says whether munged was started before the key was written, even if an earlier run wrote it.
options:
  key:
    description: The key as hexadecimal or base64 text, 32 to 1024 bytes.
    type: str
    required: true
  path:
    description: Where the key belongs.
    type: path
    default: /etc/munge/munge.key
  owner:
    description: User who owns it. munged runs as this user.
    type: str
    default: munge
  group:
    description: Group that owns it.
    type: str
    default: munge
  keep:
    description: Whether a key that is there stays, whatever it is. Owner and mode are set all the same.
    type: bool
    default: false
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says whether the key would change.}
  diff_mode: {support: none, description: A key is not shown.}
"""

EXAMPLES = r"""
- name: Install the key
  hal_munge_key:
    key: "{{ munge_key }}"
  no_log: true
  diff: false
"""

RETURN = r"""
restart_needed:
  description: Whether munged runs and was started before the key was written.
  type: bool
  returned: always
unit_missing:
  description: Whether there is no munge.service, as in check mode on a node without the package.
  type: bool
  returned: always
"""

import os

from ansible.module_utils.hal_node.munge_key import KeyTextError, decode
from ansible.module_utils.hal_node.files import content_of, has_user, replace_content
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.process import NoAnswer, epoch, unit_properties


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "key": {"type": "str", "required": True, "no_log": True},
            "path": {"type": "path", "default": "/etc/munge/munge.key", "no_log": False},
            "owner": {"type": "str", "default": "munge"},
            "group": {"type": "str", "default": "munge"},
            "keep": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    path = module.params["path"]
    try:
        wanted = decode(module.params["key"])
    except KeyTextError as error:
        module.fail_json(msg="munge key: %s" % error)
    present = content_of(path)
    wanted = present if module.params["keep"] and present else wanted
    changed = present != wanted
    if changed and not module.check_mode:
        replace_content(module, path, wanted)
    if os.path.exists(path) and (not module.check_mode or has_user(module.params["owner"])):
        changed = module.set_fs_attributes_if_different(
            module.load_file_common_arguments(dict(module.params, mode="0400", attributes=None)), changed)
    try:
        unit = unit_properties(module, "munge.service",
                               ("LoadState", "ActiveState", "MainPID", "ExecMainStartTimestampMonotonic"))
    except NoAnswer as error:
        # The next run makes up for the restart: it compares times.
        key = "not written in check mode" if module.check_mode else "written"
        module.fail_json(msg="munge: %s; the key is %s, whether munged has to restart for it is seen by the next run"
                         % (error, key), changed=changed)
    running = unit["ActiveState"] in ("active", "reloading") and unit["MainPID"] not in ("", "0")
    older = running and os.path.exists(path) and os.path.getmtime(path) > epoch(unit["ExecMainStartTimestampMonotonic"])
    module.exit_json(changed=changed, restart_needed=bool(running and (older or present != wanted)),
                     unit_missing=unit["LoadState"] == "not-found")


if __name__ == "__main__":
    main()
