# -*- coding: utf-8 -*-
"""What an administrator has to know and no drain says: a node has jobs, though it is not healthy. Python 2.7 and 3.

It stands in a file as long as it is true, where an audit finds it, and once in the system's log.
"""

from __future__ import absolute_import, division, print_function

import os
import syslog

from hal_node.printable import shown

__metaclass__ = type

ALARM = "/run/hal-node-health.alarm"


def keep(lines, complete):
    """Let these stand. A part of the checks takes none away."""
    lines = [shown(" ".join(line.split())).decode("utf-8", "replace") for line in lines]
    before = _standing()
    new = [line for line in lines if line not in before]
    now = lines if complete else before + new
    if now == before:
        return
    syslog.openlog("hal-node-health", 0, syslog.LOG_DAEMON)
    for line in new:
        syslog.syslog(syslog.LOG_ERR, ("alarm: " + line).encode("ascii", "replace").decode("ascii"))
    try:
        if not now:
            os.unlink(ALARM)
            return
        with open(ALARM + ".new", "wb") as stream:
            stream.write("".join(line + "\n" for line in now).encode("utf-8"))
        os.rename(ALARM + ".new", ALARM)
    except (IOError, OSError):
        pass  # the log has it


def _standing():
    try:
        with open(ALARM, "rb") as stream:
            return stream.read().decode("utf-8", "replace").splitlines()
    except (IOError, OSError):
        return []
