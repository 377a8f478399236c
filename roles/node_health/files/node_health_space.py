# -*- coding: utf-8 -*-
"""Whose files fill a disk. Python 2.7 and 3.

Anybody can write to these places, so nothing there is believed, and nothing there may take long: `find` counts. It
follows no link, never leaves the file system and opens folders one below the other. No name of a file is read. It stops
after so many seconds or entries, and the answer says that.
"""

from __future__ import absolute_import, division, print_function

import os
import select
import stat
import subprocess
import time

from hal_node.expect.values import to_bytes

from node_health_users import is_user, named

__metaclass__ = type

PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # where users write, whatever else is on that file system
SECONDS, ENTRIES = 5, 500000  # of counting
USERS = 3  # who are named: so many can be talked to
PROC, MOUNTS = "/proc", "/proc/self/mountinfo"
MB = 2 ** 20  # of "df --block-size=M"


def asked(question):
    """Return [directory, free] of an expectation that asks df for room, as `who_fills` takes them; [] of another."""
    argv = question.get("command", {}).get("argv") or [""]
    if argv[0] == "df" and "at_least" in question:
        return [argv[-1], "%s" % question["at_least"]]
    if argv[0] == "df" and "at_most" in question:
        return [argv[-1], "%s%%" % question["at_most"]]
    return []


def who_fills(directory, free):
    """Return who fills the file system of a directory, "" if no few users do.

    Users stand out when without their files the room would suffice: `free` MB, or at most so many percent in use for
    "95%". Who has so many files that they are not counted to the end stands out by that.
    """
    missing = _missing(os.statvfs(directory), free)
    if missing <= 0:
        return ""
    size, files, counted = _count(_places(directory))
    few, room = [], 0
    for uid in _most(size):
        if room < missing:
            few.append(uid)
            room += size[uid]
    least = "" if counted else "at least "
    if room >= missing:
        names = named(few)
        words = [" and ".join("%s has %s%d MB" % (names[uid], least, size[uid] // MB) for uid in few)]
    else:
        many = [uid for uid in _most(files)[:1] if not counted and 2 * files[uid] > sum(files.values())]
        words = ["%s has %s%d files" % (named(many)[uid], least, files[uid]) for uid in many]
    return ", ".join(words + ["not counted to the end"] * (not counted))


def _missing(volume, free):
    """Return how many bytes have to become free, as df counts them: of what users may have."""
    if not free.endswith("%"):
        return int(free) * MB - volume.f_bavail * volume.f_frsize
    used, left = (volume.f_blocks - volume.f_bfree) * volume.f_frsize, volume.f_bavail * volume.f_frsize
    return used - (used + left) * int(free[:-1]) // 100


def _most(amounts):
    """Return the users with the most, the first one first."""
    users = [uid for uid in amounts if is_user(uid) and amounts[uid] > 0]
    return sorted(users, key=lambda uid: (-amounts[uid], uid))[:USERS]


def _places(directory):
    """Return the folders of the directory's file system in which anybody may write."""
    device = os.stat(directory).st_dev
    folders = []
    for place in (directory,) + PLACES:
        path = os.path.realpath(place)
        try:
            status = os.stat(path)
        except OSError:
            continue
        if status.st_dev == device and status.st_mode & stat.S_IWOTH and path not in folders:
            folders.append(path)
    return folders


def _count(places):
    """Return ({uid: bytes}, {uid: files}, whether that is all)."""
    size, files, seen = {}, {}, set()
    deadline = time.time() + SECONDS

    def add(uid, blocks, links, inode):
        if links > 1:
            if inode in seen:
                return
            seen.add(inode)
        size[uid] = size.get(uid, 0) + 512 * blocks
        files[uid] = files.get(uid, 0) + 1

    if not places:
        return size, files, True
    opened = _open_without_name(places, deadline - SECONDS / 2, add)
    return size, files, not _may_hang(places) and _found(places, deadline, add) and opened


def _may_hang(places):
    """Whether a user's own file system below keeps everybody waiting who comes near, if it likes to.

    Others than its owner, and so root, are refused by the kernel unless it was mounted with allow_other (fuse(4)).
    """
    with open(MOUNTS, "rb") as stream:
        mounts = [line.split() for line in stream]
    below = tuple(to_bytes(place) + b"/" for place in places)
    return any(mount[4].startswith(below) and b"allow_other" in mount[-1].split(b",")
               for mount in mounts if len(mount) > 4)


def _found(places, deadline, add):
    """Count what has a name; return whether that was all. No names are printed: they could look like lines."""
    argv = ["find"] + places + ["-xdev", "-printf", "%y %U %b %n %i\\n"]
    with open(os.devnull, "r+b") as nothing:
        process = subprocess.Popen(argv, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing, close_fds=True)
    rest, entries = b"", 0
    try:
        while entries < ENTRIES:
            left = deadline - time.time()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                return False
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                return True
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            entries += len(lines)
            for kind, uid, blocks, links, inode in (line.split() for line in lines):
                add(int(uid), int(blocks), 0 if kind == b"d" else int(links), inode)
        return False
    finally:
        process.stdout.close()
        process.kill()  # and not waited for: it may hang in a file system


def _open_without_name(places, deadline, add):
    """Count files that were removed and that a process still has open or mapped; return whether that was all."""
    device = os.stat(places[0]).st_dev
    below = tuple(place.rstrip("/") + "/" for place in places)
    seen = set()
    for pid in os.listdir(PROC):
        for folder in ("%s/%s/%s" % (PROC, pid, part) for part in ("fd", "map_files") if pid.isdigit()):
            try:
                links = os.listdir(folder)
            except OSError:
                continue  # it has ended, or is another user's and we are not root
            for link in links:
                if time.time() > deadline:
                    return False
                _add_open("%s/%s" % (folder, link), device, below, seen, add)
    return True


def _add_open(link, device, below, seen, add):
    """Count what a link of /proc leads to. The link's text is looked at first: other file systems are not touched."""
    try:
        path = os.readlink(link)
        if not (path.startswith(below) and path.endswith(" (deleted)")):
            return
        status = os.stat(link)
    except OSError:
        return
    if status.st_nlink == 0 and status.st_dev == device and status.st_ino not in seen:
        seen.add(status.st_ino)
        add(status.st_uid, status.st_blocks, 0, None)
