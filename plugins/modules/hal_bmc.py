#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Ask a BMC, and have it do something, and see that it did."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_bmc
short_description: Power, one-time boot and settings of a BMC
description:
  - Speaks with one BMC, by the client that its C(kind) needs. Runs at the controller, with the controller's Python;
    sixteen at once hold nobody up.
  - Whether a command took is asked of the BMC, and waited for. What is so already is not done again.
  - Certificates are always checked, by C(ca_file) or C(fingerprint). Passwords that everybody knows are refused, but
    for changing them.
  - What changes something needs C(serial), and is refused when the BMC's machine has another one. C(password) alone
    does without, since a BMC as it came has to have a password of the site before its serial number can be read.
options:
  name: {description: The node's name; messages have it., type: str, required: true}
  kind:
    description: What kind of BMC it is, as C(hal_node.bmc.kind) says.
    type: str
    required: true
    choices: [openbmc, supermicro, idrac, redfish, ipmi]
  address: {description: Where it is, as C(hal_node.bmc.address) says., type: str, required: true}
  user: {description: The account., type: str, required: true}
  password: {description: Its password., type: str, required: true}
  ca_file:
    description: File with the certificate (PEM) of the authority that signed the BMC's.
    type: path
  fingerprint:
    description: SHA-256 fingerprint of the BMC's certificate. Beside C(ca_file), either is enough.
    type: str
  console_key: {description: "For C(console) of an OpenBMC, its ssh host key: C(ssh-ed25519 AAAA...).", type: str}
  action:
    description:
      - C(status) tells power and the next start. C(on), C(off) (asks the system to shut down), C(force_off) and
        C(cycle) (C(off), then C(on)) change the power.
      - C(boot) sets what the next start, and only that one, goes to.
      - C(inventory) tells identity, sensors, firmware and clock. C(console) tells what the console says meanwhile.
      - C(password) changes C(former_password) to C(password), unless that is right already.
      - C(clock) has it ask C(ntp_servers), or sets it by the controller's clock where there are none.
      - C(certificate) has it show one that the authority in C(authority) signed.
    type: str
    choices: [status, on, off, force_off, cycle, boot, inventory, console, password, clock, certificate]
    default: status
  serial: {description: The machine's declared serial number; needed for what changes something., type: str}
  serials:
    description: Names of all nodes by their serial numbers. With it a message tells with whom a BMC is swapped.
    type: dict
    default: {}
  boot: {description: For C(boot)., type: str, choices: [none, network, disk, setup]}
  force:
    description: For C(off) and C(cycle), whether a system that did not shut down loses its power.
    type: bool
    default: false
  on_turns:
    description: >-
      For C(on) and C(cycle), a file of the controller: of all who name it, C(on_at_once) machines are switched on in
      any C(on_pause_seconds). Without it nobody waits.
    type: path
  on_at_once: {description: Beside C(on_turns)., type: int, default: 4}
  on_pause_seconds: {description: "Beside C(on_turns); 0 for no pause.", type: float, default: 5}
  former_password: {description: "For C(password), the one that it may still have.", type: str}
  ntp_servers: {description: For C(clock)., type: list, elements: str, default: []}
  clock_apart_seconds:
    description: For C(clock) without servers, how far it may be from the controller's.
    type: int
    default: 60
  authority: {description: "For C(certificate), the folder with C(tls_ca) and C(tls_ca.pem).", type: path}
  names: {description: "For C(certificate), the BMC's names.", type: list, elements: str, default: []}
  days: {description: "For C(certificate), how long it is valid.", type: int, default: 825}
  renew_days: {description: "For C(certificate), how many days before its end it is replaced.", type: int, default: 90}
  console_seconds: {description: "For C(console), how long to listen.", type: int, default: 5}
  timeout_seconds: {description: How long one answer may take., type: int, default: 30}
  wait_seconds: {description: How long a BMC that is silent or busy is asked again., type: int, default: 60}
  power_seconds: {description: How long power may take to come or go., type: int, default: 180}
  shut_down_seconds: {description: How long a system may take to shut itself down., type: int, default: 600}
  https_port: {description: Where it speaks Redfish., type: int, default: 443}
  ipmi_port: {description: Where it speaks IPMI., type: int, default: 623}
  console_port: {description: Where an OpenBMC has the console by ssh., type: int, default: 2200}
  project: {description: The folder with the package hal_cluster; the action plugin of this name gives it., type: path}
author: [HAL toolkit]
attributes:
  check_mode:
    support: full
    description: The BMC is asked what it is and has, and told nothing. Whether a password would be taken is not known.
  diff_mode: {support: full, description: Power and next start before and after.}
"""

EXAMPLES = r"""
- name: Have the next start go to the network
  hal_bmc:
    name: "{{ inventory_hostname }}"
    kind: "{{ hal_node.bmc.kind }}"
    address: "{{ hal_node.bmc.address }}"
    user: root
    password: "{{ bmc_password }}"
    ca_file: "{{ hal_state_dir }}/ca/tls_ca.pem"
    serial: "{{ hal_node.serial }}"
    action: boot
    boot: network
  delegate_to: localhost
  no_log: true
"""

RETURN = r"""
power:
  description: C(on), C(off), C(going on), C(going off) or C(unknown), after what was done.
  type: str
  returned: for status, inventory and power
boot:
  description: What the next start goes to; absent where the BMC does not tell.
  type: dict
  returned: for status, boot and power
  contains:
    target:
      description: C(none), C(network), C(disk) or C(setup); C(something else) that others have set there.
      type: str
    once: {description: Whether that is for one start., type: bool}
boot_targets: {description: What can be set for one start., type: list, elements: str, returned: for inventory}
confirmed: {description: Whether the BMC read the boot target back., type: bool, returned: for boot}
identity: {description: "C(serial), C(model), C(macs), C(bmc_macs).", type: dict, returned: for inventory}
sensors: {description: "Each with C(name), C(value), C(unit), C(health).", type: list, returned: for inventory}
firmware: {description: "Each with C(name) and C(version).", type: list, returned: for inventory}
clock: {description: "C(now), C(ntp), C(servers).", type: dict, returned: for inventory}
console: {description: The console's text., type: str, returned: for console}
fault: {description: What kind of failure it is; docs/bmc.md explains each., type: str, returned: failure}
"""

import sys

from ansible.module_utils.hal_node.run_command import AnsibleModule

CHANGES = ("on", "off", "force_off", "cycle", "boot", "clock", "certificate")


def main():
    # type: () -> None
    """Run the module."""
    spec = {
        "action": {"type": "str", "default": "status",
                   "choices": ["status", "on", "off", "force_off", "cycle", "boot", "inventory", "console", "password",
                               "clock", "certificate"]},
        "kind": {"type": "str", "required": True, "choices": ["openbmc", "supermicro", "idrac", "redfish", "ipmi"]},
        "name": {"type": "str", "required": True},
        "address": {"type": "str", "required": True},
        "user": {"type": "str", "required": True},
        "password": {"type": "str", "required": True, "no_log": True},
        "former_password": {"type": "str", "no_log": True},
        "ca_file": {"type": "path"},
        "fingerprint": {"type": "str"},
        "console_key": {"type": "str", "no_log": False},
        "serial": {"type": "str"},
        "serials": {"type": "dict", "default": {}},
        "boot": {"type": "str", "choices": ["none", "network", "disk", "setup"]},
        "force": {"type": "bool", "default": False},
        "on_turns": {"type": "path"},
        "on_at_once": {"type": "int", "default": 4},
        "on_pause_seconds": {"type": "float", "default": 5},
        "ntp_servers": {"type": "list", "elements": "str", "default": []},
        "clock_apart_seconds": {"type": "int", "default": 60},
        "authority": {"type": "path"},
        "names": {"type": "list", "elements": "str", "default": []},
        "days": {"type": "int", "default": 825},
        "renew_days": {"type": "int", "default": 90},
        "console_seconds": {"type": "int", "default": 5},
        "timeout_seconds": {"type": "int", "default": 30},
        "wait_seconds": {"type": "int", "default": 60},
        "power_seconds": {"type": "int", "default": 180},
        "shut_down_seconds": {"type": "int", "default": 600},
        "https_port": {"type": "int", "default": 443},
        "ipmi_port": {"type": "int", "default": 623},
        "console_port": {"type": "int", "default": 2200},
        "project": {"type": "path"},
    }
    needed = [("action", name, ("serial",)) for name in CHANGES]  # type: list[tuple[str, str, tuple[str, ...]]]
    needed += [("action", "boot", ("boot",)), ("action", "certificate", ("authority", "names"))]
    module = AnsibleModule(argument_spec=spec, required_if=needed, supports_check_mode=True)
    # PYTHONPATH would come too late: its Python may run already (mitogen), with the code of an installed checkout.
    sys.path.insert(0, module.params["project"] or "")
    try:
        from hal_cluster.bmc.tasks import run
    except ImportError as error:
        module.fail_json(msg="%s: %s; this module runs at the controller, with its Python: delegate_to: localhost, "
                             "ansible_python_interpreter: ansible_playbook_python" % (sys.executable, error))
    result = run(module.params, check=module.check_mode)
    if "fault" in result:
        module.fail_json(**result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
