# -*- coding: utf-8 -*-
"""What a source is, and its copy in a folder, so that what is copied belongs together. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import contextlib
import errno
import os
import re
import shutil
import stat
import time

from backup_common import Problem, native, run

DUMP = "dump.sql"
STATE = "state"
END_OF_DUMP = b"-- Dump completed"
TRIES = 40  # of 50 ms: how long a file may be away while its daemon exchanges it
NEEDED = {"files": ("paths",), "slurm_state": ("conf",), "mariadb": ("database", "socket")}
LISTS = ("paths", "left_out", "stops")
"""What a source of a kind has to say, and what of it is a list. Beside that: location, of kind slurm_state."""


def declared(sources):
    """Return the sources of `backup_sources` with normal paths; refuse what says nothing, or something twice."""
    names = [source.get("name") for source in sources]
    for source in sources:
        name, kind = source.get("name"), source.get("kind")
        if kind not in NEEDED or not isinstance(name, str) or not re.match(r"[\w.-]+\Z", name) or name in (".", ".."):
            raise Problem("backup_sources: %s of kind %s; kinds are %s" % (name, kind, ", ".join(sorted(NEEDED))))
        if names.count(name) > 1:
            raise Problem("backup_sources declares %s twice for this node, and not alike" % name)
        for key in NEEDED[kind]:
            if not source.get(key):
                raise Problem("backup_sources: %s of kind %s does not say its %s" % (name, kind, key))
        for key in LISTS:
            if not isinstance(source.get(key, []), list):
                raise Problem("backup_sources: %s of %s has to be a list, not %s" % (key, name, source[key]))
        for path in source.get("paths", []):
            if not isinstance(path, str) or not path.startswith("/") or ".." in path.split("/") or not path.strip("/."):
                raise Problem("backup_sources: %s of %s has to begin with / and be below it, without .." % (path, name))
    return [
        dict(source, paths=[os.path.normpath("/" + path.lstrip("/")) for path in source["paths"]])
        if "paths" in source
        else source
        for source in sources
    ]


def give(path, seen):
    """Give a copy the owner of what it is a copy of. At the controller that is an ordinary user, who keeps it."""
    if os.geteuid() == 0:
        os.lchown(path, seen.st_uid, seen.st_gid)


def copy_file(source, target):
    """Copy a file or link with owner, mode and time. The target is new: nothing is written through what is there."""
    seen = os.lstat(source)
    if stat.S_ISLNK(seen.st_mode):
        forget(target)
        os.symlink(os.readlink(source), target)
        give(target, seen)
    elif stat.S_ISREG(seen.st_mode):
        forget(target)
        # Not to wait for a writer: a pipe may have come instead.
        with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as content:
            handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as copy:
                shutil.copyfileobj(content, copy)
                copy.flush()
                if os.geteuid() == 0:
                    os.fchown(copy.fileno(), seen.st_uid, seen.st_gid)
                os.fchmod(copy.fileno(), stat.S_IMODE(seen.st_mode))
                os.utime("/proc/self/fd/%d" % copy.fileno(), (seen.st_atime, seen.st_mtime))


def forget(path):
    """Remove a file or link that may be there."""
    if os.path.lexists(path):
        os.unlink(path)


def make_like(model, folder):
    """Make a folder, and those above it that are missing, with mode and owner of another one."""
    if not os.path.isdir(os.path.dirname(folder)):
        make_like(os.path.dirname(model), os.path.dirname(folder))
    seen = os.stat(model)
    os.mkdir(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.geteuid() == 0:
            os.fchown(handle, seen.st_uid, seen.st_gid)
        os.fchmod(handle, stat.S_IMODE(seen.st_mode))
    finally:
        os.close(handle)


def _is_folder(path):
    """Whether it is a folder, and not a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


