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
  - An interface is changed only while a timer stands ready to put its files and what the kernel had of it back. Who
    changes it comes in again by a new connection and confirms.
  - With O(phase=write) files are written, and what the kernel has is compared with them. No interface is touched. The
    file of an interface that this connection needs and that is not as declared stays as it is without O(contact_ok),
    because the next boot would be a change without a way back.
  - The file of an interface of IPoIB that is up in another mode, or with another MTU, stays as it is without
    O(ipoib_ok), and so does the interface. Nodes that it speaks with have the same.
  - With O(phase=apply) the timer is started, and a moment later ifdown and ifup are run for the interfaces that differ,
    in a unit of their own, so that this answer gets out.
  - With O(phase=confirm) the timer is stopped if the interfaces are as declared now; if not, they are put back at once.
    The controller asks again and again, each time by a new connection. One that was made when ifup had ended counts.
  - ifup and ifdown are those of EL7's package initscripts. The units hal-network-rollback.service and .timer and the
    program that O(phase=apply) starts come with the role network.
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
      network: {type: str, required: true, description: The network of the model that it is in.}
      path: {type: path, required: true, description: Where its file belongs.}
      text: {type: str, required: true, description: The content of its file.}
      address: {type: str, description: Its address with the prefix; none for a member of a bond.}
      mtu: {type: int, description: Its MTU; any if none is given.}
      mac: {type: str, description: The MAC that it has to have; any if none is given.}
      gateway: {type: str, description: The default route by it; none if none is given.}
      mode: {type: str, description: The mode of IPoIB; any if none is given.}
      master: {type: str, description: The bond that it is a member of.}
      members: {type: list, elements: str, default: [], description: The members of a bond.}
      bond_mode: {type: str, description: The mode of a bond.}
  contact_ok:
    description:
      - Whether the interface that this connection came in by may be changed, with O(phase=apply), and its file, with
        O(phase=write).
    type: bool
    default: false
  ipoib_ok:
    description: Whether an interface of IPoIB that is up may get another mode or MTU, and its file.
    type: bool
    default: false
  no_default_route_ok:
    description: Whether O(phase=write) may write files without a gateway for a node that has a default route.
    type: bool
    default: false
  wait_seconds:
    description: How long the controller goes on asking with O(phase=confirm).
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
  description: What is not in force, by interface; a bond stands for its members.
  type: list
  elements: dict
  returned: when O(phase) is V(write) or V(apply)
  contains:
    name: {type: str, description: The interface that would be taken down and brought up., returned: always}
    why: {type: list, elements: str, description: What differs., returned: always}
    contact: {type: bool, description: "Whether this connection needs it, or that cannot be told.", returned: always}
    ipoib: {type: bool, description: Whether it is up in another mode of IPoIB or with another MTU., returned: always}
held:
  description: Interfaces whose files stay as they are, because O(contact_ok) or O(ipoib_ok) is not set.
  type: list
  elements: str
  returned: when O(phase) is V(write)
withdrawn:
  description: Files that would bring up a declared interface, too, and were taken away.
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
  description: The address of the node that this connection was made to, if that can be told.
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
