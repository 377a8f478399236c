#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Keep what is on a node before roles change it, list it, and give it back."""
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: hal_originals
short_description: Keep what is on a node before roles change it, and give it back
description:
  - Keeps the first version of every file, unit, package and setting that roles replace. It is in
    C(/var/lib/hal/originals), for root alone, and no content leaves the node.
  - What an earlier rollout made, as the node's record says, is ours and is not kept.
  - The action plugin of this name works out at the controller which resources the roles of the running playbook manage
    on the node, without running them. It asks no node whose record covers its roles.
  - "How you use it: C(docs/audit.md), What was there before; C(docs/operations.md), Give back what a role replaced."
options:
  state:
    description:
      - V(kept) keeps what is not kept yet of O(resources). If something cannot be read, or is too large, it refuses and
        keeps nothing.
      - V(listed) returns what is kept.
      - V(planned) says what giving back O(role) would do. V(given_back) does it.
    type: str
    choices: [kept, listed, planned, given_back]
    required: true
  node:
    description: Name of the node in the inventory. The action plugin sets it.
    type: str
    default: ''
  resources:
    description: What the run will manage. Each has V(resource), V(declared), V(role). The default is worked out.
    type: list
    elements: dict
    default: []
  things:
    description:
      - What a role has found in the run and will replace or remove, such as V(file:/etc/x) and V(service:x.service).
        The action plugin adds it to O(resources). What a role declares is kept without this.
    type: list
    elements: str
    default: []
  roles:
    description: Keep only what these roles replace. The default is all roles of the running playbook.
    type: list
    elements: str
    default: []
  copy:
    description: The record as the controller has it, compressed, in base64. The action plugin sets it.
    type: str
    default: ''
  most_mib:
    description: How much content of files one run keeps, in MiB. If it is more, the largest files are refused.
    type: int
    default: 512
  lost_ok:
    description: Whether to go on when something cannot be kept.
    type: bool
    default: false
  role:
    description: The role to give back.
    type: str
    default: ''
  fingerprint:
    description: The fingerprint of the plan to carry out, as V(planned) returned it. Another plan is refused.
    type: str
    default: ''
  changed_ok:
    description: Whether to put back also what others changed since the last rollout. Their change is lost then.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Says what would be kept. V(given_back) is skipped.}
  diff_mode: {support: none, description: Contents are not shown.}
requirements:
  - Python 2.7, or 3.6 or later, on the node. Nothing else.
notes:
  - Needs C(become).
author: HAL toolkit
'''

EXAMPLES = r'''
- name: Keep what is there and will be replaced
  hal_originals:
    state: kept

- name: Keep a firewall that was found in the run and will be stopped
  hal_originals:
    state: kept
    things: [service:iptables.service]
'''

RETURN = r'''
kept:
  description: Names of the things that were kept now. With O(state=planned), how many things the role has.
  returned: state is kept
  type: list
  elements: str
  sample: ["file:/etc/chrony.conf", "service:chronyd.service"]
lost:
  description: What will be changed and cannot be given back, one a line.
  returned: state is kept
  type: list
  elements: str
uncovered:
  description: Tasks that decide in the run what they change. What they replace is not kept.
  returned: state is kept, by the action plugin
  type: list
  elements: str
originals:
  description: What is kept, each with V(thing), V(kept_at), V(roles), V(was), V(now).
  returned: state is listed
  type: list
  elements: dict
steps:
  description: What would be done, as pairs of a thing and words.
  returned: state is planned
  type: list
  elements: list
changed_since:
  description: What others changed since the last rollout and would be lost, one a line.
  returned: state is planned
  type: list
  elements: str
serving:
  description: Units that would stop, and that jobs on other nodes need.
  returned: state is planned
  type: list
  elements: str
fingerprint:
  description: The fingerprint of the plan.
  returned: state is planned
  type: str
done:
  description: What was put back.
  returned: state is given_back
  type: list
  elements: str
left:
  description: What was not put back, and why.
  returned: state is given_back
  type: list
  elements: str
stayed:
  description: Folders that were not there and are not empty, and packages that others need. They stay.
  returned: state is given_back
  type: list
  elements: str
'''

from ansible.module_utils.hal_node.audit.module import QuietModule, one_line
from ansible.module_utils.hal_node.audit.node import Node
from ansible.module_utils.hal_node.audit.record import WriteError
from ansible.module_utils.hal_node.expect.values import to_text
from ansible.module_utils.hal_node.originals.back import ask, give_back
from ansible.module_utils.hal_node.originals.listing import listed
from ansible.module_utils.hal_node.originals.store import OriginalsError, keep

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments


def answer(request, check, node):
    # type: (dict[str, Any], bool, Node) -> dict[str, Any]
    """Return what the module returns. Raises OriginalsError, WriteError, EnvironmentError."""
    if request['state'] == 'kept':
        return dict(keep(request, node, check), changed=False)
    if request['state'] == 'listed':
        return {'changed': False, 'originals': listed(node)}
    if request['state'] == 'planned':
        return dict(ask(request, node), changed=False)
    if check:
        return {'changed': False, 'skipped': True}
    done = give_back(request, node)
    return dict(done, changed=bool(done['done']))


def main():
    # type: () -> None
    """Run the module."""
    module = QuietModule(
        argument_spec={
            'state': {'type': 'str', 'choices': ['kept', 'listed', 'planned', 'given_back'], 'required': True},
            'node': {'type': 'str', 'default': ''},
            'resources': {'type': 'list', 'elements': 'dict', 'default': []},
            'things': {'type': 'list', 'elements': 'str', 'default': []},
            'roles': {'type': 'list', 'elements': 'str', 'default': []},
            'copy': {'type': 'str', 'default': ''},
            'most_mib': {'type': 'int', 'default': 512},
            'lost_ok': {'type': 'bool', 'default': False},
            'role': {'type': 'str', 'default': ''},
            'fingerprint': {'type': 'str', 'default': ''},
            'changed_ok': {'type': 'bool', 'default': False},
        },
        supports_check_mode=True,
    )
    try:
        said = answer(to_text(module.params), module.check_mode, Node())
    except (OriginalsError, WriteError) as error:
        module.fail_json(msg='%s' % error, invocation={})
    except Exception as error:  # noqa: B902 - one line, whatever it is
        module.fail_json(msg=one_line('what was on this node cannot be kept or told', error), invocation={})
    module.exit_json(invocation={}, **said)


if __name__ == '__main__':
    main()
