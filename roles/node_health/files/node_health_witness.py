# -*- coding: utf-8 -*-
"""Another witness for what did not answer: a daemon's process, a mount. Python 2.7 and 3.

A program that starts many others (mmgetstate) is late on a busy node. A look into /proc starts none, and statfs of a
file system is one call to its daemon. What it says decides only whether a check without an answer keeps a node from
jobs.
"""

from __future__ import absolute_import, division, print_function

import os

from hal_node.expect.process import read_guarded
from hal_node.expect.values import Unreadable, present

__metaclass__ = type

SECONDS = 4  # for a file system to answer
PROC = "/proc"
WELL, NOT_WELL, SILENT = "well", "not well", "silent"


def ask(witnesses):
    """Return (verdict, words) of {processes: their names, mounts: their paths}. Where nobody can be asked it is SILENT.

    WELL only if each says so; one that says the contrary decides.
    """
    said = [_process(name) for name in witnesses.get("processes", [])]
    said += [_mount(path) for path in witnesses.get("mounts", [])]
    for verdict in (NOT_WELL, SILENT):
        words = [text for what, text in said if what == verdict]
        if words:
            return verdict, ", ".join(words)
    return (WELL if said else SILENT), ", ".join(text for _, text in said)


def _process(name):
    if name in _running():
        return WELL, "%s runs" % name
    return NOT_WELL, "no process %s is there" % name


def _running():
    """Return the names of processes that have not ended (proc(5), stat)."""
    names = set()
    for number in os.listdir(PROC):
        if number.isdigit():
            try:
                with open("%s/%s/stat" % (PROC, number), "rb") as stream:
                    before, _, after = stream.read().rpartition(b")")
            except (IOError, OSError):
                continue
            if after.split()[:1] != [b"Z"]:
                names.add(before.partition(b"(")[2].decode("utf-8", "replace"))
    return names


def _mount(path):
    with open(PROC + "/self/mounts", "rb") as stream:
        mounted = [line.split()[1].decode("utf-8", "replace") for line in stream if len(line.split()) > 1]
    if path.replace(" ", "\\040") not in mounted:
        return NOT_WELL, "%s is not mounted" % path
    answer = read_guarded(lambda place: present(os.statvfs(place).f_blocks), [path], SECONDS)[0]
    if isinstance(answer, Unreadable):
        return SILENT, "%s: %s" % (path, answer.reason)
    return WELL, "%s answers" % path
