# -*- coding: utf-8 -*-
"""What the kinds of a restore share. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import errno
import os
import subprocess

RESERVE_MB = 64


def active(unit):
    """Whether a unit runs."""
    with open(os.devnull, "wb") as nothing:
        return subprocess.call(["systemctl", "is-active", "--quiet", unit], stdout=nothing, stderr=nothing) == 0


def is_newer(stamp, made):
    """Whether something may have changed after the archive was made.

    A stamp of a database has whole seconds, as has the archive's own. What has the same one may be from after it.
    """
    return int(stamp) >= made


def words(error):
    """What an error says, in one line."""
    if getattr(error, "errno", None) == errno.ENOSPC:
        return "the disk is full: %s" % (error.filename or error.strerror)
    if getattr(error, "strerror", None):
        return "%s: %s" % (error.filename, error.strerror) if error.filename else error.strerror
    return " ".join(str(error).split()) or error.__class__.__name__
