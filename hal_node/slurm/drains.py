# -*- coding: utf-8 -*-
"""Drains: how many nodes may be away, whose a drain is, what its reason says. Pure.

Runs at the controller and on nodes: Python 2.7 and 3.6 and later, standard library only.

What drains here begins the reason with a word of its own, and does not touch a drain that begins otherwise. What takes
nodes away for work that can wait leaves a floor in each partition (too_few). A health check has no floor, since what is
broken serves nobody; it has a share (node_health_share of role node_health).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections
import re

MYPY = False
if MYPY:
    from typing import Any, Collection, Mapping  # noqa: F401  in comments

HEALTH, REBOOT, REIMAGE = "health", "hal-reboot", "hal-reimage"
LONGEST = 240  # characters of a reason; sinfo -R shows 20 unless it is asked for more
# A job in one of these is on its nodes.
BUSY = "RUNNING,SUSPENDED,COMPLETING,CONFIGURING,STOPPED"


def reason_line(words):
    # type: (str) -> str
    """Return a reason as Slurm keeps it: one line of ASCII without what scontrol gives a meaning to."""
    text = words.replace("[", "(").replace("]", ")")
    text = "".join(character if 32 <= ord(character) < 127 else " " for character in text if character not in "\"'\\")
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[:LONGEST - 3] + "..."


def away(node):
    # type: (Mapping[str, Any]) -> bool
    """Whether somebody keeps new jobs off a node of read_nodes: by DRAIN, or by FAIL, which does the same."""
    return bool(node["drained"] or node["failing"])


def is_by(node, who):
    # type: (Mapping[str, Any], str) -> bool
    """Whether a node of read_nodes is away by HEALTH, REBOOT or REIMAGE, as the reason says."""
    return away(node) and bool(node["reason"].startswith(who + ": "))


def floors_of(nodes, floors, site=None):
    # type: (Mapping[str, Mapping[str, Any]], Mapping[str, int], int | None) -> dict[str, tuple[int, int]]
    """Return {partition: (how many nodes it keeps for jobs, how many it has)} of all partitions that have nodes.

    nodes   those of read_nodes
    floors  how many nodes a partition keeps; one that is not named keeps half of its nodes, rounded down
    site    how many nodes of all stay: no partition that is not named keeps more. None where nobody asks for that
    """
    sizes = collections.Counter(partition for node in nodes.values() for partition in node["partitions"])
    most = {name: size // 2 if site is None else min(size // 2, site) for name, size in sizes.items()}
    return collections.OrderedDict((name, (floors.get(name, most[name]), sizes[name])) for name in sorted(sizes))


def too_few(names, nodes, floors, proving=(), site=None):
    # type: (Collection[str], Mapping[str, Mapping[str, Any]], Mapping[str, int], Collection[str], int | None) -> str
    """Return why these nodes may not be taken away now, or "": each partition, and the site, keep enough for jobs.

    A node that is in a reservation for maintenance, or of `proving`, on which a test job runs, serves no user's job.
    One that serves nobody may always be taken. The other arguments are those of floors_of.
    """
    serving = {name for name, node in nodes.items()
               if node["usable"] and not node["maintained"] and name not in proving}
    taken, left = serving & set(names), serving - set(names)
    if taken and site is not None and len(left) < site:
        return "%d nodes would be left for jobs, at least %d have to stay; %d of %d are away already" % (
            len(left), site, len(nodes) - len(serving), len(nodes))
    keep = floors_of(nodes, floors, site)
    for partition in [partition for name in sorted(taken) for partition in nodes[name]["partitions"]]:
        stay, floor = [name for name in left if partition in nodes[name]["partitions"]], keep[partition][0]
        if len(stay) < floor:
            return "%s would have %s for jobs, at least %d %s to stay" % (
                partition, counted(len(stay)), floor, "has" if floor == 1 else "have")
    return ""


def proving(reservations):
    # type: (str) -> set[str]
    """Return the nodes on which a reimage's test job runs, of "scontrol --oneliner show reservation"."""
    return set(re.findall(r"(?m)^ReservationName=%s-(\S+)" % REIMAGE, reservations))


def counted(number):
    # type: (int) -> str
    """Return a number of nodes in words."""
    return "1 node" if number == 1 else "%d nodes" % number
