# -*- coding: utf-8 -*-
"""End all that a build started. Its user does nothing else on this node, so what runs with these ids is a build's.

Looked for by number, not by session or environment: a build leaves both when it likes (setsid, env -i), its ids never.
Jobs of cron and at would start it again later. Python 2.7 and 3.
"""

from __future__ import absolute_import, division, print_function

import os
import signal
import time

from container_common import Problem

# Of cronie and at on Enterprise Linux: files that belong to who gave the job.
SPOOLS = ("/var/spool/cron", "/var/spool/at")
PATIENCE_SECONDS = 15


def end_all(uid, start, count):
    """End every process of a uid and of a range of ids, and forget its jobs; Problem when one cannot be ended."""
    late = time.time() + PATIENCE_SECONDS
    while True:
        jobs = _forget_jobs(uid)
        _end_at_once(uid)
        alive = running(uid, start, count)
        if not alive and not jobs:
            return
        if time.time() > late:
            raise Problem("processes of the build cannot be ended: %s; nothing was published. Look at them (a device"
                          " or a file system that hangs), and end them or reboot"
                          % ", ".join(str(pid) for pid in sorted(alive)))
        for pid in alive:
            _end(pid)
        time.sleep(0.02)


def _end_at_once(uid):
    """Let the kernel end all of a user in one step, as that user: a chain that forks and exits is in no list of ours.

    What runs in the user's own namespaces is among it, whatever its ids: there the user may do what root may.
    """
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setuid(uid)
            if os.getresuid() == (uid, uid, uid) and uid != 0:
                os.kill(-1, signal.SIGKILL)
        except OSError:
            pass  # there is nothing to end
        finally:
            os._exit(0)
    os.waitpid(child, 0)  # ended by one of them first: the next round


def running(uid, start, count):
    """Return the numbers of processes that have such an id: real, effective, saved or of the file system."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _belongs(name, uid, start, count)]


def _belongs(name, uid, start, count):
    try:
        with open("/proc/%s/status" % name, "rb") as stream:
            fields = dict(line.split(b":", 1) for line in stream.read().splitlines() if b":" in line)
    except (IOError, OSError):
        return False  # it has ended
    if fields.get(b"State", b"").split()[:1] == [b"Z"] and fields.get(b"Threads", b"").strip() in (b"0", b"1"):
        return False  # it has ended, with all its threads, and nobody has asked how
    ids = [int(number) for number in fields.get(b"Uid", b"").split()]
    return any(number == uid or start <= number < start + count for number in ids)


def _end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended


def _forget_jobs(uid):
    """Remove the user's jobs; return their files."""
    gone = []
    for folder in SPOOLS:
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            path = os.path.join(folder, name)
            try:
                if os.lstat(path).st_uid == uid and not os.path.isdir(path):
                    os.unlink(path)
                    gone.append(path)
            except OSError:
                continue  # done, or taken away
    return gone
