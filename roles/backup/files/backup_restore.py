# -*- coding: utf-8 -*-
"""On the node: show what a restore would replace, and restore. What is replaced is set aside. Python 2.7 and 3.

    backup_restore.py look RESULT SOURCE...                  what is there now, as JSON; changes nothing
    backup_restore.py put ARCHIVE FOLDER NEWER SOURCE...     NEWER: newer-ok, or newer-refused

Everything is unpacked and checked before the first source is replaced, and each source is replaced in one step. What
was stopped is started again whatever went wrong, and nothing decrypted is left.
"""

from __future__ import absolute_import, division, print_function

import contextlib
import errno
import json
import os
import pwd
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import backup_archive
from backup_common import Problem, load, main, need_room, run, sha256
from backup_sources import DUMP, STATE, copy_file, make_like, setting

RESERVE_MB = 64
ASIDE = "/var/lib/hal-backup/before"
# Left as the node has it, also when an older archive has it: a network change that waits for its confirmation would be
# undone by a former one's roll-back. Role network keeps it there.
NEVER = "/var/lib/hal/network"


def clock(stamp):
    """A time as people read it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp))


def active(unit):
    """Whether a unit runs."""
    with open(os.devnull, "wb") as nothing:
        return subprocess.call(["systemctl", "is-active", "--quiet", unit], stdout=nothing, stderr=nothing) == 0


def is_newer(stamp, manifest):
    """Whether something may have changed after the archive was made.

    A stamp of a database has whole seconds, as has the archive's own. What has the same one may be from after it.
    """
    return int(stamp) >= manifest["made"]


def chosen(manifest, names):
    """Return the sources of an archive by name."""
    have = {source["name"]: source for source in manifest["sources"]}
    for name in names:
        if name not in have:
            raise Problem("the archive has no %s; it has %s" % (name, ", ".join(sorted(have))))
    return [have[name] for name in names]


# ---------------------------------------------------------------- files
def _files_below(folder):
    for where, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(where, name)


def _restorable(source, places):
    """Of files in their places, those that a restore may replace: without what is left out of the archive."""
    out = [os.path.join(path, name) for path in source["paths"] for name in source.get("left_out", ())] + [NEVER]
    return [place for place in places if not any((place + "/").startswith(folder + "/") for folder in out)]


def look_at_files(source, manifest):
    """Files that are there, and the newest of them. The same content is not newer, whenever it was written."""
    found = []
    for path in source["paths"]:
        found += list(_files_below(path)) if os.path.isdir(path) else [path] if os.path.lexists(path) else []
    found = _restorable(source, found)
    if not found:
        return "nothing is there", False
    saved = manifest["files"]
    other = [path for path in found if os.path.islink(path) or sha256(path) != saved.get(source["name"] + path)]
    if not other:
        return "%d files, the same as in the archive" % len(found), False
    newest = max(os.lstat(path).st_mtime for path in other)
    return "%d files differ, the newest of %s" % (len(other), clock(newest)), is_newer(newest, manifest)


def prepare_files(source, folder):
    """Put the files that differ beside their places."""
    places = []
    try:
        for place in _restorable(source, ["/" + os.path.relpath(path, folder) for path in _files_below(folder)]):
            path = os.path.join(folder, place[1:])
            if os.path.islink(path) or not os.path.exists(place) or sha256(path) != sha256(place):
                if not os.path.isdir(os.path.dirname(place)):
                    make_like(os.path.dirname(path), os.path.dirname(place))
                places.append(place)
                copy_file(path, place + ".restoring")
    except Exception:
        forget_files(source, places)
        raise
    return places


def replace_files(source, places, aside):
    """Rename each into its place, keeping what was there."""
    for number, place in enumerate(places):
        try:
            if os.path.lexists(place):
                kept = os.path.join(aside, source["name"] + place)
                if not os.path.isdir(os.path.dirname(kept)):
                    os.makedirs(os.path.dirname(kept))
                copy_file(place, kept)
            os.rename(place + ".restoring", place)
        except EnvironmentError as error:
            raise Problem("%d of %d files were replaced: %s" % (number, len(places), words(error)))
    return "%d files replaced" % len(places)


def forget_files(source, places):
    """Remove what was prepared; once it is in its place there is nothing."""
    for place in places:
        if os.path.lexists(place + ".restoring"):
            os.unlink(place + ".restoring")


# ---------------------------------------------------------------- slurmctld's state
def look_at_slurm_state(source, manifest):
    """Whether slurmctld runs, and when it saved its jobs last.

    A node that was made anew has no slurm.conf before the restore writes it: then the folder is that of the archive.
    """
    conf = source["conf"]
    folder = setting(conf, "StateSaveLocation") if os.path.exists(conf) else source["location"]
    state = os.path.join(folder, "job_state")
    if not os.path.exists(state):
        return "no state is there", False
    words = "state of %s" % clock(os.stat(state).st_mtime)
    if active("slurmctld"):
        words += ", slurmctld runs"
        try:
            words += " with %d jobs" % len(run(["squeue", "--noheader", "--all"]).splitlines())
        except Problem:
            pass  # it does not answer: that is why somebody restores
    return words, is_newer(os.stat(state).st_mtime, manifest)


def prepare_slurm_state(source, folder):
    """Put the state beside its place, as slurm's own."""
    place = setting(source["conf"], "StateSaveLocation")
    if os.path.ismount(place):
        raise Problem("%s is a mount point, which cannot be exchanged: let StateSaveLocation be a folder below" % place)
    try:
        slurm = pwd.getpwnam("slurm")
    except KeyError:
        raise Problem("there is no user slurm: roll out the role slurm's installation first")
    beside = place + ".restoring"
    shutil.rmtree(beside, ignore_errors=True)
    try:
        shutil.copytree(os.path.join(folder, STATE), beside, symlinks=True)
        inside = [os.path.join(where, name) for where, dirs, names in os.walk(beside) for name in dirs + names]
        for path in [beside] + inside:
            os.lchown(path, slurm.pw_uid, slurm.pw_gid)
        os.chmod(beside, 0o700)
    except EnvironmentError as error:
        forget_slurm_state(source, place)
        raise Problem("%s cannot be written: %s" % (beside, words(error)))
    return place


