# -*- coding: utf-8 -*-
"""What Slurm is told of a node's health: drain it with the reason in words, give it back. Python 2.7 and 3.

Only a drain of our own is ever ended, and we know it by its reason, word for word: whoever writes another one takes the
node over. A drain for hardware stays until an administrator has seen it.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import re

from ansible.module_utils.hal_expect_process import run
from ansible.module_utils.hal_expect_values import Unreadable
from ansible.module_utils.hal_lock import locked
from ansible.module_utils.hal_slurm_nodes import read_nodes

__metaclass__ = type

PREFIX = "health: "
LONGEST = 240  # characters of a reason; sinfo -R shows 20 unless it is asked for more
SECONDS = 8  # for slurmctld to answer; slurmd kills the whole check after 60
SPARE = "/run/hal-node-health.json"  # in memory: remembers a drain while a full disk cannot, as long as the node is up
LOCK = "/run/hal-node-health.lock"  # in memory, too: a prolog and the regular check may meet on a full disk


class SlurmError(Exception):
    """slurmctld could not be asked, or refused."""


def reason_of(failing):
    """Return the reason of a drain: the words of all that fails first, then the details of each.

    One line of ASCII without what Slurm gives a meaning to: the reason is known again word for word.
    """
    failed = {one["role"] for one in failing if one["status"] == "fail"}
    # What could not be read of a role of which something failed has mostly the same cause.
    told = [one["words"] for one in failing if one["status"] == "fail"]
    told += [one["words"] + "?" for one in failing if one["status"] != "fail" and one["role"] not in failed]
    words = "; ".join(_unique(told))
    failing = sorted(failing, key=lambda one: one["status"] != "fail")
    details = ", ".join("%s: %s" % (one["id"], one["reason"]) for one in failing)
    text = "%s%s (%s)" % (PREFIX, words, details)
    text = text.replace("[", "(").replace("]", ")")
    text = "".join(character if 32 <= ord(character) < 127 else " " for character in text if character not in "\"'\\")
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[:LONGEST - 3] + "..."


def _unique(words):
    seen = []
    for word in words:
        if word not in seen:
            seen.append(word)
    return seen


def decide(node, failing, complete, remembered):
    """Return (what to do, why): drain, update, resume or nothing.

    node        what Slurm says of it (hal_slurm_nodes), None when it does not know it
    failing     results that did not pass
    complete    whether all checks ran: a part of them gives no node back
    remembered  {reason, before, hardware} of our last drain, {} when there is none; before is the reason that an update
                replaces, which may not have reached Slurm
    """
    if node is None:
        return "nothing", "Slurm does not know this node"
    ours = is_ours(node, remembered)
    if failing:
        if ours:
            # A part of the checks knows less than the reason says, unless it is the first to see broken hardware.
            worse = hardware_in(failing) and not remembered["hardware"]
            same = reason_of(failing) == node["reason"] if complete else not worse
            return ("nothing", "is drained already") if same else ("update", "fails otherwise than before")
        if node["drained"] or node["failing"] or (node["down"] and node["reason"] and node["by"] != "slurm"):
            return "nothing", "%s has taken it out: %s" % (node["by"] or "somebody", node["reason"] or "(no reason)")
        return "drain", ""
    if not ours or not complete:
        return "nothing", ""
    if remembered["hardware"]:
        return "nothing", "healthy again, and stays drained for an administrator to look at the hardware"
    if "COMPLETING" in node["state"]:  # whose the processes on its GPUs are is not known now: Slurm.gres_used
        return "nothing", "healthy as far as can be seen while a job ends there"
    return "resume", "healthy again"


def is_ours(node, remembered):
    """Whether a node is drained, and by us."""
    return bool(remembered) and node["drained"] and node["reason"] in (remembered["reason"], remembered["before"])


def hardware_in(failing):
    """Whether hardware is broken. What could not be read may be anything."""
    return any(one["hardware"] and one["status"] == "fail" for one in failing)


class Slurm:
    """The node as slurmctld has it. `name` is its NodeName, `state` the file that remembers our drain.

    Made before the checks run: what another check has Slurm do meanwhile is newer than what these find.
    """

    def __init__(self, name, state):
        self.name = name
        self.state = state
        self._began_with = self._version()

    def settle(self, results, complete):
        """Carry out what follows from the results; return a sentence, "" for nothing to say. Raises SlurmError."""
        failing = [one for one in results if one["status"] != "pass"]
        with locked(LOCK, SlurmError, SECONDS, "what Slurm is told of this node"):
            remembered = self._remembered()
            node = read_nodes(self._scontrol(["--oneliner", "show", "node", self.name])).get(self.name)
            action, why = decide(node, failing, complete, remembered)
            # What is broken is never too old to be told: who asks after a job is the only one to ask that.
            adds = hardware_in(failing) and not remembered.get("hardware")
            if action in ("update", "resume") and not adds and self._version() != self._began_with:
                return "another check has told Slurm since this one began; the next one looks again"
            if action in ("drain", "update"):
                reason, before = reason_of(failing), node["reason"] if action == "update" else ""
                hardware = hardware_in(failing) or (action == "update" and remembered["hardware"])
                # Before Slurm has it: a drain that we do not know of would never be ended.
                forgotten = self._remember({"reason": reason, "before": before, "hardware": hardware})
                self._scontrol(["update", "NodeName=%s" % self.name, "State=DRAIN", "Reason=%s" % reason])
                return "drained: %s%s" % (reason, forgotten and " (it will not end by itself: %s)" % forgotten)
            if action == "resume":
                # Not RESUME, which also ends what others did: DOWN, FAIL, a reboot that waits.
                self._scontrol(["update", "NodeName=%s" % self.name, "State=UNDRAIN"])
                self._remember({})
                return "given back: %s" % node["reason"]
            if remembered and node is not None and not node["drained"]:
                self._remember({})  # an administrator gave it back
            return why

    def gres_used(self):
        """Return what jobs have of the node's GPUs, as gpu:v100:3(IDX:0,2-3); None while one ends. Raises SlurmError.

        Slurm takes the GPUs from a job before it tells its processes to end, and they have KillWait for that: source,
        deallocate_nodes() of slurmctld. The node is COMPLETING until they and the epilog have ended.
        """
        line = self._scontrol(["--oneliner", "--details", "show", "node", self.name])
        if re.search(r" State=\S*COMPLETING", line):
            return None
        used = re.search(r" GresUsed=(\S*)", line)
        return used.group(1) if used else ""

    def _scontrol(self, arguments):
        try:
            status, out, err = run(["scontrol"] + arguments, timeout_seconds=SECONDS)
        except Unreadable as error:
            raise SlurmError(error.reason)
        if status != 0:
            said = " ".join((err or out).split()) or "exit status %d" % status
            raise SlurmError("scontrol %s: %s" % (arguments[0], said))
        return out

    def _version(self):
        """Return what tells one writing of the state from another; the clock may be wrong, so not when it was."""
        return [_stamp(path) for path in (self.state, SPARE)]

    def _remembered(self):
        known = _read(SPARE)
        known = _read(self.state) if known is None else known
        return known if isinstance(known, dict) and set(known) == {"reason", "before", "hardware"} else {}

    def _remember(self, known):
        """Keep what we did; return why not, "" when it is kept. A full disk must not keep a node from being drained.

        Nor may it keep the node drained, or who fills a disk would take it out for good: the spare file remembers.
        """
        failed = _write(self.state, known)
        if failed:
            return _write(SPARE, known) and failed
        _forget(SPARE)
        return ""


def _read(path):
    """Return what a file remembers, None when it remembers nothing."""
    try:
        with open(path) as stream:
            return json.load(stream)
    except (IOError, OSError, ValueError):
        return None


def _write(path, known):
    """Return why it could not be written, "" when it is."""
    try:
        with open(path + ".new", "w") as stream:
            json.dump(known, stream, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(path + ".new", path)
    except (IOError, OSError) as error:
        return "%s: %s" % (path, error.strerror)
    return ""


def _forget(path):
    try:
        os.unlink(path)
    except OSError:
        pass


def _stamp(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime
