# -*- coding: utf-8 -*-
"""On the node: show what a restore would replace, and restore. What is replaced is set aside. Python 2.7 and 3.

    backup_restore.py look RESULT                        what is there now, as JSON; changes nothing
    backup_restore.py put RESULT ARCHIVE FOLDER NEWER    NEWER: newer-ok, or newer-refused

RESULT is what backup_open.py found at the controller: what of the archive belongs where, as the role declares it.
Everything is unpacked and checked before the first source is replaced, and each is replaced as a whole or not at all.
What was stopped is started again whatever went wrong, and nothing decrypted is left.
"""

from __future__ import absolute_import, division, print_function

import contextlib
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
import time

import backup_archive
import restore_files
import restore_mariadb
import restore_slurm_state
from backup_common import Problem, clock, dumped, known, load, locked, main, need_room, run, shown
from hal_node.digest import sha256_of
from restore_common import RESERVE_MB, active, words

ASIDE = "/var/lib/hal-backup/before"
"""In the folder in which the nightly job works; its lock is there."""
KINDS = {"files": restore_files, "slurm_state": restore_slurm_state, "mariadb": restore_mariadb}
"""Each has look, prepare, replace and forget."""


def look(result):
    """What is there now of each source, and whether it is newer than the archive. `id`: what is confirmed."""
    seen = []
    for source in result["sources"]:
        there, newer, paths = KINDS[source["kind"]].look(source, result["made"])
        line = "%s: %s%s" % (source["name"], there, ". NEWER than the archive" if newer else "")
        if source.get("stops"):
            line += "; stops %s meanwhile" % ", ".join(source["stops"])
        seen.append(
            {
                "name": source["name"],
                "kind": source["kind"],
                "there": there,
                "newer": newer,
                "lines": [line] + ["  " + path for path in paths],
                "id": "%s %s %s" % (source["name"], newer, _declared(source)),
            }
        )
    return {"made": clock(result["made"]), "sources": seen}


def _declared(source):
    """A digest of what is restored where, and what is stopped for it."""
    return hashlib.sha256(dumped(source).encode("ascii")).hexdigest()


def put(result, archive, work, newer_ok):
    """Restore sources of a decrypted archive, while nothing else restores or saves: two would mix what they prepare."""
    folder = os.path.dirname(ASIDE)
    if not os.path.isdir(folder):
        os.mkdir(folder, 0o700)  # role backup makes it, after a restore of a node that was made anew
    with locked(os.path.join(folder, "lock"), "a backup, or another restore, runs on this node: wait for its end"):
        return _put(result, archive, work, newer_ok)


def _put(result, archive, work, newer_ok):
    sources = result["sources"]
    _check(archive, result)
    for seen in look(result)["sources"]:
        if seen["newer"] and not newer_ok:
            made = clock(result["made"])
            raise Problem("%s is newer than the archive (%s): %s" % (seen["name"], made, seen["there"]))
    size = sum(entry["size"] for source in sources for entry in source["entries"].values())
    need_room(work, size, RESERVE_MB, "the unpacked archive")
    folder = tempfile.mkdtemp(prefix="unpacked-", dir=work)
    ready, stopped, done, failed = [], [], [], []
    try:
        _unpack(archive, folder, sources)
        for source in sources:
            ready.append((source, KINDS[source["kind"]].prepare(source, os.path.join(folder, source["name"]))))
        _stop(sources, stopped)
        _replace(ready, done)
    except Exception as error:
        failed.append(words(error))
    finally:
        failed += _clean_up(ready, folder, stopped)
    if failed:
        raise Problem(". ".join(failed + (["Replaced already: " + "; ".join(done)] if done else [])))
    return done


def _check(archive, result):
    """Read it with this node's Python, which may take a member for something else than the controller's did."""
    if sha256_of(archive) != result["plain_sha256"]:
        raise Problem("%s is not what the controller has read" % archive)
    _, entries = backup_archive.check(archive)
    for source in result["sources"]:
        for name in sorted(source["entries"]):
            if entries.get(name) != source["entries"][name]:
                raise Problem("this node reads %s of the archive otherwise than the controller did" % shown(name))


def _unpack(archive, folder, sources):
    """Take the sources' entries out, with owners by name: a rebuilt node may have other numbers."""
    permitted = {name for source in sources for name in source["entries"]}
    with contextlib.closing(tarfile.open(archive, "r:gz")) as content:
        # What is unpacked was looked at already; Pythons that do that as well do it each in its own way.
        content.extraction_filter = lambda member, path: member
        content.extractall(folder, members=[member for member in content if known(member.name) in permitted])


def _stop(sources, stopped):
    for unit in [unit for source in sources for unit in source.get("stops", [])]:
        if unit not in stopped and active(unit):
            stopped.append(unit)  # before it is: one that stops half is started again as well
            run(["systemctl", "stop", unit])


def _replace(ready, done):
    aside = os.path.join(ASIDE, time.strftime("%Y%m%dT%H%M%S"))
    for source, what in ready:
        try:
            done.append("%s: %s" % (source["name"], KINDS[source["kind"]].replace(source, what, aside)))
        except (Problem, EnvironmentError) as error:
            raise Problem("%s: %s" % (source["name"], words(error)))


def _clean_up(ready, folder, stopped):
    """Do all of it, whatever fails; return what failed."""
    steps = []
    for source, what in ready:
        steps.append((KINDS[source["kind"]].forget, (source, what), "%s: what was prepared is left" % source["name"]))
    steps.append((shutil.rmtree, (folder,), "%s is left, with what was decrypted" % folder))
    steps += [(run, (["systemctl", "start", unit],), "%s was NOT STARTED AGAIN" % unit) for unit in stopped]
    failed = []
    for step, arguments, problem in steps:
        try:
            step(*arguments)
        except Exception as error:
            failed.append("%s: %s" % (problem, words(error)))
    return failed


def command(arguments):
    """Do what the command line says."""
    if arguments[0] not in ("look", "put"):
        raise Problem("look or put, not %s" % arguments[0])
    result = load(arguments[1])
    if arguments[0] == "look":
        sys.stdout.write(dumped(look(result)))
    else:
        print("\n".join(put(result, arguments[2], arguments[3], arguments[4] == "newer-ok")))
    return 0


if __name__ == "__main__":
    main(command)
