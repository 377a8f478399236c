# -*- coding: utf-8 -*-
"""Spectrum Scale's commands, in the C locale, by their full path: questions have a time limit, changes none.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import subprocess
import tempfile
import threading

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

CHANGE_SECONDS = 300  # a change locks the cluster's configuration and tells every node
FOLDER = "/usr/lpp/mmfs/bin"


class ScaleError(Exception):
    """A command that failed or did not answer; the message has its last line."""


def ask(argv, seconds=60):
    # type: (list[str], float) -> str
    """Return what a command prints. It is killed with what it started when it takes longer."""
    process = start(argv, subprocess.PIPE, subprocess.PIPE)
    late = []

    def end():
        # type: () -> None
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
        raise failure(argv, process.returncode, err or out)
    return out


def change(argv):
    # type: (list[str]) -> None
    """Run a command that changes the cluster. One that takes longer is never ended half-way: it goes on without us."""
    with tempfile.TemporaryFile("w+") as said:  # not a pipe: it would be killed by its next line when nobody reads
        process = start(argv, said, said)
        waiter = threading.Thread(target=process.wait)
        waiter.daemon = True
        waiter.start()
        waiter.join(CHANGE_SECONDS)
        if waiter.is_alive():
            raise ScaleError("%s still runs after %d s (process %d) and was not stopped: run this again when it has "
                             "ended" % (" ".join(argv), CHANGE_SECONDS, process.pid))
        said.seek(0)
        if process.returncode != 0:
            raise failure(argv, process.returncode, said.read())


def refuse_beside(command):
    # type: (str) -> None
    """Raise ScaleError while root runs such a command on this node: users name their processes as they like."""
    program = os.path.join(FOLDER, command).encode()
    for number in os.listdir("/proc"):
        try:
            with open("/proc/%d/cmdline" % int(number), "rb") as words:
                runs = program in words.read().split(b"\0")[:3]  # after the shell that runs it
        except (ValueError, IOError):  # not a process, or it has ended
            continue
        if runs and _is_root_s(number):
            raise ScaleError("%s runs already (process %s): nothing was changed; run this again when it has ended" % (
                command, number))


def _is_root_s(number):
    # type: (str) -> bool
    """Whether a process is root's, or ours. The owner of its folder in /proc may be root's without that (proc(5))."""
    try:
        with open("/proc/%s/status" % number, "rb") as lines:
            return any(line.split()[1:2] in ([b"0"], [str(os.geteuid()).encode()]) for line in lines
                       if line.startswith(b"Uid:"))
    except (IOError, OSError):
        return False  # it has ended


def start(argv, out, err):
    # type: (list[str], Any, Any) -> subprocess.Popen[str]
    """Return the started command, in a session of its own."""
    environ = dict(os.environ, LC_ALL="C", LANG="C")
    try:
        with open(os.devnull) as nothing:
            return subprocess.Popen([os.path.join(FOLDER, argv[0])] + argv[1:], stdin=nothing, env=environ, stdout=out,
                                    stderr=err, universal_newlines=True, preexec_fn=os.setsid)
    except OSError as error:
        raise ScaleError("%s: %s" % (argv[0], error.strerror or error))


def failure(argv, status, text):
    # type: (list[str], int, str) -> ScaleError
    """Return the error of a command that failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # The last line says only to look at those before it.
    said = [line for line in lines if "Examine previous error messages" not in line] or lines
    return ScaleError("%s: %s" % (" ".join(argv[:3]), said[-1] if said else "status %d" % status))
