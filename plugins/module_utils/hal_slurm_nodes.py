# -*- coding: utf-8 -*-
"""What slurmctld says of nodes, read. Runs on nodes: Python 2.7 and 3.6 and later, standard library only."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

# In these a node takes no new job, or none at all.
AWAY = frozenset(("DRAIN", "DRAINED", "DRAINING", "DOWN", "FAIL", "FAILING", "NOT_RESPONDING", "UNKNOWN", "INVAL",
                  "INVALID_REG", "REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED", "POWERED_DOWN", "POWERING_DOWN",
                  "POWER_DOWN", "POWERING_UP", "FUTURE"))
SILENT = frozenset(("NOT_RESPONDING", "UNKNOWN", "INVAL", "INVALID_REG", "REBOOT", "REBOOT_ISSUED"))


def read_nodes(text):
    """Return {name: what is known} of the output of "scontrol --oneliner show node"."""
    return {node["name"]: node for node in (read_node(line) for line in text.splitlines()) if node}


def read_node(line):
    """Return a node of one line, None for a line that shows none."""
    name = re.match(r"NodeName=(\S+)", line)
    state = re.search(r" State=(\S+)", line)
    if not name or not state:
        return None
    # 22.05 says IDLE+DRAIN+NOT_RESPONDING, older releases write a "*" for a node that does not answer.
    word = state.group(1)
    flags = {part for part in re.split(r"[^A-Z_]+", word) if part}
    if "*" in word:
        flags.add("NOT_RESPONDING")
    why = re.search(r" Reason=(.*?) \[([^@\]]+)@([^\]]+)\]", line)
    started = re.search(r" SlurmdStartTime=(\S+)", line)
    after = re.search(r" NextState=(\S+)", line)
    partitions = re.search(r" Partitions=(\S+)", line)
    return {
        "name": name.group(1),
        "state": word,
        "usable": not flags & AWAY,
        "drained": bool([flag for flag in flags if flag.startswith("DRAIN")]),
        "down": "DOWN" in flags,
        "failing": bool(flags & {"FAIL", "FAILING"}),
        "answers": not flags & SILENT,
        "reason": why.group(1).strip() if why else "",
        "by": why.group(2) if why else "",
        "slurmd_start": started.group(1) if started else "",
        "partitions": partitions.group(1).split(",") if partitions else [],
        "maintained": bool(flags & {"MAINT", "MAINTENANCE"}) or "$" in word,  # 20.02 and 22.05
        "reboot": _reboot(word, flags, why.group(1) if why else ""),
        "next_state": after.group(1) if after else "",
    }


def _reboot(word, flags, reason):
    """Return "asked" or "issued" for a node that "scontrol reboot" was said of, "" for another.

    22.05 has a flag for each (slurm_protocol_defs.c, node_state_flags). 20.02 has one for both, shown as REBOOT or as a
    "@" behind the state, and adds words to the reason when the node was told to (controller.c, _queue_reboot_msg).
    """
    if "REBOOT_ISSUED" in flags or "^" in word:
        return "issued"
    if "REBOOT_REQUESTED" in flags:
        return "asked"
    if "REBOOT" in flags or "@" in word:
        return "issued" if "reboot issued" in reason else "asked"
    return ""


def read_jobs(text):
    """Return the jobs of the output of "squeue --format %A|%u|%e"."""
    rows = [line.strip().split("|") for line in text.splitlines() if line.count("|") == 2]
    return [{"id": row[0], "user": row[1], "end": row[2]} for row in rows]


def too_few(nodes, wanted, keep):
    """Return why these nodes may not be drained now, or "": so many others have to stay usable."""
    left = [name for name, node in nodes.items() if node["usable"] and name not in wanted]
    taken = [name for name in wanted if name in nodes and nodes[name]["usable"]]
    if taken and len(left) < keep:
        return "%d nodes would be left for jobs, at least %d have to stay; %d of %d are away already" % (
            len(left), keep, len(nodes) - len(left) - len(taken), len(nodes))
    return ""
