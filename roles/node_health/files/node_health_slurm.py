# -*- coding: utf-8 -*-
"""What Slurm is told of a node's health: drain it with the reason in words, give it back. Python 2.7 and 3.

Only a drain of our own is ever ended, and we know it by its reason, word for word: whoever writes another one takes the
node over. A reason is made of causes, which are remembered with it. They add up: the first stays the first, a
cause that is over goes, and hardware stays until an administrator has seen it. So what is shown is what decides.

Hardware for which the node could not be drained, since so many are out or slurmctld did not answer, is remembered, too:
an epilog sees what no later check asks.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import re
import time

from hal_node.expect.process import run
from hal_node.expect.values import Unreadable
from hal_node.lock import locked
from hal_node.slurm.drains import HEALTH, away, reason_line
from hal_node.slurm.nodes import read_nodes

from node_health_doubt import counts
from node_health_share import used_up

__metaclass__ = type

PREFIX = HEALTH + ": "
WORDS = 160  # characters of a reason for the words of the causes, which come before the details
SECONDS = 5  # for slurmctld to answer, up to four times; slurmd kills the whole check after 60
CAUSE = {"words", "role", "id", "reason", "seen", "hardware"}
HELD = ".held"  # behind the name of the state or of the spare file: broken hardware with which the node had to stay
SPARE = "/run/hal-node-health.json"  # in memory: remembers a drain while a full disk cannot, as long as the node is up
LOCK = "/run/hal-node-health.lock"  # in memory, too: a prolog and the regular check may meet on a full disk


class SlurmError(Exception):
    """slurmctld could not be asked, or refused."""


class Held(SlurmError):
    """So many nodes are out for their health that this one has to stay, or how many is not known."""


class Observed(Held):
    """The node is only observed; `reason` is the one that its drain would have had."""

    def __init__(self, message, reason):
        Held.__init__(self, message)
        self.reason = reason


def causes_after(causes, results, complete):
    """Return what keeps a node out after a check, first what kept it out before.

    What could not be read ends nothing, and neither does a part of the checks. What a complete check asks no more ends.
    """
    by_check = {(result["role"], result["id"]): result for result in results}
    kept = []
    for cause in causes:
        now = by_check.get((cause["role"], cause["id"]))
        if not cause["hardware"] and now is not None and counts(now):
            kept.append(_cause(now))  # as it is now
        elif cause["hardware"] or not complete or (now is not None and now["status"] != "pass"):
            kept.append(cause)
    known = {(cause["role"], cause["id"]) for cause in kept}
    new = [_cause(result) for result in results if counts(result) and (result["role"], result["id"]) not in known]
    return kept + sorted(new, key=lambda cause: not cause["seen"])


def _cause(result):
    """Return what is remembered of a result. What could not be read is not seen, and may be anything."""
    seen = result["status"] == "fail"
    cause = {key: result[key] for key in ("words", "role", "id", "reason")}
    cause.update(seen=seen, hardware=bool(seen and result["hardware"]))
    return cause


def with_held(results, held):
    """Return results, and what held causes add to them: those that nobody asked, or that could not be read now."""
    status = {(result["role"], result["id"]): result["status"] for result in results}
    still = [cause for cause in held if status.get((cause["role"], cause["id"]), "unknown") == "unknown"]
    again = {(cause["role"], cause["id"]) for cause in still}
    return [result for result in results if (result["role"], result["id"]) not in again] + [
        dict(cause, status="fail") for cause in still]


def reason_of(causes):
    """Return the reason of a drain: the words of all causes first, then the details of each.

    It is a line as Slurm keeps it: the reason is known again word for word.
    """
    details = ", ".join("%s: %s" % (cause["id"], cause["reason"]) for cause in causes)
    return reason_line("%s%s (%s)" % (PREFIX, _words(causes), details))


def _words(causes):
    """Return the words of the causes, each once. Where they are too many, those for hardware are shown."""
    seen = {cause["role"] for cause in causes if cause["seen"]}
    # What could not be read of a role of which something failed has mostly the same cause.
    told = _unique([(cause["words"] + ("" if cause["seen"] else "?"), cause["hardware"])
                    for cause in causes if cause["seen"] or cause["role"] not in seen])
    left = 0
    while len(told) > 1 and len("; ".join(words for words, _ in told)) > WORDS:
        told.pop(max(range(1, len(told)), key=lambda place: (not told[place][1], place)))
        left += 1
    return "; ".join([words for words, _ in told] + ["and %d more" % left] * bool(left))


def _unique(words):
    seen = []
    for word in words:
        if word not in seen:
            seen.append(word)
    return seen


def decide(node, results, complete, remembered):
    """Return (what to do, why, causes): drain, update, resume or nothing; and what keeps the node out then.

    node        what Slurm says of it (hal_node.slurm.nodes), None when it does not know it
    results     of the checks; which of them count is node_health_doubt's
    complete    whether all checks ran: a part of them gives no node back
    remembered  {reason, causes, before} of our last drain, {} when there is none; before is the {reason, causes} that
                an update replaces, which may not have reached Slurm
    """
    if node is None:
        return "nothing", "Slurm does not know this node", []
    ours = is_ours(node, remembered)
    causes = causes_after(_shown(node, remembered) if ours else [], results, complete)
    if not ours:
        if not causes:
            return "nothing", "", []
        if away(node) or (node["down"] and node["reason"] and node["by"] != "slurm"):
            why = "%s has taken it out: %s" % (node["by"] or "somebody", node["reason"] or "(no reason)")
            return "nothing", why, []
        return "drain", "", causes
    if not causes:
        if "COMPLETING" in node["state"]:  # whose the processes on its GPUs are is not known now: Slurm.gres_used
            return "nothing", "healthy as far as can be seen while a job ends there", []
        return "resume", "healthy again", []
    if reason_of(causes) != node["reason"] and _kinds(causes) != _kinds(_shown(node, remembered)):
        return "update", "fails for other reasons than before", causes
    if any(counts(result) for result in results):
        return "nothing", "is drained already", causes
    if complete and hardware_in(causes):
        return "nothing", "healthy again, and stays drained for an administrator to look at the hardware", causes
    return "nothing", "", causes


def is_ours(node, remembered):
    """Whether a node is drained, and by us."""
    return bool(remembered) and node["drained"] and node["reason"] in (
        remembered["reason"], remembered["before"].get("reason"))


def _shown(node, remembered):
    """Return the causes of the reason that Slurm shows."""
    known = remembered if node["reason"] == remembered["reason"] else remembered["before"]
    return known["causes"]


def _kinds(causes):
    """Return what makes a reason another one. A number that was measured does not: each update is a drain of now for
    the other nodes (node_health_share).
    """
    return {(cause["role"], cause["id"], cause["seen"], cause["hardware"]) for cause in causes}


def _new(causes, before):
    known = [(cause["role"], cause["id"], cause["hardware"]) for cause in before]
    return [cause for cause in causes if (cause["role"], cause["id"], cause["hardware"]) not in known]


def hardware_in(causes):
    """Whether hardware is broken. What could not be read may be anything."""
    return any(cause["hardware"] for cause in causes)


class Slurm:
    """The node as slurmctld has it. `name` is its NodeName, `state` the file that remembers our drain.

    Made before the checks run: what another check has Slurm do meanwhile is newer than what these find.
    most_percent, minutes: how many nodes of a partition may be out for their health, see node_health_share.
    observes: until when the node is only observed, in words, see node_health_observe.
    """

    def __init__(self, name, state, most_percent, minutes, observes=""):
        self.name = name
        self.observes = observes
        self.state = state
        self.share = (most_percent, minutes)
        self._began_with = self._version()

    def settle(self, results, complete):
        """Carry out what follows from the results; return a sentence, "" for nothing to say. Raises SlurmError."""
        with locked(LOCK, SlurmError, SECONDS, "what Slurm is told of this node"):
            remembered = self._remembered()
            if complete:
                results = self.with_held(results)
            # All nodes, if it may have to be drained.
            try:
                seen = self._nodes(any(counts(result) for result in results))
            except SlurmError:
                self._keep_broken([_cause(result) for result in results if counts(result)])
                raise
            node = read_nodes(seen).get(self.name)
            action, why, causes = decide(node, results, complete, remembered)
            if action in ("update", "resume") and self._version() != self._began_with:
                # What is broken is never too old to be told: who asks after a job is the only one to ask that.
                action, _, causes = decide(node, results, False, remembered)
                if action != "update" or not hardware_in(_new(causes, _shown(node, remembered))):
                    return "another check has told Slurm since this one began; the next one looks again"
            said = self._carry_out(action, seen, node, causes, remembered) or why
            if complete and node is not None:
                self._hold([])  # the drain has it, an administrator has taken the node out, or it is over
            return said

    def with_held(self, results):
        """Return results of a complete check with what an earlier one found broken and did not drain for."""
        return with_held(results, self._held())

    def _carry_out(self, action, seen, node, causes, remembered):
        if action == "drain":
            try:
                return self._drain(seen, causes)
            except Held:
                self._keep_broken(causes)
                raise
        if action == "update":
            return self._tell(causes, {"reason": node["reason"], "causes": _shown(node, remembered)})
        if action == "resume":
            self._give_back()
            return "given back: %s" % node["reason"]
        if remembered and node is not None and not node["drained"]:
            self._remember({})  # an administrator gave it back
        return ""

    def _keep_broken(self, causes):
        """Remember what hardware is broken, for which the node could not be drained. It drains nothing later where the
        node is only observed.
        """
        if not self.observes:
            self._hold(self._held() + _new([cause for cause in causes if cause["hardware"]], self._held()))

    def _drain(self, seen, causes):
        """Drain the node unless so many others are out; again afterwards, since they may ask at the same moment."""
        if self.observes:
            raise Observed("not drained for %s: %s" % (_words(causes), self.observes), reason_of(causes))
        full = self._used_up(seen)
        if full:
            raise Held("not drained for %s: %s" % (_words(causes), full))
        said = self._tell(causes, {})
        try:
            seen = self._nodes(True)
        except SlurmError:  # it is drained, and slurmctld cannot be told otherwise
            return said
        node = read_nodes(seen).get(self.name)
        # Meanwhile an administrator may have taken it over.
        full = self._used_up(seen) if node and node["drained"] and node["reason"] == reason_of(causes) else ""
        if full:
            self._give_back()
            raise Held("given back, though %s: %s" % (_words(causes), full))
        return said

    def _used_up(self, seen):
        return used_up(seen, self.name, PREFIX, self.share[0], self.share[1], time.time())

    def _nodes(self, everyone):
        return self._scontrol(["--oneliner", "show", "node"] + ([] if everyone else [self.name]))

    def _tell(self, causes, before):
        reason = reason_of(causes)
        # Before Slurm has it: a drain that we do not know of would never be ended.
        forgotten = self._remember({"reason": reason, "causes": causes, "before": before,
                                    "hardware": hardware_in(causes)})
        self._scontrol(["update", "NodeName=%s" % self.name, "State=DRAIN", "Reason=%s" % reason])
        return "drained: %s%s" % (reason, forgotten and " (it will not end by itself: %s)" % forgotten)

    def _give_back(self):
        # Not RESUME, which also ends what others did: DOWN, FAIL, a reboot that waits.
        self._scontrol(["update", "NodeName=%s" % self.name, "State=UNDRAIN"])
        self._remember({})

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
        return known if isinstance(known, dict) and set(known) == {"reason", "causes", "before", "hardware"} else {}

    def _remember(self, known):
        """Keep what we did; return why not, "" when it is kept. A full disk must not keep a node from being drained.

        Nor may it keep the node drained, or who fills a disk would take it out for good: the spare file remembers.
        """
        return _keep(self.state, SPARE, known)

    def _held(self):
        """Return the causes with which the node had to stay."""
        known = _read(SPARE + HELD)
        known = _read(self.state + HELD) if known is None else known
        causes = known if isinstance(known, list) else []
        return [cause for cause in causes if isinstance(cause, dict) and set(cause) == CAUSE]

    def _hold(self, causes):
        if causes != self._held():
            _keep(self.state + HELD, SPARE + HELD, causes)


def _keep(path, spare, known):
    failed = _write(path, known)
    if failed:
        return _write(spare, known) and failed
    _forget(spare)
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
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime
