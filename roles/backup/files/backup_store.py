# -*- coding: utf-8 -*-
"""The server's side: take archives, keep the declared number, check that they are what was sent. Python 2.7 and 3.

    backup_store.py CONFIG put NODE        what a node's certificate runs; what it asks for is in SSH_ORIGINAL_COMMAND
    backup_store.py CONFIG has NODE WORD   exit status 0 when a whole archive carries this word
    backup_store.py CONFIG check           read every archive again (nightly)
    backup_store.py CONFIG status          JSON

A node can add an archive to its own folder and nothing else: it cannot read, list or remove one.
"""

from __future__ import absolute_import, division, print_function

import errno
import hashlib
import os
import re
import select
import sys
import time

import backup_folder
from backup_common import (
    MEGABYTE,
    Problem,
    configuration,
    dumped,
    free_mb,
    locked,
    made_at,
    main,
    save,
)
from hal_node.digest import sha256_of, sha256_of_rest
from backup_folder import BESIDE, PART, archives

ASKED = re.compile(
    r"put (?P<name>[A-Za-z0-9_.-]+) (?P<size>[0-9]{1,15}) (?P<sha256>[0-9a-f]{64})"
    r"(?: signature=(?P<signature>[A-Za-z0-9+/]{1,400}={0,2}))?(?: (?P<word>[0-9a-f]{64}))?"
)
SILENCE_SECONDS = 600
"""How long a sender may send nothing: one that is gone must not keep its node's place."""


def put(config, node, asked, stream):
    """Take one archive; it has its name only when it was written, read again and found whole."""
    match = ASKED.match(asked)
    if not match or match.end() != len(asked):
        raise Problem("only 'put NAME SIZE SHA256' is answered here")
    name, size = match.group("name"), int(match.group("size"))
    if made_at(node, name) is None:
        raise Problem("%s is not a name of an archive of %s" % (name, node))
    folder = os.path.join(config["root"], node)
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)
    path, part = os.path.join(folder, name), os.path.join(folder, PART)
    with locked(part, "another archive of %s arrives just now" % node):
        try:
            with backup_folder.changing(folder):
                backup_folder.sweep(folder)
                backup_folder.retain(config, folder)
                backup_folder.admit(config, node, folder, name, size)
            _receive(stream, part, size, match.group("sha256"))
            beside = {"archive": name, "at": int(time.time()), "sha256": match.group("sha256"), "size": size}
            for key in ("word", "signature"):
                beside[key] = match.group(key) or ""
            with backup_folder.changing(folder):
                os.rename(part, path)
                try:
                    save(path + BESIDE, dict(beside, damaged=""))
                except BaseException:
                    os.rename(path, part)
                    raise
        except BaseException:
            os.unlink(part)
            raise
    print("stored %s %s" % (name, match.group("sha256")))


def _receive(stream, part, size, wanted):
    digest, got = hashlib.sha256(), 0
    try:
        with open(part, "wb") as target:
            for block in iter(lambda: _block(stream), b""):
                got += len(block)
                if got > size:
                    break
                digest.update(block)
                target.write(block)
            target.flush()
            os.fsync(target.fileno())
    except (IOError, OSError) as error:
        if error.errno == errno.ENOSPC:
            raise Problem("the disk is full: nothing is stored")
        raise
    if got != size or digest.hexdigest() != wanted:
        raise Problem("%d bytes came, %d were announced: nothing is stored" % (got, size))
    if sha256_of(part) != wanted:
        raise Problem("what was written reads differently: the disk of the store is faulty")


def _block(stream):
    """Return what came next; empty at the end."""
    if not select.select([stream], [], [], SILENCE_SECONDS)[0]:
        raise Problem("nothing came for %d s: nothing is stored" % SILENCE_SECONDS)
    return os.read(stream.fileno(), MEGABYTE)


def folders(config):
    """Return the nodes that have a folder."""
    return sorted(name for name in os.listdir(config["root"]) if os.path.isdir(os.path.join(config["root"], name)))


def check(config):
    """Read every archive again. One that is removed meanwhile is not missing."""
    wrong = []
    for node in folders(config):
        folder = os.path.join(config["root"], node)
        with backup_folder.changing(folder):
            backup_folder.sweep(folder)
        for archive in archives(folder):
            path = os.path.join(folder, archive["archive"])
            damage = _damage(path, archive["sha256"])
            with backup_folder.changing(folder):
                if not os.path.exists(path + BESIDE):
                    continue
                if damage != archive["damaged"]:
                    save(path + BESIDE, dict(archive, damaged=damage))
            if damage:
                wrong.append("%s: %s" % (archive["archive"], damage))
    if wrong:
        raise Problem("%d damaged: %s" % (len(wrong), "; ".join(wrong)))
    print("every archive is whole")


def _damage(path, wanted):
    """What is wrong with an archive; empty when nothing is."""
    try:
        with open(path, "rb") as archive:
            return "" if sha256_of_rest(archive) == wanted else "its content changed"
    except (IOError, OSError) as error:
        return "it is not there" if error.errno == errno.ENOENT else "it cannot be read: %s" % error.strerror


def status(config):
    """Return what there is, and how old."""
    nodes = {}
    for node in folders(config):
        folder = os.path.join(config["root"], node)
        listed = archives(folder)
        whole = [archive for archive in listed if not archive["damaged"]]
        nodes[node] = {
            "age_hours": round((time.time() - whole[0]["at"]) / 3600.0, 1) if whole else None,
            "archives": [archive["archive"] for archive in listed],
            "aside": backup_folder.aside(folder),
            "damaged": len(listed) - len(whole),
            "megabytes": sum(archive["size"] for archive in listed) // MEGABYTE,
            "newest": whole[0]["archive"] if whole else None,
        }
    return {
        "nodes": nodes,
        "aside": sum(len(facts["aside"]) for facts in nodes.values()),
        "damaged": sum(facts["damaged"] for facts in nodes.values()),
        "free_mb": free_mb(config["root"]),
    }


def has(config, node, word):
    """Whether a whole archive of the node carries the word."""
    folder = os.path.join(config["root"], node)
    return os.path.isdir(folder) and any(
        archive["word"] == word and not archive["damaged"] for archive in archives(folder))


def command(arguments):
    """Do what the command line says."""
    config, what = configuration(arguments[0]), arguments[1]
    if what == "put":
        put(config, arguments[2], os.environ.get("SSH_ORIGINAL_COMMAND", ""), sys.stdin)
    elif what == "has":
        return 0 if has(config, arguments[2], arguments[3]) else 3
    elif what == "check":
        check(config)
    elif what == "status":
        sys.stdout.write(dumped(status(config)))
    else:
        raise Problem("put, has, check or status, not %s" % what)
    return 0


if __name__ == "__main__":
    main(command)
