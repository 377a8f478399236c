# -*- coding: utf-8 -*-
"""Restore of slurmctld's state: the folder is exchanged as a whole. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import os
import pwd

from backup_common import Problem, clock, run
from backup_sources import STATE, copy_tree, setting
from restore_common import active, is_newer, words

BESIDE = ".restoring"


def look(source, made):
    """Whether slurmctld runs, when it saved its jobs last, and what happens to the folder.

    A node that was made anew has no slurm.conf before the restore writes it: then the folder is the declared one.
    """
    folder = source.get("location", "/var/spool/slurmctld")
    if os.path.exists(source["conf"]):
        folder = setting(source["conf"], "StateSaveLocation")
    count = len([entry for entry in source["entries"].values() if entry["type"] == "file"])
    lines = ["%s: exchanged as a whole, %d files of slurm" % (folder, count)]
    state = os.path.join(folder, "job_state")
    if not os.path.exists(state):
        return "no state is there", False, lines
    there = "state of %s" % clock(os.stat(state).st_mtime)
    if active("slurmctld"):
        there += ", slurmctld runs"
        try:
            there += " with %d jobs" % len(run(["squeue", "--noheader", "--all"]).splitlines())
        except Problem:
            pass  # it does not answer: that is why somebody restores
    return there, is_newer(os.stat(state).st_mtime, made), lines


def prepare(source, folder):
    """Put the state beside its place, as slurm's own.

    It is given to slurm where slurm cannot go, and is slurm's in its place when it is whole. Else slurm could put a
    link there while root gives away what is below, and would get what the link leads to.
    """
    place = setting(source["conf"], "StateSaveLocation")
    if os.path.ismount(place):
        raise Problem("%s is a mount point, which cannot be exchanged: let StateSaveLocation be a folder below" % place)
    try:
        slurm = pwd.getpwnam("slurm")
    except KeyError:
        raise Problem("there is no user slurm: roll out the role slurm's installation first")
    beside = place + BESIDE
    forget(source, place)  # of a run that was killed
    try:
        state = os.path.join(folder, STATE)
        inside = [os.path.join(where, name) for where, dirs, names in os.walk(state) for name in dirs + names]
        for path in [state] + inside:
            os.lchown(path, slurm.pw_uid, slurm.pw_gid)
        os.chmod(state, 0o700)
        copy_tree(state, beside)
    except EnvironmentError as error:
        forget(source, place)
        raise Problem("%s cannot be written: %s" % (beside, words(error)))
    return place


def replace(source, place, aside):
    """Exchange the folders: a slurmctld that is started without its state kills what runs."""
    former = "%s.before-%s" % (place, os.path.basename(aside))
    if os.path.isdir(place):
        os.rename(place, former)
    try:
        os.rename(place + BESIDE, place)
    except EnvironmentError:
        if os.path.isdir(former):
            os.rename(former, place)
        raise
    return "restored; what was there is %s" % former if os.path.isdir(former) else "restored"


def forget(source, place):
    """Remove what was prepared; once it is in its place there is nothing.

    By rm: it is slurm's, and Python 2.7 would follow a link that slurm puts there meanwhile.
    """
    run(["rm", "-rf", "--", place + BESIDE])
