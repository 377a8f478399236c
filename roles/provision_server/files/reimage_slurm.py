# -*- coding: utf-8 -*-
"""Draining a node whose reimage was aborted, where Slurm's commands are. Nothing here ever gives a node back."""

from __future__ import absolute_import, division, print_function

import os
import re
import subprocess
import time

from hal_node.slurm.drains import REIMAGE, reason_line

from provision_common import Problem, text

SECONDS = "30"
RESERVATION = REIMAGE + "-"  # of hal_cluster/reimage/slurm.py: keeps others off a node that runs its test job
# How slurmctld writes that a reboot was asked for, or begun: 20.02 has a word or a sign, 22.05 a word for each.
REBOOTS = frozenset(["REBOOT", "@", "^", "REBOOT_REQUESTED", "REBOOT_ISSUED"])


def drain(name, reason):
    """Have Slurm drain a node for good; return what was done, in words. Problem when Slurm did not do it.

    A reboot (scontrol reboot ASAP) ends the drain when the node is there again, also one that was said in between. What
    ends the reboot is State=RESUME (slurm 22.05.8, node_mgr.c: update_node, validate_node_specs; cancel_reboot is
    refused once it was begun). Until it is drained again a reservation keeps jobs away.
    """
    if not _is_there("scontrol"):
        return u"Slurm's commands are not on this machine; where they are: scontrol update NodeName=%s State=DRAIN" \
               u" Reason=%s" % (name, REIMAGE)
    status, said = _scontrol("--oneliner", "show", "node", name)
    if status != 0:
        if "not found" in said:
            return u"Slurm does not know it"
        raise Problem(u"not drained in Slurm: %s" % said)
    match = re.search(r" State=(\S+)", said)
    state, reason = match.group(1) if match else u"", reason_line(text(reason))
    if REBOOTS & set(re.split(r"([@^]|[^A-Z_]+)", state)):
        done = _drain_out_of_a_reboot(name, reason)
    else:
        _asked("update", "NodeName=%s" % name, "State=DRAIN", "Reason=%s" % reason)
        done = u"drained in Slurm: %s" % reason
    said = _release(name)
    if said:
        raise Problem(u"%s; its reservation for a test job is still there: %s; scontrol delete ReservationName=%s%s"
                      % (done, said, RESERVATION, name))
    return done


def _drain_out_of_a_reboot(name, reason):
    held = "ReservationName=%sabort-%s" % (RESERVATION, name)
    _asked("create", "reservation", held, "StartTime=now", "Duration=5", "Nodes=%s" % name, "Users=root",
           "Flags=MAINT,IGNORE_JOBS")
    try:
        status, _ = _scontrol("update", "NodeName=%s" % name, "State=RESUME")
        # One that registered with less than its line says cannot be resumed. FAIL keeps jobs away whatever registers.
        wanted = "DRAIN" if status == 0 else "FAIL"
        _asked("update", "NodeName=%s" % name, "State=%s" % wanted, "Reason=%s" % reason)
    finally:
        _scontrol("delete", held)  # it ends by itself, too
    return u"its reboot was taken back, %s in Slurm: %s" % ("drained" if wanted == "DRAIN" else "failed", reason)


def _asked(*words):
    status, said = _scontrol(*words)
    if status != 0:
        raise Problem(u"not drained in Slurm: %s" % said)


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
    argv = [text(word).encode("utf-8") for word in ("timeout", SECONDS) + words]  # whatever the locale
    try:
        english = dict(os.environ, LC_ALL="C")
        done = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=english)
        said = text(done.communicate()[0])
    except OSError as error:
        raise Problem(u"%s cannot be run: %s" % (words[0], text(error.strerror)))
    return done.returncode, u" ".join(said.split()) or u"no answer within %s s" % SECONDS
