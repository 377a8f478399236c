# -*- coding: utf-8 -*-
"""The locks that useradd and its kind take before they change a file of accounts, taken in their order.

First /etc/.pwd.lock (lckpwdf of glibc: a record lock on the whole file, waited for), so that a useradd waits for us;
then FILE.lock for each file: made by link() from a file with the process number, which is refused while that process
lives and taken over when it does not. Source: shadow-utils 4.6, lib/commonio.c (do_lock_file, commonio_lock).

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import contextlib
import errno
import fcntl
import os
import time

MYPY = False
if MYPY:
    from typing import Iterator, Sequence  # noqa: F401  in comments

PASSWORDS = "/etc/.pwd.lock"
WAIT_SECONDS = 30


class LockError(Exception):
    """Somebody holds a lock for too long; the text is one line."""


@contextlib.contextmanager
def shadow_locks(paths, wait_seconds=WAIT_SECONDS):
    # type: (Sequence[str], float) -> Iterator[None]
    """Hold the locks of files; LockError when others hold one for longer than `wait_seconds`."""
    late = time.time() + wait_seconds
    held = []
    handle = os.open(PASSWORDS, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        while not _recorded(handle):
            _wait(late, "%s: another program changes accounts" % PASSWORDS, wait_seconds)
        for path in paths:
            while True:
                holder = _linked(path)
                if holder is None:
                    break
                _wait(late, "%s.lock: %s holds it" % (path, holder), wait_seconds)
            held.append(path + ".lock")
        yield
    finally:
        for path in reversed(held):
            os.unlink(path)
        os.close(handle)


def _wait(late, who, wait_seconds):
    # type: (float, str, float) -> None
    if time.time() > late:
        raise LockError(
            "%s, for %d s now; nothing was written. Run it again when that program has ended" % (who, wait_seconds)
        )
    time.sleep(0.1)


def _recorded(handle):
    # type: (int) -> bool
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (IOError, OSError) as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _linked(path):
    # type: (str) -> str | None
    """Make the lock of a file; return who has it when that is somebody else, in words."""
    own, lock = "%s.%d" % (path, os.getpid()), path + ".lock"
    handle = os.open(own, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    try:
        os.write(handle, ("%d\0" % os.getpid()).encode("ascii"))
        os.close(handle)
        if _link(own, lock):
            return None
        try:
            with open(lock, "rb") as stream:
                text = stream.read(31)
        except (IOError, OSError):
            return "a program that has just ended"
        try:
            pid = int(text.partition(b"\0")[0])
        except ValueError:
            return "somebody who wrote no process number"
        if pid > 0 and _alive(pid):
            return "process %d" % pid
        os.unlink(lock)  # of a process that was killed
        return None if _link(own, lock) else "another process"
    finally:
        os.unlink(own)


def _link(own, lock):
    # type: (str, str) -> bool
    try:
        os.link(own, lock)
    except OSError as error:
        if error.errno == errno.EEXIST:
            return False
        raise
    return True


def _alive(pid):
    # type: (int) -> bool
    try:
        os.kill(pid, 0)
    except OSError as error:
        return error.errno != errno.ESRCH
    return True
