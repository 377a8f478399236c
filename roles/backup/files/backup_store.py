# -*- coding: utf-8 -*-
"""The server's side: take archives, keep so many of them, look whether they are still what was sent. Python 2.7 and 3.

    backup_store.py CONFIG put NODE        what a node's certificate runs; what it asks for is in SSH_ORIGINAL_COMMAND
    backup_store.py CONFIG has NODE WORD   exit status 0 when a whole archive carries this word
    backup_store.py CONFIG check           read every archive again (nightly)
    backup_store.py CONFIG status          JSON

A node can add an archive to its own folder and nothing else: it cannot read, name or remove one.
"""

from __future__ import absolute_import, division, print_function

import datetime
import errno
import fcntl
import hashlib
import json
import os
import re
import sys
import time

from backup_common import MEGABYTE, SUFFIX, Problem, configuration, free_mb, load, main, need_room, save, sha256

ASKED = re.compile(r"put (?P<name>[\w.-]+) (?P<size>\d{1,15}) (?P<sha256>[0-9a-f]{64})(?: (?P<word>[0-9a-f]{64}))?")


def put(config, node, asked, stream):
    """Take one archive; it has its name only when it was written, read again and found whole."""
    found = ASKED.match(asked)
    if not found or found.end() != len(asked):
        raise Problem("only 'put NAME SIZE SHA256' is answered here")
    name, size = found.group("name"), int(found.group("size"))
    if not re.match(r"%s-\d{8}T\d{6}Z%s$" % (re.escape(node), re.escape(SUFFIX)), name):
        raise Problem("%s is no name of an archive of %s" % (name, node))
    folder = os.path.join(config["root"], node)
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
    with open(os.path.join(folder, ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sweep(folder)
        path = os.path.join(folder, name)
        if os.path.exists(path):
            raise Problem("%s is there already" % name)
        need_room(folder, size, config["reserve_mb"], name)
        _receive(stream, path + ".part", size, found.group("sha256"))
        os.rename(path + ".part", path)
        beside = {"archive": name, "at": int(time.time()), "sha256": found.group("sha256"), "size": size}
        save(path + ".json", dict(beside, word=found.group("word") or "", damaged=""))
        retain(config, folder)
    print("stored %s %s" % (name, found.group("sha256")))


def _receive(stream, part, size, wanted):
    digest, got = hashlib.sha256(), 0
    try:
        with open(part, "wb") as target:
            for block in iter(lambda: stream.read(MEGABYTE), b""):
                got += len(block)
                if got > size:
                    break
                digest.update(block)
                target.write(block)
            target.flush()
            os.fsync(target.fileno())
        if got != size or digest.hexdigest() != wanted:
            raise Problem("%d bytes came, %d were announced: nothing is stored" % (got, size))
        if sha256(part) != wanted:
            raise Problem("what was written reads differently: the disk of the store is faulty")
    except Exception as error:
        if os.path.exists(part):
            os.unlink(part)
        if isinstance(error, (IOError, OSError)) and error.errno == errno.ENOSPC:
            raise Problem("the disk is full: nothing is stored")
        raise


def sweep(folder):
    """Remove what a broken connection left: a part, or an archive nothing is written beside."""
    names = set(os.listdir(folder))
    for name in names:
        if name.endswith(".part") or (name.endswith(SUFFIX) and name + ".json" not in names):
            os.unlink(os.path.join(folder, name))


def archives(folder):
    """Return what is written beside the archives of a folder, newest first."""
    found = [load(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(SUFFIX + ".json")]
    return sorted(found, key=lambda one: (one["at"], one["archive"]), reverse=True)


def kept(stamps, daily, weekly):
    """Of times of archives, return those to keep: the newest of each of so many days and weeks that have one.

    Days and weeks without an archive do not count, so archives that stopped coming are not thrown away one by one.
    """
    keep = set()
    for number, period in ((daily, _day), (weekly, _week)):
        periods = {}
        for stamp in sorted(stamps):
            periods[period(stamp)] = stamp
        keep.update(periods[name] for name in sorted(periods, reverse=True)[:number])
    return keep


def _day(stamp):
    return datetime.date.fromtimestamp(stamp).isoformat()


def _week(stamp):
    return "%04d-%02d" % datetime.date.fromtimestamp(stamp).isocalendar()[:2]


def retain(config, folder):
    """Remove archives beyond those to keep; damaged ones stay until somebody looked at them."""
    whole = [one for one in archives(folder) if not one["damaged"]]
    keep = kept([one["at"] for one in whole], config["keep_daily"], config["keep_weekly"])
    for one in whole[1:]:
        if one["at"] not in keep:
            os.unlink(os.path.join(folder, one["archive"]))
            os.unlink(os.path.join(folder, one["archive"] + ".json"))


def folders(config):
    """Return the nodes that have a folder."""
    return sorted(name for name in os.listdir(config["root"]) if os.path.isdir(os.path.join(config["root"], name)))


def check(config):
    """Read every archive again."""
    damaged = []
    for node in folders(config):
        folder = os.path.join(config["root"], node)
        for one in archives(folder):
            path = os.path.join(folder, one["archive"])
            if not os.path.exists(path):
                found = "it is not there"
            else:
                found = "" if sha256(path) == one["sha256"] else "its content changed"
            if found != one["damaged"]:
                save(path + ".json", dict(one, damaged=found))
            if found:
                damaged.append("%s: %s" % (one["archive"], found))
    save(os.path.join(config["root"], "checked.json"), {"at": int(time.time()), "damaged": damaged})
    if damaged:
        raise Problem("%d damaged: %s" % (len(damaged), "; ".join(damaged)))
    print("every archive is whole")


def status(config):
    """Return what there is, and how old."""
    nodes = {}
    for node in folders(config):
        found = archives(os.path.join(config["root"], node))
        whole = [one for one in found if not one["damaged"]]
        nodes[node] = {
            "age_hours": round((time.time() - whole[0]["at"]) / 3600.0, 1) if whole else None,
            "archives": [one["archive"] for one in found],
            "damaged": len(found) - len(whole),
            "megabytes": sum(one["size"] for one in found) // MEGABYTE,
            "newest": whole[0]["archive"] if whole else None,
        }
    damaged = sum(one["damaged"] for one in nodes.values())
    return {"nodes": nodes, "damaged": damaged, "free_mb": free_mb(config["root"])}


def has(config, node, word):
    """Whether a whole archive of the node carries the word."""
    folder = os.path.join(config["root"], node)
    return os.path.isdir(folder) and any(one["word"] == word and not one["damaged"] for one in archives(folder))


def command(arguments):
    """Do what the command line says."""
    config, what = configuration(arguments[0]), arguments[1]
    if what == "put":
        stream = getattr(sys.stdin, "buffer", sys.stdin)
        put(config, arguments[2], os.environ.get("SSH_ORIGINAL_COMMAND", ""), stream)
    elif what == "has":
        return 0 if has(config, arguments[2], arguments[3]) else 3
    elif what == "check":
        check(config)
    elif what == "status":
        json.dump(status(config), sys.stdout, indent=1, sort_keys=True)
    else:
        raise Problem("put, has, check or status, not %s" % what)
    return 0


if __name__ == "__main__":
    main(command)
