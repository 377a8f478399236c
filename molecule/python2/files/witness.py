# -*- coding: utf-8 -*-
# ruff: noqa: UP009, UP010  # Python 2.7 reads this too
"""Loaded by every Python at its start (witness.pth): notes which one it is. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import os
import sys

try:
    _log = os.open("/var/log/interpreters", os.O_WRONLY | os.O_APPEND)  # made by converge.yml
    with open("/proc/self/cmdline", "rb") as _cmdline:  # bytes: a word of it may be in any encoding
        _command = b" ".join(_cmdline.read().replace(b"\0", b" ").split())  # on one line, whatever -c was given
    os.write(_log, b"%d.%d %s\n" % (sys.version_info[0], sys.version_info[1], _command[:200]))
    os.close(_log)
except OSError:
    pass