def replace_slurm_state(source, place, aside):
    """Exchange the folders: a slurmctld that is started without its state kills what runs."""
    former = "%s.before-%s" % (place, os.path.basename(aside))
    if os.path.isdir(place):
        os.rename(place, former)
    try:
        os.rename(place + ".restoring", place)
    except EnvironmentError:
        if os.path.isdir(former):
            os.rename(former, place)
        raise
    return "restored; what was there is %s" % former if os.path.isdir(former) else "restored"


def forget_slurm_state(source, place):
    """Remove what was prepared; once it is in its place there is nothing."""
    shutil.rmtree(place + ".restoring", ignore_errors=True)


# ---------------------------------------------------------------- a database
def sql(source, statement, database="", stdin=None):
    """Return the rows that MariaDB answers, as lists of text."""
    argv = ["mysql", "--socket=" + source["socket"], "--user=root", "--batch", "--skip-column-names"]
    rows = run(argv + (["--execute=" + statement] if statement else []) + ([database] if database else []), stdin=stdin)
    return [line.split("\t") for line in rows.splitlines()]


def tables(source, database):
    """Return the names of a database's tables."""
    found = sql(source, "SELECT table_name FROM information_schema.tables WHERE table_schema = '%s'" % database)
    return sorted(row[0] for row in found)


def look_at_mariadb(source, manifest):
    """How many jobs slurmdbd's database has, and when it changed last."""
    if not os.path.exists(source["socket"]):
        return "MariaDB does not run", False
    names = tables(source, source["database"])
    if not names:
        return "no tables are there", False
    times, jobs = [0], 0
    for name in names:
        if name.endswith("_job_table"):
            count, newest = sql(
                source, "SELECT COUNT(*), COALESCE(MAX(mod_time), 0) FROM %s" % name, source["database"]
            )[0]
            jobs += int(count)
            times.append(int(newest))
        elif name == "txn_table":
            times.append(
                int(sql(source, "SELECT COALESCE(MAX(timestamp), 0) FROM txn_table", source["database"])[0][0])
            )
    words = "%d tables, %d jobs, last change %s" % (len(names), jobs, clock(max(times)) if max(times) else "never")
    if active("slurmdbd"):
        words += ", slurmdbd runs"
    return words, is_newer(max(times), manifest)


def prepare_mariadb(source, folder):
    """Load the dump into a database of its own."""
    if not os.path.exists(source["socket"]):
        raise Problem("MariaDB does not run: there is no %s" % source["socket"])
    dump = os.path.join(folder, DUMP)
    need_room(
        os.path.dirname(source["socket"]), 2 * os.path.getsize(dump), RESERVE_MB, "the dump of " + source["database"]
    )
    beside = source["database"] + "_restoring"
    sql(source, "DROP DATABASE IF EXISTS %s; CREATE DATABASE %s" % (beside, beside))
    try:
        with open(dump, "rb") as statements:
            sql(source, "", beside, stdin=statements)
        loaded = len(tables(source, beside))
        if loaded != source["tables"]:
            raise Problem("the dump gave %d tables; there were %d" % (loaded, source["tables"]))
    except Exception:
        forget_mariadb(source, beside)
        raise
    return beside


def replace_mariadb(source, beside, aside):
    """Exchange all tables in one statement, which MariaDB does wholly or not at all."""
    former = "%s_before_%s" % (source["database"], os.path.basename(aside))
    sql(source, "CREATE DATABASE IF NOT EXISTS %s" % source["database"])
    present = tables(source, source["database"])
    renames = ["%s.%s TO %s.%s" % (source["database"], name, former, name) for name in present]
    renames += ["%s.%s TO %s.%s" % (beside, name, source["database"], name) for name in tables(source, beside)]
    if present:
        sql(source, "CREATE DATABASE %s" % former)
    sql(source, "RENAME TABLE " + ", ".join(renames))
    return "restored; what was there is database %s" % former if present else "restored"


