# -*- coding: utf-8 -*-
"""One rollout a node: who holds this node, in a file that outlives a boot: a rollout may boot a node and go on.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only. A node cannot see the controller's processes. So it
keeps what it was told, and whoever asks judges whether that rollout still lives (hal_cluster.rollout.processes).
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import errno
import hashlib
import json
import os
import stat

from .lock import locked

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

FOLDER = "/var/lib/hal/rollout"  # no backup and no image has it: roles/backup, image/clean.py
MOST_BYTES = 8192
MOST_SECONDS = 60  # the lock of the file is held while a few bytes are written
FIELDS = ("run", "user", "host", "machine", "boot", "namespace", "pid", "start", "since", "command")


class RolloutError(Exception):
    """It cannot be told who holds this node, or not be written: the message says why."""


def answer(asked, check):
    # type: (dict[str, Any], bool) -> dict[str, Any]
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
    # type: (dict[str, Any], str) -> tuple[bool, dict[str, Any]]
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
    # type: (str) -> bool
    """Let this node go. Returns False where the rollout `run` does not hold it, such as one from whom it was taken."""
    if not os.path.isdir(FOLDER):
        return False
    with locked(os.path.join(FOLDER, "lock"), RolloutError, MOST_SECONDS, "the rollout's lock"):
        ours = read().get("run") == run
        if ours:
            os.unlink(_path())
        return ours


def read():
    # type: () -> dict[str, Any]
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
    # type: () -> str
    return os.path.join(FOLDER, "holder.json")


def _make():
    # type: () -> None
    for folder in (os.path.dirname(FOLDER), FOLDER):  # makedirs of Python 3.7 gives what is above another mode
        try:
            os.mkdir(folder, 0o700)
        except EnvironmentError as error:
            if error.errno != errno.EEXIST:
                raise RolloutError("%s cannot be made: %s" % (folder, error.strerror))


def _write(holder):
    # type: (dict[str, Any]) -> None
    """Replace the text at once or not at all, also when the node loses power. Only while the lock is held."""
    data = json.dumps({key: holder[key] for key in FIELDS}, sort_keys=True).encode("utf-8")
    name = _path() + ".new"
    try:
        _remove(name)  # of one that was killed here
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(handle)
        os.rename(name, _path())
    except EnvironmentError as error:
        raise RolloutError("%s cannot be written: %s" % (_path(), error.strerror))


def _remove(path):
    # type: (str) -> None
    try:
        os.unlink(path)
    except EnvironmentError as error:
        if error.errno != errno.ENOENT:
            raise
