# -*- coding: utf-8 -*-
"""How many nodes of a partition the health check may take out. Python 2.7 and 3.

What many nodes share (a file system, time servers, a rollout, a machine that is busy) fails on all of them at once.
Taking all of them out helps nobody; slurmctld knows how many are out, and is asked by each node before its own drain.
"""

from __future__ import absolute_import, division, print_function

import re
import time

from hal_node.slurm.nodes import read_node

__metaclass__ = type


def used_up(text, name, prefix, percent, minutes, now):
    """Return why a node may not be taken out, or not stay out, "" when it may. What is not known does not permit it.

    text      of "scontrol --oneliner show node": all nodes
    name      the node's
    prefix    of reasons of the health check
    percent   of each of its partitions that may be out; always one node
    minutes   since when others count: whoever was taken out before that, and is out, has been seen
    now       by this node's clock. Far from slurmctld's munge would refuse to ask (munged(8), --ttl: 300 s)

    Others that were drained in the same second, or before it, count for a node that is out already: of those that drain
    at once the last sees all. So there may be fewer than permitted, but never more.
    """
    nodes = {node["name"]: dict(node, since=_since(line, prefix) if node["drained"] else None)
             for line, node in ((line, read_node(line)) for line in text.splitlines()) if node}
    mine = nodes.get(name) or {"partitions": [], "since": None}
    if not mine["partitions"]:
        return "slurmctld names no partition of this node, so how many are out is not known"
    for partition in mine["partitions"]:
        members = [node for node in nodes.values() if partition in node["partitions"]]
        most = max(1, len(members) * percent // 100)
        out = [node["name"] for node in members if node["name"] != name and node["since"] is not None
               and node["since"] >= now - 60 * minutes and (mine["since"] is None or node["since"] <= mine["since"])]
        if len(out) >= most:
            return "%d of %d nodes of partition %s went out for their health in the last %d minutes (%s)" % (
                len(out), len(members), partition, minutes, _listed(out))
    return ""


def _listed(names):
    names = sorted(names)
    return ", ".join(names[:8]) + (" and %d more" % (len(names) - 8) if len(names) > 8 else "")


def _since(line, prefix):
    """Return when a node got a reason of ours (time.time), None when it has none. A time that cannot be read is now."""
    match = re.search(r" Reason=(.*?) \[[^@\]]+@([^\]]+)\]", line)
    if not match or not match.group(1).startswith(prefix):
        return None
    try:
        return time.mktime(time.strptime(match.group(2), "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return time.time()
