# -*- coding: utf-8 -*-
"""Spectrum Scale's commands, run with a time limit, in the C locale, by their full path.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import subprocess
import threading

FOLDER = "/usr/lpp/mmfs/bin"
# The membership of a node: without this file the commands say "This node does not belong to a GPFS cluster".
MEMBER_FILE = "/var/mmfs/gen/mmsdrfs"


class ScaleError(Exception):
    """A command that failed or did not answer; the message has its last line."""


def ask(argv, seconds=60):
    """Return what a command prints. It is killed with what it started when it takes longer."""
    environ = dict(os.environ, LC_ALL="C", LANG="C")
    try:
        process = subprocess.Popen([os.path.join(FOLDER, argv[0])] + argv[1:], stdin=subprocess.PIPE, env=environ,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
                                   preexec_fn=os.setsid)
    except OSError as error:
        raise ScaleError("%s: %s" % (argv[0], error.strerror or error))
    late = []

    def end():
        late.append(True)
        try:
            os.killpg(process.pid, 9)
        except OSError:
            pass

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        out, err = process.communicate()
    finally:
        timer.cancel()
    if late:
        raise ScaleError("%s did not answer within %d s" % (" ".join(argv[:3]), seconds))
    if process.returncode != 0:
        lines = [line.strip() for line in (err or out).splitlines() if line.strip()]
        # The last line says only to look at those before it.
        said = [line for line in lines if "Examine previous error messages" not in line] or lines
        raise ScaleError("%s: %s" % (" ".join(argv[:3]), said[-1] if said else "status %d" % process.returncode))
    return out