@contextlib.contextmanager
def _held(folder):
    """A name that leads to a folder whatever its owner puts there meanwhile: root would follow the owner's link."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    here = "/proc/self/fd/%d" % handle
    try:
        yield here
    except EnvironmentError as error:
        if error.filename:
            error.filename = error.filename.replace(here + "/", folder + "/")
        raise
    finally:
        os.close(handle)


def copy_tree(source, target, left_out=()):
    """Copy a folder; what vanishes meanwhile was temporary. `left_out`: paths from its top, as a name or a/b."""
    if not os.path.isdir(target):
        os.makedirs(target)
    with _held(source) as here:
        for name in sorted(os.listdir(here)):
            if name in left_out:
                continue
            below = os.path.join(here, name)
            out = [path[len(name) + 1 :] for path in left_out if path.startswith(name + "/")]
            try:
                if _is_folder(below):
                    copy_tree(below, os.path.join(target, name), out)
                else:
                    copy_file(below, os.path.join(target, name))
            except (IOError, OSError) as error:
                if error.errno != errno.ENOENT:
                    raise
        shutil.copystat(here, target)
        give(target, os.stat(here))


def save_files(source, into):
    """Copy the declared files and folders. Below `into` each has its own path."""
    left_out = source.get("left_out", ())
    for path in source["paths"]:
        target = os.path.join(into, path.lstrip("/"))
        if not os.path.lexists(path):
            raise Problem("%s: %s is not there" % (source["name"], path))
        if not os.path.isdir(os.path.dirname(target)):
            make_like(os.path.dirname(path), os.path.dirname(target))
        if os.path.isdir(path):
            copy_tree(os.path.realpath(path), target, left_out)
        else:
            copy_file(path, target)
    return {}


def setting(path, name):
    """Return a value of slurm.conf."""
    try:
        with open(path, "rb") as conf:
            values = re.findall(r"(?im)^\s*%s\s*=\s*(\S+)" % name, conf.read().decode("utf-8", "replace"))
    except (IOError, OSError) as error:
        raise Problem("%s cannot be read: %s" % (path, error.strerror))
    if not values:
        raise Problem("%s has no %s" % (path, name))
    return native(values[-1])


def save_slurm_state(source, into):
    """Copy StateSaveLocation while slurmctld runs.

    slurmctld writes each file anew (x.new), links the former one to x.old and takes x away before it puts the new one
    there. So a file is whole whenever it is there, and may be missing for a moment. State files come first and the
    folders with the jobs' scripts after them: a job that the copied state has then also has its script, unless it
    ended meanwhile.
    """
    folder = setting(source["conf"], "StateSaveLocation")
    if not os.path.isdir(folder):
        raise Problem("%s: %s, the StateSaveLocation of %s, is not there" % (source["name"], folder, source["conf"]))
    target = os.path.join(into, STATE)
    os.makedirs(target)
    names = [name for name in os.listdir(folder) if not _is_folder(os.path.join(folder, name))]
    wanted = {name[:-4] if name.endswith((".old", ".new")) else name for name in names}
    for name in sorted(wanted):
        _copy_exchanged(folder, name, target)
    if "clustername" not in wanted:
        raise Problem("%s: %s has no clustername: slurmctld has never run with it" % (source["name"], folder))
    # A controller that just started for the first time has none yet.
    if "job_state" in wanted and not os.path.exists(os.path.join(target, "job_state")):
        raise Problem("%s: %s has no job_state but a former one: look at slurmctld's log" % (source["name"], folder))
    for name in sorted(os.listdir(folder)):
        if _is_folder(os.path.join(folder, name)):
            copy_tree(os.path.join(folder, name), os.path.join(target, name))
    seen = os.lstat(folder)
    shutil.copystat(folder, target)
    give(target, seen)
    return {}


def _copy_exchanged(folder, name, target):
    for _ in range(TRIES):
        try:
            return copy_file(os.path.join(folder, name), os.path.join(target, name))
        except (IOError, OSError) as error:
            if error.errno != errno.ENOENT:
                raise
            if not os.path.lexists(os.path.join(folder, name + ".old")):
                return None  # gone for good
            time.sleep(0.05)
    return None


def save_mariadb(source, into):
    """Dump one database as it is at one moment; nobody waits for it.

    Root comes in over the socket, as the system's root. A site that gave it a password has it in root's ~/.my.cnf,
    which the programs read themselves: there is no password on a command line.
    """
    path = os.path.join(into, DUMP)
    argv = ["mysqldump", "--socket=" + source["socket"], "--user=root", "--single-transaction", "--quick", "--hex-blob"]
    with open(path, "wb") as dump:
        run(argv + [source["database"]], stdout=dump)
    with open(path, "rb") as dump:
        dump.seek(max(0, os.path.getsize(path) - 200))
        if END_OF_DUMP not in dump.read():
            raise Problem("%s: mysqldump ended early: its last line is missing" % source["name"])
    tables = 0
    with open(path, "rb") as dump:
        for line in dump:
            tables += line.startswith(b"CREATE TABLE ")
    return {"tables": tables}


KINDS = {"files": save_files, "slurm_state": save_slurm_state, "mariadb": save_mariadb}


def save(source, into):
    """Copy one source into a new folder; return what a restore has to know beside the declaration."""
    os.makedirs(into)
    try:
        return KINDS[source["kind"]](source, into)
    except (IOError, OSError) as error:
        raise Problem("%s: %s: %s" % (source["name"], error.filename or into, error.strerror))
