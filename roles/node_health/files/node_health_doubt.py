# -*- coding: utf-8 -*-
"""What does not take a node out yet: a check without an answer, and what a slow node shows. Python 2.7 and 3.

On a busy machine 24 healthy nodes were drained because a program took longer than its 10 s. A missing answer says
nothing. It takes a node out if the next run, which waits longer, has no answer either, the node has processors to
spare, and no other witness finds it well. What fails at once, on a node that is not slow, needs none of that.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import syslog

import node_health_witness

__metaclass__ = type

DOUBTS = "/run/hal-node-health-doubts.json"  # since the node was booted
LOOKS = 2  # runs in a row that have to find the same
LONG = 3  # runs in a row after which an administrator is told that nothing is known
UNFINISHED = "the check did not finish in 3 runs or more (slurmd ends it after 60 s): nothing is known of this node"
ONCE_MORE = "the next check looks once more"


def key(result):
    """Return what tells one check from all others."""
    return "%s: %s" % (result["role"], result["id"])


def judge(results, times, witnesses):
    """Give each result that takes no node out a `doubt`, in words. Return ({key: runs in a row}, lines for the alarm).

    times      {key: runs in a row} of the runs before, which had the same doubts
    witnesses  {role: who is asked when a check of the role has no answer}: see node_health_witness
    """
    now, alarms = {}, []
    for result in results:
        if result["status"] == "pass" or (
                result["status"] == "fail" and (result["hardware"] or not result.get("slow"))):
            continue
        seen = now[key(result)] = times.get(key(result), 0) + 1
        doubt = ONCE_MORE if seen < LOOKS else _doubt(result, witnesses.get(result["role"], {}))
        if doubt:
            result["doubt"] = doubt
            if seen >= LONG:
                alarms.append("%s? (%s: %s), in %d runs or more; %s" % (
                    result["words"], result["id"], result["reason"], LONG, doubt))
    return now, alarms


def _doubt(result, witnesses):
    """Return what speaks for a check that has failed to answer once more, "" for nothing."""
    if result["status"] == "fail" or result.get("hangs"):
        return ""
    if result.get("slow"):
        return "the node is slow, so a missing answer proves nothing"
    verdict, words = node_health_witness.ask(witnesses)
    if verdict == node_health_witness.WELL:
        return words
    if words:
        result["reason"] += "; " + words
    return ""


def counts(result):
    """Whether a result keeps a node from jobs."""
    return result["status"] != "pass" and not result.get("doubt")


class Runs:
    """What is known of the runs of the regular check. One that slurmd ended had no answer either."""

    def __init__(self):
        known = _read()
        self.times = known.get("times", {})
        self._late = known.get("late", 0) + 1 if known.get("runs") else 0  # runs in a row that came to no end
        self._write({"times": self.times, "late": self._late, "runs": True})

    def unfinished(self):
        """Return lines for the alarm, before this run may be ended as well."""
        return [UNFINISHED] if self._late >= LONG else []

    def end(self, times, results):
        """Keep the doubts of this run, and say them in the system's log."""
        syslog.openlog("hal-node-health", 0, syslog.LOG_DAEMON)
        for result in results:
            if result.get("doubt"):
                words = "%s? (%s: %s); %s" % (result["words"], result["id"], result["reason"], result["doubt"])
                syslog.syslog(syslog.LOG_WARNING, words.encode("ascii", "replace").decode("ascii"))
        self._write({"times": times, "late": 0, "runs": False})

    @staticmethod
    def _write(known):
        try:
            with open(DOUBTS + ".new", "w") as stream:
                json.dump(known, stream, sort_keys=True)
            os.rename(DOUBTS + ".new", DOUBTS)
        except (IOError, OSError):
            pass  # then no doubt is remembered, and none takes a node out


def _read():
    try:
        with open(DOUBTS) as stream:
            known = json.load(stream)
    except (IOError, OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
