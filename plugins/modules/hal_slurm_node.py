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
  - Runs where slurmctld runs; C(serving) on the node itself.
  - The reason of a drain says who drained; one that begins with I(mark) is ours. FAIL is a drain, too.
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
      - C(drained) drains those that are not drained yet, all of them or none.
      - C(resumed) gives those back that are drained or down, whoever drained them.
      - C(serving) waits until slurmctld has heard of them, and gives those back that slurmctld itself had set DOWN
        because they did not answer, once they have registered. One that somebody else keeps from jobs by a drain, by
        FAIL or by a reboot stays so; any other that takes no jobs is a failure, which says what is missing.
    type: str
    choices: [seen, drained, resumed, serving]
    default: seen
  mark:
    description: How the reasons of our drains begin.
    type: str
    default: hal
  reason:
    description: For C(drained), the reason.
    type: str
  keep:
    description:
      - For C(drained), how many other nodes have to stay for jobs; with fewer nothing is drained, and it fails.
      - Each partition keeps half of its nodes, but no more than this.
      - Asked once more afterwards, since another controller may drain at the same moment. Nodes that took jobs are
        given back then.
    type: int
    default: 0
  over:
    description: For C(drained), how reasons begin that are replaced, so that the drain is ours.
    type: str
  slurm_user:
    description: For C(serving), the SlurmUser of slurm.conf, who is behind what slurmctld itself sets.
    type: str
    default: slurm
  wait_seconds:
    description:
      - For C(serving), how long slurmctld may take until it has heard of a node; a limit for what hangs. slurmctld asks
        a silent node once in a third of SlurmdTimeout.
    type: int
    default: 300
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

- name: See that the node takes jobs again
  hal_slurm_node:
    nodes: [hal05]
    state: serving
"""

RETURN = r"""
nodes:
  description:
    - By name, after what was done; C(state) as Slurm writes it, C(usable), C(drained), C(down), C(failing), C(answers),
      C(reason), C(by), C(since), C(slurmd_start), C(partitions), C(maintained) (in a reservation for maintenance),
      C(reboot) (asked or issued), C(next_state) after that, C(away) (drained, or FAIL), C(ours) (that, with our mark),
      and C(jobs) that are on it.
  type: dict
  returned: always, but for C(serving)
resumed:
  description: The nodes that were given back (or would be, in check mode).
  type: list
  elements: str
  returned: with C(serving)
missing:
  description: In check mode, one line for each node that takes no jobs; without it that is a failure.
  type: list
  elements: str
  returned: with C(serving)
"""

import time

from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.drains import BUSY, away, proving, reason_line, too_few
from ansible.module_utils.hal_node.slurm.nodes import (KEPT, LACKS, SERVES, SILENCED, missing, read_jobs, read_nodes,
                                                  standing)

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping, Sequence  # noqa: F401  in comments


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


class Drains(object):
    """Nodes that are to have no new jobs."""

    def __init__(self, slurm, params):
        # type: (Slurm, Mapping[str, Any]) -> None
        self.slurm, self.keep, self.over = slurm, params["keep"], params["over"]
        self.reason = reason_line(params["reason"] or "")

    def wanted(self, names, nodes):
        # type: (Iterable[str], Mapping[str, Mapping[str, Any]]) -> list[str]
        """Return those of these nodes that ours is the drain of, once they are drained."""
        return [name for name in names if not away(nodes[name])
                or (self.over and nodes[name]["reason"].startswith(self.over))]

    def refused(self, names, nodes):
        # type: (Sequence[str], dict[str, dict[str, Any]]) -> str
        """Return why these nodes may not be away, "" when they may."""
        if not names or not self.keep:
            return ""
        reservations = self.slurm.run("scontrol", "--oneliner", "show", "reservation")
        return too_few(names, nodes, {}, proving(reservations), self.keep)

    def run(self, names, before):
        # type: (list[str], dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]
        """Drain these nodes and return all as they are then; the module ends when too few are left.

        In between others may have drained.
        """
        self.refuse(names, self.refused(names, before))
        if self.slurm.module.check_mode or not names:
            return before
        for name in names:
            self.slurm.update(name, "State=DRAIN", "Reason=" + self.reason)
        after = self.slurm.nodes()
        refused = self.refused(names, dict(after, **{name: before[name] for name in names}))
        if refused:
            for name in names:
                self.take_back(name, before[name], after[name])
        self.refuse(names, refused)
        return after

    def take_back(self, name, before, after):
        # type: (str, Mapping[str, Any], Mapping[str, Any]) -> None
        """Undo our drain of a node: it takes jobs again, or has the drain back that ours replaced."""
        if after["reason"] != self.reason:
            return
        if away(before):
            self.slurm.update(name, "State=DRAIN", "Reason=" + before["reason"])
        elif before["usable"] and not after["down"]:
            self.slurm.update(name, "State=RESUME")

    def refuse(self, names, problem):
        # type: (Iterable[str], str) -> None
        """End the module, if there is a problem."""
        if problem:
            self.slurm.module.fail_json(msg="%s: not drained: %s" % (",".join(names), problem))


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "nodes": {"type": "list", "elements": "str", "required": True},
            "state": {"type": "str", "choices": ["seen", "drained", "resumed", "serving"], "default": "seen"},
            "mark": {"type": "str", "default": "hal"},
            "reason": {"type": "str"},
            "keep": {"type": "int", "default": 0},
            "over": {"type": "str"},
            "slurm_user": {"type": "str", "default": "slurm"},
            "wait_seconds": {"type": "int", "default": 300},
        },
        required_if=[("state", "drained", ("reason",))],
        supports_check_mode=True,
    )
    slurm, params = Slurm(module), module.params
    if params["state"] == "serving":
        Serving(slurm, params).run(params["nodes"])
    every = slurm.nodes()
    known = [name for name in params["nodes"] if name in every]
    change = []
    if params["state"] == "drained":
        drains = Drains(slurm, params)
        change = drains.wanted(known, every)
        every = drains.run(change, every)
    elif params["state"] == "resumed":
        change = [name for name in known if away(every[name]) or every[name]["down"]]
        if change and not module.check_mode:
            for name in change:
                slurm.update(name, "State=RESUME")
            every = slurm.nodes()
    seen = {}
    for name in known:
        node = every[name]
        ours = away(node) and node["reason"].startswith(params["mark"])
        seen[name] = dict(node, away=away(node), ours=ours, jobs=slurm.jobs(name))
    module.exit_json(changed=bool(change), nodes=seen)


if __name__ == "__main__":
    main()
