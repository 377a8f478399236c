#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Drain nodes and give them back, and remember who drained them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_slurm_node
short_description: Drain Slurm nodes, look at them, give them back
description:
  - Runs where slurmctld runs. The reason of a drain says who drained; one that begins with I(mark) is ours.
  - What an administrator, or slurmctld itself, has drained is left as it is.
options:
  nodes:
    description: Names of nodes. One that Slurm does not know is left out of the result.
    type: list
    elements: str
    required: true
  state:
    description:
      - C(seen) only looks.
      - C(drained) drains those that are not drained yet.
      - C(resumed) gives those back that are drained or down, whoever drained them.
    type: str
    choices: [seen, drained, resumed]
    default: seen
  mark:
    description: How the reasons of our drains begin.
    type: str
    default: hal
  reason:
    description: For C(drained), the reason.
    type: str
  keep:
    description: For C(drained), how many other nodes have to stay usable; with fewer nothing is drained, and it fails.
    type: int
    default: 0
  over:
    description: For C(drained), how reasons begin that are replaced, so that the drain is ours.
    type: str
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would be done and changes nothing.}
  diff_mode: {support: none, description: The states are in C(nodes).}
"""

EXAMPLES = r"""
- name: Drain two nodes
  hal_slurm_node:
    nodes: [hal05, hal06]
    state: drained
    mark: hal-reboot
    reason: "hal-reboot: new kernel"
    keep: 8
"""

RETURN = r"""
nodes:
  description:
    - By name, after what was done; C(state) as Slurm writes it, C(usable), C(drained), C(down), C(failing), C(answers),
      C(reason), C(by), C(slurmd_start), C(partitions), C(maintained) (in a reservation for maintenance), C(reboot)
      (asked or issued), C(next_state) after that, C(ours) (drained, with our mark), and C(jobs) that are on it.
  type: dict
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hal_slurm_nodes import read_jobs, read_nodes, too_few

BUSY = "RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED"


class Slurm(object):
    """slurmctld, asked by its own commands."""

    def __init__(self, module):
        self.module = module

    def run(self, *argv):
        """Return what a command prints; the module ends when it fails, with its last line."""
        status, out, err = self.module.run_command(["timeout", "30"] + list(argv), environ_update={"LC_ALL": "C"})
        if status != 0:
            said = (err or out).strip().splitlines()
            self.module.fail_json(msg="%s: %s" % (" ".join(argv[:3]), said[-1] if said else "no answer within 30 s"))
        return out

    def nodes(self):
        """Return all nodes by name."""
        return read_nodes(self.run("scontrol", "--oneliner", "show", "node"))

    def jobs(self, node):
        """Return the jobs that are on a node."""
        return read_jobs(self.run("squeue", "--noheader", "--nodelist", node, "--states", BUSY, "--format", "%A|%u|%e"))

    def update(self, node, *settings):
        """Change a node."""
        self.run("scontrol", "update", "NodeName=" + node, *settings)


def is_over(node, beginning):
    """Whether a node's drain is one that ours takes the place of."""
    return bool(beginning) and node["reason"].startswith(beginning)


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["seen", "drained", "resumed"], "default": "seen"},
            "mark": {"type": "str", "default": "hal"},
            "reason": {"type": "str"},
            "keep": {"type": "int", "default": 0},
            "over": {"type": "str"},
        },
        required_if=[("state", "drained", ("reason",))],
        supports_check_mode=True,
    )
    slurm, params = Slurm(module), module.params
    every = slurm.nodes()
    known = [name for name in params["nodes"] if name in every]
    change = []
    if params["state"] == "drained":
        change = [name for name in known if not every[name]["drained"] or is_over(every[name], params["over"])]
        problem = too_few(every, change, params["keep"])
        if problem:
            module.fail_json(msg="%s: not drained: %s" % (",".join(change), problem))
        settings = ("State=DRAIN", "Reason=" + params["reason"])
    elif params["state"] == "resumed":
        change = [name for name in known if every[name]["drained"] or every[name]["down"]]
        settings = ("State=RESUME",)
    if change and not module.check_mode:
        for name in change:
            slurm.update(name, *settings)
        every = slurm.nodes()
    found = {}
    for name in known:
        node = every[name]
        ours = node["drained"] and node["reason"].startswith(params["mark"])
        found[name] = dict(node, ours=ours, jobs=slurm.jobs(name))
    module.exit_json(changed=bool(change), nodes=found)


if __name__ == "__main__":
    main()
