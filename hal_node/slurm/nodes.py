# -*- coding: utf-8 -*-
"""What slurmctld says of nodes, read. Runs on nodes: Python 2.7 and 3.6 and later, standard library only."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

# In these a node takes no new job, or none at all.
AWAY = frozenset(("DRAIN", "DRAINED", "DRAINING", "DOWN", "FAIL", "FAILING", "NOT_RESPONDING", "UNKNOWN", "INVAL",
                  "INVALID_REG", "REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED", "POWERED_DOWN", "POWERING_DOWN",
                  "POWER_DOWN", "POWERING_UP", "FUTURE"))
# slurmctld's own reason for a node that did not answer for SlurmdTimeout (slurmctld/ping_nodes.c, node_mgr.c).
NOT_RESPONDING = "Not responding"
# How a node stands: it takes jobs; somebody keeps it from them; slurmctld set it DOWN for silence; slurmctld has not
# heard of it yet; something is missing that no rollout does.
SERVES, KEPT, SILENCED, UNHEARD, LACKS = "serves", "kept", "silenced", "unheard", "lacks"
SILENT = frozenset(("NOT_RESPONDING", "UNKNOWN", "INVAL", "INVALID_REG", "REBOOT", "REBOOT_ISSUED"))


def read_nodes(text):
    # type: (str) -> dict[str, dict[str, Any]]
    """Return {name: what is known} of the output of "scontrol --oneliner show node"."""
    return {node["name"]: node for node in (read_node(line) for line in text.splitlines()) if node}


def read_node(line):
    # type: (str) -> dict[str, Any] | None
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
        "since": why.group(3) if why else "",
        "slurmd_start": started.group(1) if started else "",
        "partitions": partitions.group(1).split(",") if partitions else [],
        "maintained": bool(flags & {"MAINT", "MAINTENANCE"}) or "$" in word,  # 20.02 and 22.05
        "reboot": _reboot(word, flags, why.group(1) if why else ""),
        "next_state": after.group(1) if after else "",
    }


def _reboot(word, flags, reason):
    # type: (str, set[str], str) -> str
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


def standing(node, slurm_user):
    # type: (dict[str, Any], str) -> str
    """Return how a node of read_node stands: serves, kept, silenced, unheard or lacks.

    slurm_user: SlurmUser, who is behind the reasons that slurmctld itself gives. A node is silenced only by exactly
    slurmctld's own words, without a drain: an administrator's DOWN, a drain and a reboot by Slurm are not ours to end.
    FAIL is a drain that no registration ends.
    """
    if node["usable"]:
        return SERVES
    if node["reboot"]:
        return KEPT
    if "INVAL" in node["state"]:
        return LACKS
    if node["drained"] or node["failing"]:
        return KEPT if node["answers"] else UNHEARD
    if node["down"]:
        silenced = node["reason"] == NOT_RESPONDING and node["by"] == slurm_user
        return SILENCED if silenced else LACKS
    return UNHEARD if not node["answers"] else KEPT


def has_to_register(node):
    # type: (dict[str, Any]) -> bool
    """Whether slurmctld waits for a node's slurmd to register.

    slurmctld does not ping a node that is DOWN and silent (ping_nodes.c, ping_nodes). It asks it to register once in
    many pings, which may be half an hour. A slurmd that starts registers at once.
    """
    seen_through = node["reason"] == NOT_RESPONDING or node["drained"] or node["failing"]
    return bool(node["down"] and not node["answers"] and not node["reboot"] and seen_through)


def missing(node, slurm_user):
    # type: (dict[str, Any], str) -> str
    """Return one line: how a node stands that takes no jobs, by whom, and what is to be done."""
    line = "%s is %s: %s" % (node["name"], node["state"], node["reason"] or "no reason given")
    if node["by"]:
        line += " [%s@%s]" % (node["by"], node["since"])
    how = standing(node, slurm_user)
    resume = "scontrol update NodeName=%s State=RESUME" % node["name"]
    if how in (SILENCED, UNHEARD):
        line += "; slurmctld does not hear of its slurmd: look at slurmd, munge, the clock and the firewall there"
        return line + (", then repeat, or %s" % resume if how == SILENCED else ", then repeat")
    if "INVAL" in node["state"]:
        return line + "; it registered with less than its line in slurm.conf says: mend it, then restart slurmd there"
    return line + "; resume it when that is settled: %s" % resume


def read_jobs(text):
    # type: (str) -> list[dict[str, str]]
    """Return the jobs of the output of "squeue --format %A|%u|%e"."""
    rows = [line.strip().split("|") for line in text.splitlines() if line.count("|") == 2]
    return [{"id": row[0], "user": row[1], "end": row[2]} for row in rows]
