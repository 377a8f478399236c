# -*- coding: utf-8 -*-
"""One at a time: a lock that no user can hold or put in the way, and that nobody waits for without end.

Who may open a file may lock it, and then all others wait. So the file is its owner's alone, in a folder that nobody
else writes to.

Runs on nodes, beside programs of roles and under Ansible: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import contextlib
import errno
import fcntl
import os
import pwd
import socket
import stat
import sys
import time

MYPY = False
if MYPY:
    from typing import Callable, Iterator  # noqa: F401  in comments


@contextlib.contextmanager
def locked(path, problem, seconds, what):
    # type: (str, Callable[[str], Exception], float, str) -> Iterator[None]
    """Hold the lock of a file, which is made where it is missing. `problem`, in one line, when it cannot be had.

    problem: the caller's kind of exception; seconds: how long another is waited for; what: what is locked, in words.
    """
    handle = _waited_for(path, problem, seconds, what)
    try:
        _sign(handle)
        yield
    finally:
        _empty(handle)
        # By name: a process that was forked meanwhile, and hangs, has the handle too.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _waited_for(path, problem, seconds, what):
    # type: (str, Callable[[str], Exception], float, str) -> int
    left = int(10 * seconds)
    while True:
        handle, taken, holder = _opened(path, problem), False, ""
        try:
            taken = _is_taken(handle, path)
            if taken:
                return handle
            if left > 0:
                time.sleep(0.1)
            else:
                holder = _holder(handle)
        except EnvironmentError as error:
            raise problem("%s cannot be locked: %s" % (path, error.strerror))
        finally:
            if not taken:
                os.close(handle)
        if holder:
            raise problem("%s: %s holds the lock %s%s. Wait until it ends, or end it; then run this again" % (
                what, holder, path, " for more than %d s" % seconds if seconds else ""))
        left -= 1


def _opened(path, problem):
    # type: (str, Callable[[str], Exception]) -> int
    """Return a handle that programs which are started do not get. An older file may still be open to others."""
    folder = os.path.dirname(path) or "."
    try:
        above = os.stat(folder)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except EnvironmentError as error:
        why = "it is a link: remove it" if error.errno == errno.ELOOP else str(error.strerror)
        why += "; root may do this" if error.errno in (errno.EACCES, errno.EPERM) else ""
        raise problem("%s cannot be locked: %s" % (path, why))
    fcntl.fcntl(handle, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    seen = os.fstat(handle)
    why = ""
    exposed = ["chown " + _name(os.geteuid())] * (above.st_uid not in (0, os.geteuid()))
    exposed += ["chmod go-w"] * bool(above.st_mode & 0o022)
    if exposed:
        why = "others may write to %s, and put another file in its place: %s" % (folder, ", ".join(exposed))
    elif not stat.S_ISREG(seen.st_mode):
        why = "it is not a file: remove it"
    elif seen.st_uid != os.geteuid():
        why = "it belongs to %s: remove it" % _name(seen.st_uid)
    if why:
        os.close(handle)
        raise problem("%s cannot be locked: %s" % (path, why))
    if stat.S_IMODE(seen.st_mode) != 0o600:
        os.fchmod(handle, 0o600)
    return handle


def _is_taken(handle, path):
    # type: (int, str) -> bool
    """Whether the lock is ours now, and that of the file which stands there: somebody may have removed it meanwhile."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except EnvironmentError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES, errno.ENOENT):
            raise
        return False


# ---------------------------------------------------------------- who has it
def _sign(handle):
    # type: (int) -> None
    """Write who has it: on a shared file system only that tells another node."""
    command = " ".join([os.path.basename(sys.argv[0])] + sys.argv[1:])
    words = "process %d on %s (%s), by %s, since %s" % (
        os.getpid(), socket.gethostname(), command, os.environ.get("SUDO_USER") or _name(os.getuid()),
        time.strftime("%Y-%m-%d %H:%M"))
    raw = words if isinstance(words, bytes) else words.encode("utf-8", "surrogateescape")
    _empty(handle)
    try:
        os.write(handle, bytes(_plain(raw)) + b"\n")
    except EnvironmentError:
        pass  # the disk is full, and the lock is held all the same


def _empty(handle):
    # type: (int) -> None
    try:
        os.ftruncate(handle, 0)
    except EnvironmentError:
        pass  # it only says who has it


def _holder(handle):
    # type: (int) -> str
    """Return in words who holds it: by the kernel's list, and by what was written where that is the same process."""
    said = _printable(os.read(handle, 400))
    number = _listed(os.fstat(handle))
    if not number or said.startswith("process %d " % number):
        return said or "somebody"
    place = "/proc/%d" % number
    try:
        with open(place + "/cmdline", "rb") as source:
            command = _printable(source.read(200).replace(b"\0", b" "))
        with open(place + "/status", "rb") as source:  # not the folder's owner: a process can make it root
            uid = next(line.split()[1] for line in source if line.startswith(b"Uid:"))
        return "process %d (%s), of %s," % (number, command, _name(int(uid)))
    except EnvironmentError:
        return "a process that has just ended"


def _listed(seen):
    # type: (os.stat_result) -> int
    """Return the number of this node's process that holds the lock of a file, by /proc/locks (proc(5)); 0 for none."""
    place = "%02x:%02x:%d" % (os.major(seen.st_dev), os.minor(seen.st_dev), seen.st_ino)
    with open("/proc/locks") as source:
        for line in source:
            words = line.split()  # those who wait have an arrow as their second word
            if words[1:2] == ["FLOCK"] and words[5:6] == [place]:
                return max(0, int(words[4]))
    return 0


def _name(uid):
    # type: (int) -> str
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "uid %d" % uid


def _printable(raw):
    # type: (bytes) -> str
    return "".join(map(chr, _plain(raw)))


def _plain(raw):
    # type: (bytes) -> bytearray
    """Return bytes on one line, as any terminal may show them.

    Without a codec: Python 2 would look for its file now, as an account that may not read it.
    """
    return bytearray(byte if 32 <= byte < 127 else 63 for byte in bytearray(raw.strip()))
