#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Make a role's environments be there, as their lock files say. It asks hal-environment, of role environments."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_environment
short_description: Install locked environments into the shared tree
description:
  - Runs on the node that installs, after role environments was rolled out there.
  - Fetches every package from its channel, or only from the mirror. Verifies it before anything is unpacked. Links an
    environment into a fresh prefix, records it, and switches to it at once.
  - If anything is wrong, what was in use stays in use. One line for each environment says why.
  - Removes or continues what an interrupted run left. A spoilt environment gets a fresh prefix beside the old one.
options:
  owner:
    description: The role that declares them. Prefixes of other roles are left alone.
    type: str
    required: true
  environments:
    description: The environments, as the lookup hal_environments returns them.
    type: list
    elements: dict
    required: true
  remove_ok:
    description:
      - Whether to remove prefixes that are more than is kept, or that nobody declares any more. They are removed only
        after environments_grace_hours (of role environments).
    type: bool
    default: false
  used:
    description: Prefixes that nodes use now, as C(hal-environment used) prints them. They are not removed.
    type: list
    elements: str
    default: []
  told:
    description: Variables for post-link scripts, such as the acceptance of a licence.
    type: dict
    default: {}
  program:
    description: The program that installs.
    type: path
    default: /usr/sbin/hal-environment
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: "Says what would be installed, switched and removed."}
  diff_mode: {support: none, description: There is nothing to read in packages.}
"""

EXAMPLES = r"""
- name: Install the environments
  hal_environment:
    owner: wmlce
    environments: "{{ __wmlce_lookup.environments }}"
  when: inventory_hostname in groups['software_installer']
"""

RETURN = r"""
installed:
  description: Environments that were installed, as NAME/VERSION.
  type: list
  elements: str
  returned: success
repaired:
  description: Environments that got a fresh prefix, and why.
  type: list
  elements: str
  returned: success
switched:
  description: Links that lead elsewhere now.
  type: list
  elements: str
  returned: success
removed:
  description: Prefixes that were removed.
  type: list
  elements: str
  returned: success
mended:
  description: Folders of environments that users other than root could write to.
  type: list
  elements: str
  returned: success
kept:
  description: Prefixes that are more than is kept. A reason follows after a colon, unless they only lack permission.
  type: list
  elements: str
  returned: success
"""

import json
import os

from ansible.module_utils.hal_node.run_command import AnsibleModule


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "owner": {"type": "str", "required": True},
            "environments": {"type": "list", "elements": "dict", "required": True},
            "remove_ok": {"type": "bool", "default": False},
            "used": {"type": "list", "elements": "str", "default": []},
            "told": {"type": "dict", "default": {}},
            "program": {"type": "path", "default": "/usr/sbin/hal-environment"},
        },
        supports_check_mode=True,
    )
    program = module.params["program"]
    if not os.path.exists(program):
        if module.check_mode:  # on a bare node: it comes with the role environments
            names = [entry["id"] for entry in module.params["environments"]]
            module.exit_json(changed=bool(names), installed=names, repaired=[], switched=[], removed=[], kept=[],
                             mended=[])
        module.fail_json(msg="%s is not there: roll out the role environments" % program)
    request = {name: module.params[name] for name in ("owner", "environments", "remove_ok", "used", "told")}
    argv = [program, "apply"] + (["--check"] if module.check_mode else [])
    status, output, errors = module.run_command(argv, data=json.dumps(request))
    try:
        done = json.loads(output.strip().splitlines()[-1])
    except (IndexError, ValueError):
        module.fail_json(msg="%s ended with %s: %s" % (program, status, (errors or output).strip()[-500:] or "no word"))
    problem = done.pop("problem", "")
    if problem:
        module.fail_json(msg=problem, steps=errors.splitlines()[-20:], **done)
    module.exit_json(**done)


if __name__ == "__main__":
    main()
