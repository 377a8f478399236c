# -*- coding: utf-8 -*-
"""Records of reimages: where each node is, written by the controller, one revision after the other. Python 2.7 and 3.

NODE.json     what was confirmed, at which step the node is, how it ended. No secret is in it
.lock-NODE    held while a record is read, compared and written
.driven-NODE  empty; its time is the last sign of life of what drives the node
"""

from __future__ import absolute_import, division, print_function

import contextlib
import errno
import numbers
import os
import re
import time

import provision_trail as trail
from provision_common import NAME, TEXT, Problem, alone, checked_name, opened, read_json, stamp, text, write_json

FORMAT = 1
STEPS = ("waiting", "identity", "drain", "off", "arm", "boot", "install", "start", "converge", "gates", "job", "return")
STATES = ("going", "done", "failed", "aborted")
# Where somebody waits for Slurm to reboot a node: that is the beginning of its reimage. Before that it is a reboot.
BEFORE_OFF = ("drain", "off")
MOST_BYTES = 256 * 1024
ENDING = ".json"
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")


class Conflict(Problem):
    """Somebody else has written the record since it was read."""

    status = 3


def path_of(place, name):
    """Return the file of a node's record."""
    return os.path.join(place.records, checked_name(name) + ENDING)


def names(place):
    """Return the nodes that have a record, in or out of the model."""
    try:
        files = os.listdir(place.records)
    except OSError as error:
        raise Problem("%s: cannot be read: %s" % (place.records, error.strerror))
    listed = [file[:-len(ENDING)] for file in files if file.endswith(ENDING)]
    return sorted(name for name in listed if NAME.match(name))


def read(place, name):
    """Return a node's record, None without one; Problem names one that is damaged."""
    path = path_of(place, name)
    record = read_json(path)
    if record is not None:
        wrong = problem_of(name, record)
        if wrong:
            raise Problem("%s: is damaged: %s" % (path, wrong))
    return record


def read_all(place, wanted=()):
    """Return ({name: record}, {name: what is wrong with it}) of these nodes, or of all that have a record."""
    records, wrong = {}, {}
    for name in wanted or names(place):
        try:
            record = read(place, name)
            if record is not None:
                records[name] = record
        except Problem as problem:
            if not NAME.match(name):
                raise
            wrong[name] = text(problem)
    return records, wrong


def driven(place, wanted):
    """Mark of each of these nodes that goes on that it is driven, by who does that."""
    wrong = []
    for name, record in sorted(read_all(place, wanted)[0].items()):
        if record["state"] == "going":
            path = _mark(place, name)
            try:
                os.close(opened(path, os.O_WRONLY))
                os.utime(path, None)
            except OSError as error:
                wrong.append("%s: cannot be written: %s" % (path, error.strerror))
    if wrong:
        raise Problem("\n".join(wrong))
    return ""


def looked(place, name):
    """Return when somebody drove a node last, in seconds; None without a record. A written record is a look, too."""
    times = []
    for path in (path_of(place, name), _mark(place, name)):
        try:
            times.append(os.stat(path).st_mtime)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise Problem("%s: cannot be read: %s" % (path, error.strerror))
            if not times:
                return None
    return max(times)


def write(place, name, record, now=None):
    """Write a record over the revision that it was made of, and return it with the next one.

    Conflict when the stored one is another; Problem when this is not a record, or the server has no such node.
    """
    now = time.time() if now is None else now
    place.node(name)
    wrong = problem_of(name, record)
    if wrong:
        raise Problem("%s: that is not a record of a reimage: %s" % (name, wrong))
    with alone(_lock(place, name), name):
        stored = read(place, name)
        revision = stored["revision"] if stored else 0
        if record["revision"] != revision:
            raise Conflict("%s: its record has revision %d, and this was made of %d: somebody else wrote it meanwhile"
                           % (name, revision, record["revision"]))
        said = _turning(stored, record)
        if said:
            trail.done(place, now, name, None, "reimage", said)  # first: nothing is done that leaves no trail
        return _put(place, name, dict(record, revision=revision + 1))


def abort(place, name, who, now=None):
    """Have a record say that its reimage was aborted, and return it: whoever drives it reads that, and stops."""
    now = time.time() if now is None else now
    with alone(_lock(place, name), name):
        stored = read(place, name)
        if stored is None or stored["state"] not in ("going", "failed"):
            raise NothingOn(name, stored)
        reason = u"aborted by %s at step %s" % (text(who), stored["step"])
        if stored["state"] == "failed":
            reason += u"; it had failed: %s" % stored["reason"]
        record = dict(stored, state="aborted", reason=reason, waiting="", ended=stamp(now))
        trail.done(place, now, name, None, "reimage", reason)
        return _put(place, name, dict(record, revision=stored["revision"] + 1))


@contextlib.contextmanager
def newest(place, name, revision):
    """Hold a node's record as long as the block lasts; Conflict unless it is the one that is about to arm the node.

    Whoever aborts is before this or after it: never does it find the node disarmed and armed a moment later.
    """
    with alone(_lock(place, name), name):
        stored = read(place, name)
        if stored is None or (stored["revision"], stored["state"], stored["step"]) != (revision, "going", "arm"):
            raise Conflict("%s: not armed: its reimage was aborted, or somebody else goes on with it" % name)
        yield


class NothingOn(Problem):
    """There is no reimage that could be aborted."""

    def __init__(self, name, record):
        if record is None:
            words = u"%s: no reimage of it is known" % name
        else:
            words = u"%s: its last reimage is over: %s at %s" % (name, record["state"], record["ended"])
        Problem.__init__(self, words)


