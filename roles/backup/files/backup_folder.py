# -*- coding: utf-8 -*-
"""A node's folder in the store: what is in it, what may still come, and what goes. Python 2.7 and 3.

The sender is not trusted: a node may fill its own folder up to a limit, and cannot remove what was there before.
"""

from __future__ import absolute_import, division, print_function

import contextlib
import datetime
import errno
import fcntl
import os
import time

from backup_common import MEGABYTE, SUFFIX, Problem, clock, load, made_at, need_room

BESIDE = ".json"
PART = ".part"
ASIDE = "aside"
"""Where archives lie that nobody said anything about: copied there by hand, or of a run that was killed."""
DAY_SECONDS = 86400
MOST_A_DAY = 48
"""Archives of one node within a day: one is made a night, and by each playbooks/backup.yml."""
CLOCK_SECONDS = 60
"""By how much the store's clock may be behind its newest archive: what chrony corrects at once."""
WAIT_SECONDS = 600
"""For who changes the list: it writes some lines and removes some files."""
LATE_SECONDS = 6 * 3600
"""How far from the store's clock an archive's name may be. So who takes a node over sends none that looks older."""
WRITTEN = ("at", "damaged", "sha256", "size", "word")


@contextlib.contextmanager
def changing(folder):
    """Hold the folder while its list of archives changes, and leave with the change on the disk.

    Nobody holds it while something is sent or read, so each waits for the other. Problem when one hangs.
    """
    handle = os.open(folder, os.O_RDONLY)
    try:
        _wait_for(handle, folder)
        yield
        os.fsync(handle)
    finally:
        os.close(handle)


def _wait_for(handle, folder):
    for _ in range(int(10 * WAIT_SECONDS)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except EnvironmentError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        time.sleep(0.1)
    words = "another backup_store.py has held %s for %d s: look at what it does, then end it"
    raise Problem(words % (folder, WAIT_SECONDS))


def archives(folder):
    """Return what is written beside the archives of a folder, newest first."""
    listed = []
    for name in os.listdir(folder):
        if name.endswith(SUFFIX + BESIDE):
            path = os.path.join(folder, name)
            try:
                facts = load(path)
            except Problem:
                if os.path.exists(path):  # or it went since, with its archive
                    raise
                continue
            if not isinstance(facts, dict) or any(key not in facts for key in WRITTEN):
                raise Problem("%s is not what the store writes: move it away" % path)
            listed.append(dict(facts, archive=name[: -len(BESIDE)]))
    return sorted(listed, key=lambda facts: (facts["at"], facts["archive"]), reverse=True)


def aside(folder):
    """Return the names of what lies aside, sorted."""
    place = os.path.join(folder, ASIDE)
    return sorted(os.listdir(place)) if os.path.isdir(place) else []


def sweep(folder):
    """Set aside archives that nothing is written beside. Never remove one: somebody may have copied it there."""
    names = set(os.listdir(folder))
    for name in sorted(names):
        if name.endswith(SUFFIX) and name + BESIDE not in names:
            place = os.path.join(folder, ASIDE)
            if not os.path.isdir(place):
                os.mkdir(place, 0o700)
            kept, number = name, 1
            while os.path.lexists(os.path.join(place, kept)):
                kept, number = "%s.%d" % (name, number), number + 1
            os.rename(os.path.join(folder, name), os.path.join(place, kept))


def admit(config, node, folder, name, size):
    """Refuse an archive that there is no place for, or whose time cannot be told."""
    path = os.path.join(folder, name)
    if os.path.lexists(path) or os.path.lexists(path + BESIDE):
        raise Problem("%s is there already" % name)
    now, there = time.time(), archives(folder)
    if there and there[0]["at"] > now + CLOCK_SECONDS:
        raise Problem(
            "the store's clock says %s, and %s came at %s: set the clock, or move that archive away if the clock was "
            "wrong then" % (clock(now), there[0]["archive"], clock(there[0]["at"]))
        )
    made = made_at(node, name)
    if abs(made - now) > LATE_SECONDS:
        raise Problem(
            "%s was made at %s, and the store's clock says %s: set the one that is wrong"
            % (name, clock(made), clock(now))
        )
    if len([archive for archive in there if archive["at"] > now - DAY_SECONDS]) >= MOST_A_DAY:
        raise Problem("%s has sent %d archives within a day: more are not taken" % (node, MOST_A_DAY))
    needed, allowed = -(-(_size(folder) + size) // MEGABYTE), config["quota_mb"]
    if needed > allowed:
        raise Problem(
            "with %s the archives of %s would be %d MB; backup_store_quota_mb allows %d" % (name, node, needed, allowed)
        )
    need_room(folder, size, config["reserve_mb"], name)


def _size(folder):
    """What is in a folder, in bytes, without a part that another run left: that is written over."""
    return sum(
        os.lstat(os.path.join(where, name)).st_size
        for where, _, names in os.walk(folder)
        for name in names
        if name != PART
    )


def kept(stamps, daily, weekly):
    """Of times of archives, return those to keep: of each of so many days the first and the last, of weeks the last.

    The first too, since a later one is not a better one: who took the node over sends one more. Days and weeks without
    an archive do not count, so archives that stopped coming are not thrown away one by one.
    """
    keep = set()
    for number, period, ends in ((daily, _day, (min, max)), (weekly, _week, (max,))):
        periods = {}
        for stamp in stamps:
            periods.setdefault(period(stamp), []).append(stamp)
        for name in sorted(periods, reverse=True)[:number]:
            keep.update(end(periods[name]) for end in ends)
    return keep


def _day(stamp):
    return datetime.date.fromtimestamp(stamp).isoformat()


def _week(stamp):
    return "%04d-%02d" % datetime.date.fromtimestamp(stamp).isocalendar()[:2]


def retain(config, folder):
    """Remove archives beyond those to keep. Before another comes: what just came is never looked at.

    Damaged ones stay until somebody looked at them, and for a day whatever came here, by the disk's own time (ctime):
    also what an administrator has just copied back.
    """
    whole = [archive for archive in archives(folder) if not archive["damaged"]]
    keep = kept([archive["at"] for archive in whole], config["keep_daily"], config["keep_weekly"])
    for archive in whole[1:]:
        path = os.path.join(folder, archive["archive"])
        if archive["at"] not in keep and not _is_young(path):
            for name in (path, path + BESIDE):
                if os.path.lexists(name):
                    os.unlink(name)


def _is_young(path):
    return os.path.exists(path) and os.lstat(path).st_ctime > time.time() - DAY_SECONDS
