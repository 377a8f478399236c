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
  - Speaks with one BMC, through the client that its C(kind) needs. Runs at the controller, with the controller's
    Python; sixteen at once hold nobody up.
  - After a command it asks the BMC, and waits, until the command has taken effect. What is so already is not done
    again.
  - An action that changes something needs C(serial), and is refused when the BMC's machine has another one. Only
    C(password) also works without it, because a new BMC needs a password of the site before anybody can read its serial
    number.
  - Certificates are always checked, by C(ca_file) or C(fingerprint). A password that everybody knows is refused, except
    as the C(former_password) that is changed.
options:
  name: {description: "The node's name, for messages.", type: str, required: true}
  kind:
    description: The kind of BMC, as in C(hal_node.bmc.kind).
    type: str
    required: true
    choices: [openbmc, supermicro, idrac, redfish, ipmi]
  address: {description: "Its address, as in C(hal_node.bmc.address).", type: str, required: true}
  user: {description: The account., type: str, required: true}
  password: {description: Its password., type: str, required: true}
  ca_file:
    description: File with the certificate (PEM) of the authority that signed the BMC's certificate.
    type: path
  fingerprint:
    description: SHA-256 fingerprint of the BMC's certificate. If you give C(ca_file) too, one that fits is enough.
    type: str
  console_key: {description: "For C(console) of an OpenBMC, its ssh host key, C(ssh-ed25519 AAAA...).", type: str}
  action:
    description:
      - C(status) returns the power and the next start.
      - C(on), C(off) (asks the system to shut down), C(force_off) and C(cycle) (C(off), then C(on)) change the power.
      - C(boot) sets where the next start goes, and only that one.
      - C(inventory) returns identity, sensors, firmware and clock. C(console) listens, and returns what the console
        says.
      - C(password) changes C(former_password) to C(password), unless the BMC has that already.
      - C(clock) has the BMC ask C(ntp_servers). Without servers it sets the BMC's clock by the controller's.
      - C(certificate) gives the BMC a certificate that the authority in C(authority) signed.
    type: str
    choices: [status, "on", "off", force_off, cycle, boot, inventory, console, password, clock, certificate]
    default: status
  serial: {description: "The machine's declared serial number. An action that changes something needs it.", type: str}
  serials:
    description: Names of all nodes by their serial numbers. With it a message says with which node a BMC is swapped.
    type: dict
    default: {}
  boot: {description: "For C(boot), where the next start goes.", type: str, choices: [none, network, disk, setup]}
  force:
    description: For C(off) and C(cycle), whether to cut the power of a system that did not shut down.
    type: bool
    default: false
  on_turns:
    description: >-
      For C(on) and C(cycle), a file at the controller, by which calls take turns. Of all calls that name it, at most
      C(on_at_once) machines are switched on in any C(on_pause_seconds). Without it nobody waits.
    type: path
  on_at_once: {description: "With C(on_turns), how many machines.", type: int, default: 4}
  on_pause_seconds: {description: "With C(on_turns), in how many seconds; 0 for no pause.", type: float, default: 5}
  former_password: {description: "For C(password), the one that the BMC may still have.", type: str}
  ntp_servers: {description: "For C(clock), the servers.", type: list, elements: str, default: []}
  clock_apart_seconds:
    description: For C(clock) without servers, how far the BMC's clock may be from the controller's.
    type: int
    default: 60
  authority: {description: "For C(certificate), the folder with C(tls_ca) and C(tls_ca.pem).", type: path}
  names: {description: "For C(certificate), the BMC's names.", type: list, elements: str, default: []}
  days: {description: "For C(certificate), for how many days it is valid.", type: int, default: 825}
  renew_days: {description: "For C(certificate), how many days before its end to replace it.", type: int, default: 90}
  console_seconds: {description: "For C(console), how long to listen.", type: int, default: 5}
  timeout_seconds: {description: How long one answer may take., type: int, default: 30}
  wait_seconds: {description: How long to ask a BMC again that is silent or busy., type: int, default: 60}
  power_seconds: {description: How long power may take to come or go., type: int, default: 180}
  shut_down_seconds: {description: How long a system may take to shut itself down., type: int, default: 600}
  https_port: {description: The port for Redfish., type: int, default: 443}
  ipmi_port: {description: The port for IPMI., type: int, default: 623}
  console_port: {description: "The port for an OpenBMC's console, through ssh.", type: int, default: 2200}
  project: {description: The folder with the package hal_cluster. The action plugin of this name sets it., type: path}
author: [HAL toolkit]
attributes:
  check_mode:
    support: full
    description: Only asks the BMC what it is and has. Cannot know whether the BMC would take a password.
  diff_mode: {support: full, description: Shows power and next start before and after.}
"""

EXAMPLES = r"""
- name: Send the next start to the network
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
  description: The power after the action; C(on), C(off), C(going on), C(going off) or C(unknown).
  type: str
  returned: for status, inventory and power
boot:
  description: Where the next start goes. Absent if the BMC does not say.
  type: dict
  returned: for status, boot and power
  contains:
    target:
      description: C(none), C(network), C(disk) or C(setup); C(something else) if others have set it.
      type: str
    once: {description: Whether that is for one start only., type: bool}
boot_targets: {description: What can be set for one start., type: list, elements: str, returned: for inventory}
confirmed: {description: Whether the BMC read the boot target back., type: bool, returned: for boot}
identity: {description: "C(serial), C(model), C(macs), C(bmc_macs).", type: dict, returned: for inventory}
sensors: {description: "Each with C(name), C(value), C(unit), C(health).", type: list, returned: for inventory}
firmware: {description: "Each with C(name) and C(version).", type: list, returned: for inventory}
clock: {description: "C(now), C(ntp), C(servers).", type: dict, returned: for inventory}
console: {description: The console's text., type: str, returned: for console}
fault: {description: The kind of failure; docs/bmc.md explains each., type: str, returned: failure}
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