def is_rebooted_to_install(place, name):
    """Return whether a reboot by Slurm is for a node's reimage, and for nothing else. Problem: that is not known."""
    record = read(place, name)
    return bool(record) and record["state"] == "going" and record["run"]["by_slurm"] and record["step"] in BEFORE_OFF


def images_in_use(place):
    """Return the images that reimages are to install which are not over; Problem when a record cannot be read."""
    records, wrong = read_all(place)
    if wrong:
        raise Problem(u"\n".join(wrong[name] for name in sorted(wrong)))
    return {record["plan"]["image"]["folder"] for record in records.values() if record["state"] in ("going", "failed")}


def _lock(place, name):
    return os.path.join(place.records, ".lock-" + checked_name(name))


def _mark(place, name):
    return os.path.join(place.records, ".driven-" + checked_name(name))


def _put(place, name, record):
    write_json(path_of(place, name), record, 0o640)
    return record


def _turning(stored, record):
    """Return in words what begins or ends with a record, "" when it goes on as before."""
    run = record["run"]
    same = bool(stored) and all(stored["run"].get(key) == run.get(key) for key in ("code", "began", "call"))
    if same and stored["state"] == record["state"]:
        return ""
    if record["state"] != "going":
        return u": ".join(part for part in (record["state"], record["reason"]) if part)
    if same:
        return u"goes on at step %s" % record["step"]
    return u"begins: %s, confirmed by %s" % (record["plan"]["image"]["folder"], run["by"])


# ---------------------------------------------------------------- what a record is
def _is_text(value):
    return isinstance(value, TEXT)


def _is_stamp(value):
    if not _is_text(value) or not _STAMP.match(value):  # strptime alone takes one digit for two
        return False
    try:
        time.strptime(value, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return False
    return True


def _is_stamp_or_empty(value):
    return value == u"" or _is_stamp(value)


def _is_count(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and value >= 0


def _is_seconds(value):
    # NaN is not a number that is 0 or more.
    return isinstance(value, dict) and all(
        step in STEPS and isinstance(spent, numbers.Real) and not isinstance(spent, bool) and 0 <= spent < 1e9
        for step, spent in value.items())


def _is_drained(value):
    return value is None or (isinstance(value, dict) and _is_text(value.get("reason")) and _is_text(value.get("by")))


def _is_texts(value):
    return isinstance(value, list) and all(_is_text(member) for member in value)


def _is_names(value):
    return _is_texts(value) and all(NAME.match(name) for name in value)


_TEXT, _STAMPS = (_is_text, "a text"), (_is_stamp_or_empty, "a time like 2026-11-22T18:05:10Z, or nothing")
_FIELDS = (
    ("revision", _is_count, "a number"),
    ("plan.serial",) + _TEXT, ("plan.disk",) + _TEXT, ("plan.fingerprint",) + _TEXT, ("plan.previous",) + _STAMPS,
    ("plan.wipe", _is_texts, "a list of texts"),
    ("plan.image.folder",) + _TEXT, ("plan.image.sha256",) + _TEXT, ("plan.image.arch",) + _TEXT,
    ("plan.image.kernel",) + _TEXT,
    ("run.code",) + _TEXT, ("run.by",) + _TEXT, ("run.began", _is_stamp, "a time like 2026-11-22T18:05:10Z"),
    ("run.by_slurm", lambda value: isinstance(value, bool), "true or false"),
    ("run.next_state", lambda value: value in ("RESUME", "DOWN"), "RESUME or DOWN"),
    ("run.nodes", _is_names, "a list of names of nodes"), ("run.call",) + _TEXT,
    ("run.go_on", lambda value: isinstance(value, bool), "true or false"),
    ("step", lambda value: value in STEPS, "one of " + ", ".join(STEPS)),
    ("state", lambda value: value in STATES, "one of " + ", ".join(STATES)),
    ("since",) + _STAMPS, ("ended",) + _STAMPS,
    ("waiting",) + _TEXT, ("reason",) + _TEXT, ("old_boot_id",) + _TEXT, ("host_key",) + _TEXT,
    ("called_before",) + _TEXT, ("job",) + _TEXT,
    ("in_slurm", lambda value: isinstance(value, bool), "true or false"),
    ("drained_before", _is_drained, "nothing, or a reason and by whom"),
    ("seconds", _is_seconds, "seconds by step"),
)


# Since there are records: they may lack them.
_ADDED = {"in_slurm": False}
_ADDED_TO_RUN = {"nodes": [], "call": u"", "go_on": False}


def problem_of(name, record):
    """Return in words why something is not a record of a node, "" for one that is."""
    if not isinstance(record, dict):
        return "no mapping"
    if record.get("format") != FORMAT or isinstance(record["format"], bool):
        return u"format is %s, and this program knows %d: another release" % (text(record.get("format")), FORMAT)
    if record.get("node") != name:
        return u"it is of node %s" % text(record.get("node"))
    record = dict(list(_ADDED.items()) + list(record.items()))
    if isinstance(record.get("run"), dict):
        record["run"] = dict(list(_ADDED_TO_RUN.items()) + list(record["run"].items()))
    for field, is_right, words in _FIELDS:
        value = record
        for key in field.split("."):
            if not isinstance(value, dict) or key not in value:
                return "it has no %s" % field
            value = value[key]
        if not is_right(value):
            return "%s is not %s" % (field, words)
    if record["plan"].get("node", name) != name:
        return u"its plan is of node %s" % text(record["plan"]["node"])
    if record["state"] in ("failed", "aborted") and not record["reason"]:
        return "state is %s, and there is no reason" % record["state"]
    return ""
