#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Say whether a node has MUNGE's declared key or another one, and show neither."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_munge_key_state
short_description: Say which key of MUNGE a node has, without showing it
description:
  - Reads the key. Returns what it is, and a digest that is the same on nodes with the same key.
  - The digest is an HMAC with the declared key. Only somebody who has the declared key can test a guess with it.
options:
  key:
    description: The declared key as hexadecimal or base64 text.
    type: str
    required: true
  path:
    description: Where the key belongs.
    type: path
    default: /etc/munge/munge.key
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Changes nothing.}
  diff_mode: {support: none, description: Has nothing to show.}
"""

EXAMPLES = r"""
- name: See which key is there
  hal_munge_key_state:
    key: "{{ munge_key }}"
  no_log: true
  register: __munge_seen
"""

RETURN = r"""
state:
  description:
    - C(absent), C(declared), C(other) or C(unusable). An empty file is C(absent). C(unusable) is a file that MUNGE
      takes no key from.
  type: str
  returned: always
digest:
  description: The same on nodes with the same key. Empty if there is no key.
  type: str
  returned: always
jobs:
  description: Whether steps of Slurm's jobs run here.
  type: bool
  returned: always
"""

import hashlib
import hmac

from ansible.module_utils.common.text.converters import to_native
from ansible.module_utils.hal_node.munge_key import MAX_BYTES, MIN_BYTES, KeyTextError, decode
from ansible.module_utils.hal_node.files import content_of
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.process import job_steps

PROC = "/proc"


def state_of(present, declared):
    # type: (bytes | None, bytes) -> tuple[str, str]
    """Return the state and the digest of a node's key; None where there is none."""
    if not present:
        return "absent", ""
    digest = hmac.new(declared, present, hashlib.sha256).hexdigest()
    if present == declared:
        return "declared", digest
    return ("other" if MIN_BYTES <= len(present) <= MAX_BYTES else "unusable"), digest


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "key": {"type": "str", "required": True, "no_log": True},
            "path": {"type": "path", "default": "/etc/munge/munge.key", "no_log": False},
        },
        supports_check_mode=True,
    )
    try:
        state, digest = state_of(content_of(module.params["path"]), decode(module.params["key"]))
    except KeyTextError as error:
        module.fail_json(msg="munge key: %s" % error)
    except (IOError, OSError) as error:
        module.fail_json(msg="munge key: %s cannot be read: %s" % (module.params["path"], to_native(error.strerror)))
    module.exit_json(changed=False, state=state, digest=digest, jobs=bool(job_steps(PROC)))


if __name__ == "__main__":
    main()
