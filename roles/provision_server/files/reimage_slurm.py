# -*- coding: utf-8 -*-
"""Draining a node whose reimage was aborted, where Slurm's commands are. Nothing here ever gives a node back."""

from __future__ import absolute_import, division, print_function

import os
import re
import subprocess
import time

from provision_common import Problem, text

SECONDS = "30"
RESERVATION = "hal-reimage-"  # of hal_reimage/slurm.py: keeps others off a node that runs its test job


def drain(name, reason):
    """Have Slurm drain a node; return what was done, in words. Problem when Slurm did not do it.

    A reboot that was asked for (scontrol reboot ASAP nextstate=RESUME) would end the drain: it is cancelled first,
    which Slurm can as long as it has not begun (slurmctld/node_mgr.c, update_node: NODE_STATE_REBOOT_CANCEL).
    """
    if not _is_there("scontrol"):
        return u"Slurm's commands are not on this machine; where they are: scontrol update NodeName=%s State=DRAIN" \
               u" Reason=hal-reimage" % name
    status, said = _scontrol("--oneliner", "show", "node", name)
    if status != 0:
        if "not found" in said:
            return u"Slurm does not know it"
        raise Problem(u"not drained in Slurm: %s" % said)
    state = re.search(r" State=(\S+)", said)
    flags = set(re.split(r"[^A-Z_]+", state.group(1))) if state else set()
    if "REBOOT_REQUESTED" in flags:
        status, answer = _scontrol("cancel_reboot", name)
        if status != 0:
            raise Problem(u"not drained in Slurm: the reboot that it waits for cannot be cancelled: %s" % answer)
    status, answer = _scontrol("update", "NodeName=%s" % name, "State=DRAIN", u"Reason=%s" % reason)
    if status != 0:
        raise Problem(u"not drained in Slurm: %s" % answer)
    said = _release(name)
    if said:
        raise Problem(u"drained in Slurm, and its reservation for a test job is still there: %s; "
                      u"scontrol delete ReservationName=%s%s" % (said, RESERVATION, name))
    if "REBOOT_ISSUED" in flags:
        return u"drained in Slurm; a reboot by Slurm has begun, and may end the drain: look at sinfo -R after it"
    return u"drained in Slurm: %s" % reason


def _release(name):
    """End a test job and take its reservation away, if there are such; return what Slurm said against it."""
    reservation = RESERVATION + name
    status, said = _scontrol("show", "reservation", reservation)
    if status != 0:
        return u"" if "not found" in said else said
    _run("scancel", "--name", reservation, "--nodelist", name)
    for _ in range(10):
        status, said = _scontrol("delete", "ReservationName=%s" % reservation)
        if status == 0:
            return u""
        time.sleep(0.5)  # a job that ends is still in it
    return said


def _is_there(program):
    folders = os.environ.get("PATH", "/usr/bin:/bin").split(os.pathsep)
    return any(os.access(os.path.join(folder, program), os.X_OK) for folder in folders)


def _scontrol(*words):
    """Return the exit status, and all that was said in one line."""
    return _run("scontrol", *words)


def _run(*words):
    argv = [text(one).encode("utf-8") for one in ("timeout", SECONDS) + words]  # whatever the locale
    try:
        english = dict(os.environ, LC_ALL="C")
        done = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=english)
        said = text(done.communicate()[0])
    except OSError as error:
        raise Problem(u"%s cannot be run: %s" % (words[0], text(error.strerror)))
    return done.returncode, u" ".join(said.split()) or u"no answer within %s s" % SECONDS
