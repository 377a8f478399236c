#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Write files of network scripts, and put them in force with a way back."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_network
short_description: Write ifcfg files, and put them in force with a timed roll-back
description:
  - Changes an interface only while a timer stands ready to put back its files and what the kernel had of it. The
    controller confirms the change through a new connection (O(phase=confirm)).
  - O(phase=write) writes the files and compares them with what the kernel has. It touches no interface. An interface
    that this connection needs, and that is not as declared, keeps its file unless O(contact_ok), because the next boot
    would be a change without a way back.
  - O(phase=apply) starts the timer. A moment later a unit of its own runs ifdown and ifup for the interfaces that
    differ, so that this answer gets out first.
  - O(phase=confirm) stops the timer if the interfaces are now as declared, and puts them back at once if not. The
    controller asks again and again, each time through a new connection. It counts a connection that was made after ifup
    had ended.
  - An interface of IPoIB that is up in another mode, or with another MTU, is not changed unless O(ipoib_ok), nor is its
    file, because the nodes that it speaks with have the same mode and MTU.
  - ifup and ifdown are those of EL7's package initscripts. Role network brings the units hal-network-rollback.service
    and .timer, and the program that O(phase=apply) starts.
options:
  phase:
    description: What to do.
    type: str
    choices: [write, apply, confirm]
    required: true
  devices:
    description: All interfaces that are declared, as lookup plugin hal_network returns them.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {type: str, required: true, description: The interface.}
      network: {type: str, required: true, description: Its network in the model.}
      path: {type: path, required: true, description: Where its file belongs.}
      text: {type: str, required: true, description: The content of its file.}
      address: {type: str, description: Its address with the prefix. A member of a bond has none.}
      mtu: {type: int, description: Its MTU. Any will do if none is given.}
      mac: {type: str, description: The MAC that it has to have. Any will do if none is given.}
      gateway:
        type: str
        description: >-
          The gateway of its default route. Without it the interface gets no default route, and one that is there is
          taken away.
      mode: {type: str, description: The mode of IPoIB. Any will do if none is given.}
      master: {type: str, description: The bond that it is a member of.}
      members: {type: list, elements: str, default: [], description: The members of a bond.}
      bond_mode: {type: str, description: The mode of a bond.}
  contact_ok:
    description:
      - Whether O(phase=apply) may change the interface that this connection came in by, and O(phase=write) its file.
    type: bool
    default: false
  ipoib_ok:
    description: Whether an interface of IPoIB that is up, and its file, may get another mode or MTU.
    type: bool
    default: false
  no_default_route_ok:
    description: Whether O(phase=write) may write files without a gateway for a node that has a default route.
    type: bool
    default: false
  wait_seconds:
    description: With O(phase=confirm), how long the controller goes on asking.
    type: int
    default: 105
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says which files and interfaces would be changed.}
  diff_mode: {support: full, description: Shows files before and after.}
"""

EXAMPLES = r"""
- name: Write the files of interfaces
  hal_network:
    phase: write
    devices: "{{ lookup('hal_network', 'devices', node=hal_node, networks=lookup('hal', 'networks')) }}"
  register: written

- name: Show what is not in force
  ansible.builtin.debug:
    var: written.pending
"""

RETURN = r"""
pending:
  description: What is not in force, by interface. A bond stands for its members.
  type: list
  elements: dict
  returned: when O(phase) is V(write) or V(apply)
  contains:
    name: {type: str, description: The interface that would be taken down and brought up., returned: always}
    why: {type: list, elements: str, description: What differs., returned: always}
    contact: {type: bool, description: "Whether this connection needs it, or nobody can tell.", returned: always}
    ipoib: {type: bool, description: Whether it is up in another mode of IPoIB or with another MTU., returned: always}
held:
  description: Interfaces whose files stay as they are, because O(contact_ok) or O(ipoib_ok) is not set.
  type: list
  elements: str
  returned: when O(phase) is V(write)
withdrawn:
  description: Other files that would bring up a declared interface. They were taken away.
  type: list
  elements: str
  returned: when O(phase) is V(write)
started:
  description: Interfaces that are being changed now.
  type: list
  elements: str
  returned: when O(phase) is V(apply)
confirmed:
  description: Whether the change is kept.
  type: bool
  returned: when O(phase) is V(confirm)
got_in:
  description: Whether a new connection got in at all.
  type: bool
  returned: when O(phase) is V(confirm) and nothing was kept
server_address:
  description: The node's address that this connection was made to, if the node can tell.
  type: str
  returned: when O(phase) is V(apply)
server_device:
  description: The interface that has this address.
  type: str
  returned: when O(phase) is V(apply)
"""

from ansible.module_utils.hal_node.network.change import apply, confirm
from ansible.module_utils.hal_node.network.write import write
from ansible.module_utils.hal_node.run_command import AnsibleModule

DEVICE = {
    "name": {"type": "str", "required": True}, "network": {"type": "str", "required": True},
    "path": {"type": "path", "required": True}, "text": {"type": "str", "required": True}, "address": {"type": "str"},
    "mtu": {"type": "int"}, "mac": {"type": "str"}, "gateway": {"type": "str"}, "mode": {"type": "str"},
    "master": {"type": "str"}, "members": {"type": "list", "elements": "str", "default": []},
    "bond_mode": {"type": "str"},
}


def main():
    # type: () -> None
    """Do one phase."""
    module = AnsibleModule(
        argument_spec={
            "phase": {"type": "str", "choices": ["write", "apply", "confirm"], "required": True},
            "devices": {"type": "list", "elements": "dict", "required": True, "options": DEVICE},
            "contact_ok": {"type": "bool", "default": False},
            "ipoib_ok": {"type": "bool", "default": False},
            "no_default_route_ok": {"type": "bool", "default": False},
            "wait_seconds": {"type": "int", "default": 105},  # read by plugins/action/hal_network.py
        },
        supports_check_mode=True,
    )
    result = {"write": write, "apply": apply, "confirm": confirm}[module.params["phase"]](module)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