def forget_mariadb(source, beside):
    """Remove what was prepared; once it is in its place there is nothing."""
    sql(source, "DROP DATABASE IF EXISTS " + beside)


LOOK = {"files": look_at_files, "slurm_state": look_at_slurm_state, "mariadb": look_at_mariadb}
PREPARE = {"files": prepare_files, "slurm_state": prepare_slurm_state, "mariadb": prepare_mariadb}
REPLACE = {"files": replace_files, "slurm_state": replace_slurm_state, "mariadb": replace_mariadb}
FORGET = {"files": forget_files, "slurm_state": forget_slurm_state, "mariadb": forget_mariadb}


def look(manifest, names):
    """What is there now of each source, and whether it is newer than the archive. `id`: what is confirmed."""
    seen = []
    for source in chosen(manifest, names or [source["name"] for source in manifest["sources"]]):
        there, newer = LOOK[source["kind"]](source, manifest)
        line = "%s: %s%s" % (source["name"], there, ". NEWER than the archive" if newer else "")
        if source.get("stops"):
            line += "; stops %s meanwhile" % ", ".join(source["stops"])
        seen.append(
            {
                "name": source["name"],
                "kind": source["kind"],
                "there": there,
                "newer": newer,
                "line": line,
                "id": "%s %s" % (source["name"], newer),
            }
        )
    return {"made": clock(manifest["made"]), "sources": seen}


def put(archive, work, newer_ok, names):
    """Restore sources of a decrypted archive."""
    manifest = backup_archive.check(archive)
    sources = chosen(manifest, names)
    for seen in look(manifest, names)["sources"]:
        if seen["newer"] and not newer_ok:
            raise Problem(
                "%s is newer than the archive (%s): %s" % (seen["name"], clock(manifest["made"]), seen["there"])
            )
    need_room(work, 3 * os.path.getsize(archive), RESERVE_MB, "the unpacked archive")
    folder = tempfile.mkdtemp(prefix="unpacked-", dir=work)
    ready, stopped, done, failed = [], [], [], []
    try:
        _unpack(archive, folder, names)
        for source in sources:
            ready.append((source, PREPARE[source["kind"]](source, os.path.join(folder, source["name"]))))
        _stop(sources, stopped)
        _replace(ready, done)
    except (Problem, tarfile.TarError, EnvironmentError) as error:
        failed.append(words(error))
    finally:
        failed += _clean_up(ready, folder, stopped)
    if failed:
        raise Problem(". ".join(failed + (["Replaced already: " + "; ".join(done)] if done else [])))
    return done


def words(error):
    """What an error says, in one line."""
    if getattr(error, "errno", None) == errno.ENOSPC:
        return "the disk is full: %s" % (error.filename or error.strerror)
    if getattr(error, "strerror", None):
        return "%s: %s" % (error.filename, error.strerror) if error.filename else error.strerror
    return " ".join(str(error).split())


def _unpack(archive, folder, names):
    """Take the chosen sources out, with owners by name: a rebuilt node may have other numbers."""
    with contextlib.closing(tarfile.open(archive, "r:gz")) as content:
        wanted = [member for member in content if member.name.split("/")[0] in names]
        content.extractall(folder, members=wanted)


def _stop(sources, stopped):
    for unit in [unit for source in sources for unit in source.get("stops", [])]:
        if unit not in stopped and active(unit):
            stopped.append(unit)  # before it is: one that stops half is started again as well
            run(["systemctl", "stop", unit])


def _replace(ready, done):
    aside = os.path.join(ASIDE, time.strftime("%Y%m%dT%H%M%S"))
    for source, what in ready:
        try:
            done.append("%s: %s" % (source["name"], REPLACE[source["kind"]](source, what, aside)))
        except (Problem, EnvironmentError) as error:
            raise Problem("%s: %s" % (source["name"], words(error)))


def _clean_up(ready, folder, stopped):
    """Do all of it, whatever fails; return what failed."""
    steps = []
    for source, what in ready:
        steps.append((FORGET[source["kind"]], (source, what), "%s: what was prepared is left" % source["name"]))
    steps.append((shutil.rmtree, (folder,), "%s is left, with what was decrypted" % folder))
    steps += [(run, (["systemctl", "start", unit],), "%s was NOT STARTED AGAIN" % unit) for unit in stopped]
    failed = []
    for step, arguments, problem in steps:
        try:
            step(*arguments)
        except (Problem, EnvironmentError) as error:
            failed.append("%s: %s" % (problem, words(error)))
    return failed


def command(arguments):
    """Do what the command line says."""
    if arguments[0] == "look":
        json.dump(look(load(arguments[1])["manifest"], arguments[2:]), sys.stdout, indent=1, sort_keys=True)
    elif arguments[0] == "put":
        print("\n".join(put(arguments[1], arguments[2], arguments[3] == "newer-ok", arguments[4:])))
    else:
        raise Problem("look or put, not %s" % arguments[0])
    return 0


if __name__ == "__main__":
    main(command)
