#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Look at nodes of Slurm, and give them back."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_slurm_node
short_description: Look at Slurm nodes, or give them back
description:
  - Runs where slurmctld runs; with C(serving), on the node itself.
  - Does not drain nodes. M(hal_reboot), M(hal_reimage) and the health check do. FAIL counts as a drain, too.
options:
  nodes:
    description: Names of nodes. One that Slurm does not know is left out of the result.
    type: list
    elements: str
    required: true
  state:
    description:
      - C(seen) only looks.
      - C(resumed) gives back nodes that are drained or down, whoever drained them.
      - C(serving) waits until slurmctld has heard of the nodes. If slurmctld itself had set a node DOWN because it did
        not answer, the node is given back once it has registered.
      - With C(serving), a node that somebody else keeps from jobs (by a drain, by FAIL or by a reboot) stays so. Any
        other node that takes no jobs is a failure, which says what is missing.
    type: str
    choices: [seen, resumed, serving]
    default: seen
  slurm_user:
    description: For C(serving), the SlurmUser of slurm.conf. What slurmctld itself sets is under this name.
    type: str
    default: slurm
  wait_seconds:
    description:
      - For C(serving), how long slurmctld may take to hear of a node. It is a limit for what hangs; slurmctld asks a
        silent node once in a third of SlurmdTimeout.
    type: int
    default: 300
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would be done and changes nothing.}
  diff_mode: {support: none, description: The states are in C(nodes).}
"""

EXAMPLES = r"""
- name: See what Slurm says of two nodes
  hal_slurm_node:
    nodes: [hal05, hal06]
  register: __nodes

- name: See that the node takes jobs again
  hal_slurm_node:
    nodes: [hal05]
    state: serving
"""

RETURN = r"""
nodes:
  description:
    - The nodes by name, after what was done. Each has C(state) as Slurm writes it, C(usable), C(drained), C(down),
      C(failing), C(answers), C(reason), C(by), C(since), C(slurmd_start), C(partitions), C(maintained) (in a
      reservation for maintenance), C(reboot) (asked or issued), C(next_state) after that, C(away) (drained, or FAIL),
      and C(jobs) that are on it.
  type: dict
  returned: always, but for C(serving)
resumed:
  description: The nodes that were given back, or would be in check mode.
  type: list
  elements: str
  returned: with C(serving)
missing:
  description: In check mode, one line for each node that takes no jobs. Without check mode that is a failure.
  type: list
  elements: str
  returned: with C(serving)
"""

import time

from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.drains import BUSY, away
from ansible.module_utils.hal_node.slurm.nodes import (KEPT, LACKS, SERVES, SILENCED, missing, read_jobs, read_nodes,
                                                  standing)

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping  # noqa: F401  in comments


class Slurm(object):
    """slurmctld, asked by its own commands."""

    def __init__(self, module):
        # type: (Any) -> None
        self.module = module

    def ask(self, *argv):
        # type: (*str) -> tuple[str, str]
        """Return (what a command prints, ""), or ("", what went wrong) when it fails."""
        status, out, err = self.module.run_command(["timeout", "30"] + list(argv), environ_update={"LC_ALL": "C"})
        if status == 0:
            return out, ""
        said = (err or out).strip().splitlines()
        return "", "%s: %s" % (" ".join(argv[:3]), said[-1] if said else "no answer within 30 s")

    def run(self, *argv):
        # type: (*str) -> str
        """Return what a command prints; the module ends when it fails, with its last line."""
        out, problem = self.ask(*argv)
        if problem:
            self.module.fail_json(msg=problem)
        return out

    def nodes(self):
        # type: () -> dict[str, dict[str, Any]]
        """Return all nodes by name."""
        return read_nodes(self.run("scontrol", "--oneliner", "show", "node"))

    def jobs(self, node):
        # type: (str) -> list[dict[str, str]]
        """Return the jobs that are on a node."""
        return read_jobs(self.run("squeue", "--noheader", "--nodelist", node, "--states", BUSY, "--format", "%A|%u|%e"))

    def update(self, node, *settings):
        # type: (str, *str) -> None
        """Change a node."""
        self.run("scontrol", "update", "NodeName=" + node, *settings)


class Serving(object):
    """Nodes that are to take jobs again."""

    def __init__(self, slurm, params):
        # type: (Slurm, Mapping[str, Any]) -> None
        self.slurm, self.user = slurm, params["slurm_user"]
        self.end = time.time() + params["wait_seconds"]
        self.resumed = []  # type: list[str]

    def look(self, name):
        # type: (str) -> tuple[dict[str, Any] | None, str]
        """Return (a node, ""), or (None, why it is not known). A slurmctld that says nothing is asked three times."""
        problem = ""
        for again in range(3):
            if again:
                time.sleep(2)
            out, problem = self.slurm.ask("scontrol", "--oneliner", "show", "node", name)
            if "not found" in problem or "Invalid node name" in problem:
                return None, "slurmctld does not know %s: it has to restart with the new slurm.conf first" % name
            node = read_nodes(out).get(name)
            if node:
                return node, ""
        return None, "whether %s takes jobs is not known: %s" % (name, problem or "scontrol shows no node")

    def problem(self, name):
        # type: (str) -> str
        """See one node through; return what is missing, "" when it takes jobs or somebody keeps it from them."""
        while True:
            node, unknown = self.look(name)
            if node is None:
                return unknown
            how = standing(node, self.user)
            if how in (SERVES, KEPT):
                return ""
            # It has registered, so that slurmctld has looked at what it has; and slurmctld did not bring it back.
            if how == SILENCED and node["answers"] and name not in self.resumed:
                self.resumed.append(name)
                if self.slurm.module.check_mode:
                    return ""
                self.slurm.update(name, "State=RESUME")
                continue
            if how == LACKS or self.slurm.module.check_mode or time.time() > self.end:
                return missing(node, self.user)
            time.sleep(2)

    def run(self, names):
        # type: (Iterable[str]) -> None
        """See all of them through and end the module."""
        problems = [problem for problem in map(self.problem, names) if problem]
        module, result = self.slurm.module, {"changed": bool(self.resumed), "resumed": self.resumed}
        if problems and not module.check_mode:
            module.fail_json(msg="\n".join(problems), **result)
        module.exit_json(missing=problems, **result)


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["seen", "resumed", "serving"], "default": "seen"},
            "slurm_user": {"type": "str", "default": "slurm"},
            "wait_seconds": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    slurm, params = Slurm(module), module.params
    if params["state"] == "serving":
        Serving(slurm, params).run(params["nodes"])
    every = slurm.nodes()
    known = [name for name in params["nodes"] if name in every]
    change = []
    if params["state"] == "resumed":
        change = [name for name in known if away(every[name]) or every[name]["down"]]
        if change and not module.check_mode:
            for name in change:
                slurm.update(name, "State=RESUME")
            every = slurm.nodes()
    nodes = {name: dict(every[name], away=away(every[name]), jobs=slurm.jobs(name)) for name in known}
    module.exit_json(changed=bool(change), nodes=nodes)


if __name__ == "__main__":
    main()
