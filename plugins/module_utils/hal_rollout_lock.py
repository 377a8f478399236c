# -*- coding: utf-8 -*-
"""One rollout a node: who holds this node, in a file that a boot clears away.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only. A node cannot see the controller's processes. So it
keeps what it was told, and whoever asks judges whether that rollout still lives (hal_rollout.processes).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import hashlib
import json
import os
import stat
import tempfile

from ansible.module_utils.hal_lock import locked

FOLDER = "/run/hal-rollout"  # of memory: a rollout does not go on behind a boot, and nobody restores it from a backup
MOST_BYTES = 8192
MOST_SECONDS = 60  # the lock of the file is held while a few bytes are written
FIELDS = ("run", "user", "host", "machine", "boot", "namespace", "pid", "start", "since", "command")


class RolloutError(Exception):
    """It cannot be told who holds this node, or not be written: the message says why."""


def answer(asked, check):
    """Return what the module hal_rollout says to its arguments; `check`: nothing is written."""
    if asked["state"] == "free" or check:
        return {"held": False, "other": read()}
    if asked["state"] == "released":
        return {"held": False, "other": {}, "released": release(asked["run"])}
    missing = [key for key in FIELDS if key not in (asked["holder"] or {})]
    if missing:
        raise RolloutError("holder has no %s" % missing[0])
    held, other = take(asked["holder"], asked["former"])
    return {"held": held, "other": other}


def take(holder, former=""):
    """Hold this node for a rollout. Returns (held, the one that holds or held it before).

    holder: what FIELDS name. former: the mark of a holder that the caller has judged to be over: it is replaced, and
    nobody who came meanwhile. The other holder is {} where there is none, {"mark"} alone where it cannot be read.
    """
    _make()
    with locked(os.path.join(FOLDER, "lock"), RolloutError, MOST_SECONDS, "the rollout's lock"):
        there = read()
        if there and there["mark"] != former and there.get("run") != holder["run"]:
            return False, there
        _write(holder)
        return True, there


def release(run):
    """Let this node go. Returns False where the rollout `run` does not hold it: after a boot, or once it was taken."""
    if not os.path.isdir(FOLDER):
        return False
    with locked(os.path.join(FOLDER, "lock"), RolloutError, MOST_SECONDS, "the rollout's lock"):
        ours = read().get("run") == run
        if ours:
            os.unlink(_path())
        return ours


def read():
    """Return who holds this node, with the mark of exactly this text; {} for nobody, the mark alone if unreadable."""
    try:
        handle = os.open(_path(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except EnvironmentError as error:
        if error.errno == errno.ENOENT:
            return {}
        raise RolloutError("%s cannot be read: %s. Look at it, and remove it" % (_path(), error.strerror))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise RolloutError("%s is not a file. Look at it, and remove it" % _path())
        data = os.read(handle, MOST_BYTES + 1)
    except EnvironmentError as error:
        raise RolloutError("%s cannot be read: %s" % (_path(), error.strerror))
    finally:
        os.close(handle)
    told = {}
    try:
        if len(data) <= MOST_BYTES:
            told = json.loads(data.decode("utf-8"))
    except (ValueError, RuntimeError):  # a deeply nested text
        pass
    told = {key: told[key] for key in FIELDS if key in told} if isinstance(told, dict) else {}
    told["mark"] = hashlib.sha256(data).hexdigest()
    return told


def _path():
    return os.path.join(FOLDER, "holder.json")


def _make():
    try:
        os.mkdir(FOLDER, 0o700)
    except EnvironmentError as error:
        if error.errno != errno.EEXIST:
            raise RolloutError("%s cannot be made: %s" % (FOLDER, error.strerror))


def _write(holder):
    """Replace the text at once or not at all."""
    data = json.dumps({key: holder[key] for key in FIELDS}, sort_keys=True).encode("utf-8")
    name = ""
    try:
        handle, name = tempfile.mkstemp(dir=FOLDER)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.rename(name, _path())
    except EnvironmentError as error:
        if name:
            os.unlink(name)
        raise RolloutError("%s cannot be written: %s" % (_path(), error.strerror))
