# -*- coding: utf-8 -*-
"""What slurmctld says when it is asked. Where it does not answer, the caller learns that, too.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ..drains import BUSY
from ..nodes import has_to_register, read_nodes
from ..shown import read as read_shown
from .record import Record  # noqa: F401  in comments

MYPY = False
if MYPY:
    from typing import Any, Sequence  # noqa: F401  in comments

    from ..shown import Shown  # noqa: F401  in comments


class Slurmctld(object):
    """The controller of the cluster, asked where the running daemons listen."""

    def __init__(self, module, record):
        # type: (Any, Record) -> None
        self.module = module
        self.record = record

    def run(self, argv, seconds=20, conf=True):
        # type: (Sequence[str], int, bool) -> tuple[int, str, str]
        """Run a command of Slurm with a time limit; return (exit status, output, error output)."""
        environ = {"LC_ALL": "C"}
        if conf and self.record.conf:
            # Ask where the running daemons listen, not where the new file says they will.
            environ["SLURM_CONF"] = self.record.conf
        status, out, err = self.module.run_command(["timeout", str(seconds)] + list(argv), environ_update=environ)
        return status, out, err

    def jobs(self, node=None, states=BUSY):
        # type: (str | None, str) -> int | None
        """Return how many jobs are in these states, on a node or in the cluster; None when slurmctld does not say."""
        argv = ["squeue", "--noheader", "--states", states, "--format", "%A"]
        if node:
            argv += ["--nodelist", node]
        status, out, _err = self.run(argv)
        return len(set(out.split())) if status == 0 else None

    def node(self, name):
        # type: (str) -> dict[str, str] | None
        """Return what slurmctld says of a node as {key: value}, {} for an unknown node, None without an answer."""
        status, out, err = self.run(["scontrol", "--oneliner", "show", "node", name])
        if status == 0 and "NodeName=" in out:
            return dict(re.findall(r"(\w+)=(\S+)", out))
        return {} if "not found" in out + err or "Invalid node name" in out + err else None

    def shown(self):
        # type: () -> Shown | None
        """Return the Shown of the running slurmctld, None when it does not answer."""
        answers = [self.run(["scontrol", "--all", "--oneliner", "show", what])
                   for what in ("config", "node", "partition")]
        if any(status != 0 for status, _out, _err in answers):
            return None
        return read_shown(*[out for _status, out, _err in answers])

    def unregistered(self, name):
        # type: (str) -> list[str]
        """Return why a node's slurmd has to register again, as lines: by a restart, there is no other way."""
        status, out, _err = self.run(["scontrol", "--oneliner", "show", "node", name])
        node = read_nodes(out).get(name) if status == 0 else None
        if not node or not has_to_register(node):
            return []
        return ["slurmctld has %s %s (%s) and asks it no more: slurmd registers again when it starts" % (
            name, node["state"], node["reason"])]
