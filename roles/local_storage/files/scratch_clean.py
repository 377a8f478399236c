# -*- coding: utf-8 -*-
"""Remove from scratch what nobody has used for some days. Python 2.7 and 3.

hal-scratch-clean                clean up as /etc/hal-scratch-clean.json says
hal-scratch-clean --dry-run      show what it would remove, and remove nothing
hal-scratch-clean --permission   say what keeps it from removing anything; print nothing if it may
hal-scratch-clean --permit CODE  permit the rules of this code; with a wrong code show what it would remove

It removes nothing before its rules are permitted: by their code, because scratch was empty when they were new, or
because it followed them here before it asked for a code.
Other rules (folder, days, disk, whether Slurm is asked) have another code.

Spared: everything of a user with a job on this node and of its subordinate ids (/etc/subuid), what is open, other
file systems, what links lead to. A file counts as used when it was read, written or put there: the latest of the three
times. Folders go when they have been empty for so long.
Slurm is asked again for half an hour when it does not answer: it is restarted at night too.
Exit status: 0 done, or nothing was removed (Slurm is not installed yet, or the rules are not permitted); 1 something
could not be removed; 3 Slurm did not answer or scratch is not there: nothing, or nothing more, was removed.
"""

from __future__ import absolute_import, division, print_function

import argparse
import errno
import hashlib
import io
import json
import os
import pwd
import stat
import subprocess
import sys
import time

from hal_node.printable import say
from hal_node.slurm.drains import BUSY
from hal_node.text import name_of

__metaclass__ = type

CONFIG = "/etc/hal-scratch-clean.json"
PERMITTED = "/var/lib/hal-scratch-clean/permitted"  # the code of the rules that it may remove by
SUBUID = "/etc/subuid"
RULES = 1  # another number where this program spares less than before
MOST_OWNERS = 5
ASK_SECONDS = 60  # jobs begin while it works
PATIENCE_SECONDS, PAUSE_SECONDS = 1800, 30
NO_SUCH_PROGRAM = 127  # what timeout(1) ends with then
DEEPEST = 400  # each level keeps a folder open
DAY = 86400


class Stop(Exception):
    """It is not known what may be removed."""


class NoSlurm(Exception):
    """Slurm is not installed: a rollout that began at this hour has not come so far, or its role says what is wrong."""


def users_with_jobs(node):
    """Return the ids of users with a job on this node, subordinate ones included.

    Stop: Slurm cannot say. NoSlurm: it is not installed.
    """
    argv = ["timeout", "30", "squeue", "--noheader", "--nodelist", node, "--states", BUSY, "--format", "%U"]
    try:
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise Stop("squeue: %s" % error)
    out, err = process.communicate()
    if process.returncode == NO_SUCH_PROGRAM:
        raise NoSlurm()
    if process.returncode != 0:
        said = err.strip().splitlines()
        raise Stop("squeue: %s" % (name_of(said[-1]) if said else "no answer (status %d)" % process.returncode))
    ids = out.decode("ascii", "replace").split()
    if [uid for uid in ids if not uid.isdigit()]:
        raise Stop("squeue printed something else than user ids")
    uids = frozenset(int(uid) for uid in ids)
    return Owners(uids, subordinate(uids, SUBUID) if uids else [])


def patient(jobs, seconds):
    """Return what `jobs` does, which is asked again for so many seconds as long as it raises Stop."""
    until = time.time() + seconds
    while True:
        try:
            return jobs()
        except Stop as error:
            if time.time() >= until:
                raise
            say("%s; asked again in %d s" % (error, PAUSE_SECONDS), sys.stderr)
            time.sleep(PAUSE_SECONDS)


class Owners(object):
    """Ids of users, and the ranges of ids that their containers make files with: Singularity's --fakeroot, say."""

    def __init__(self, ids, ranges):
        self.ids, self.ranges = ids, ranges

    def __contains__(self, uid):
        return uid in self.ids or any(first <= uid < first + count for first, count in self.ranges)


def subordinate(ids, path):
    """Return (first, count) of the ranges that subuid(5) gives these users; all of them when a user has no name now."""
    names = {str(uid) for uid in ids}
    try:
        names.update(pwd.getpwuid(uid).pw_name for uid in ids)
    except KeyError:
        names = None
    if not os.path.exists(path):
        return []
    with io.open(path, encoding="utf-8", errors="replace") as stream:
        fields = [line.strip().split(":") for line in stream]
    return [
        (int(entry[1]), int(entry[2]))
        for entry in fields
        if len(entry) == 3 and entry[1].isdigit() and entry[2].isdigit() and (names is None or entry[0] in names)
    ]


def open_files(proc="/proc"):
    """Return (device, inode) of all that processes have open, mapped or as their folder."""
    files = set()
    for pid in os.listdir(proc):
        if not pid.isdigit():
            continue
        folder = os.path.join(proc, pid)
        for part in ("fd", "map_files"):
            try:
                links = [os.path.join(folder, part, name) for name in os.listdir(os.path.join(folder, part))]
            except OSError:
                continue  # it has ended
            for link in links:
                note(files, link)
        for link in ("cwd", "exe", "root"):
            note(files, os.path.join(folder, link))
    return files


def note(files, link):
    """Add what a link of /proc leads to."""
    try:
        status = os.stat(link)
    except OSError:
        return
    files.add((status.st_dev, status.st_ino))


def mount_points(text):
    """Return the mount points of /proc/self/mountinfo; one of the same device may be below scratch."""
    return frozenset(
        line.split()[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        for line in text.splitlines()
        if len(line.split()) > 4
    )


def check_place(top, device, beside):
    """Raise Stop unless scratch is this node's own: on the declared device, or on the file system of a folder.

    A file system of the cluster that somebody mounts there has files of jobs on other nodes.
    """
    try:
        actual = os.stat(top).st_dev
        wanted = os.stat(device).st_rdev if device else os.stat(beside).st_dev
    except OSError as error:
        raise Stop("%s: %s" % (error.filename, error.strerror))
    if actual != wanted:
        raise Stop("%s is not on %s" % (top, device or "the file system of " + beside))


def code_of(declared):
    """Return the code of the rules: the same on all nodes that have the same rules."""
    rules = [RULES, declared["mount"], int(declared["days"]), bool(declared["slurm"]), bool(declared["device"])]
    digest = hashlib.sha256(json.dumps(rules).encode("ascii")).hexdigest()
    return "%s-%s" % (digest[:4], digest[4:8])


def permitted(declared, record):
    """Return whether these rules were permitted on this node."""
    if not os.path.exists(record):
        return False
    with io.open(record, encoding="ascii", errors="replace") as stream:
        return stream.read().strip() == code_of(declared)


def permit(declared, code, served, record, waiting):
    """Permit the rules by their code, because they have served here, or because nothing is in scratch; else print the
    lines of `waiting`.
    """
    if permitted(declared, record):
        return
    if not served and code.strip().lower() != code_of(declared) and os.listdir(declared["mount"]):
        for text in waiting():
            say(text)
        return
    with io.open(record + ".new", "w", encoding="ascii") as stream:
        stream.write(u"%s\n" % code_of(declared))
    os.rename(record + ".new", record)
    print("permitted")


def would_go(declared, cleaner, spared):
    """Return lines about what rules that nobody permitted would remove now, and the code that permits them."""
    amount = "%d files (%d MiB) and %d folders" % (cleaner.files, cleaner.size // 2 ** 20, cleaner.folders)
    owners = sorted(cleaner.owners.items(), key=lambda pair: (-pair[1], pair[0]))
    most = ["%s %d" % (user(uid), count) for uid, count in owners[:MOST_OWNERS]]
    more = ["%d more owners" % (len(owners) - MOST_OWNERS)] if len(owners) > MOST_OWNERS else []
    return [
        "The clean-up of %s is off: nobody has permitted its rules, and files are there. It would remove what was not"
        " used for %s days%s: now %s%s. hal-scratch-clean --dry-run lists them" % (
            declared["mount"], declared["days"], spared, amount, " (%s)" % ", ".join(most + more) if most else ""),
        "If that is right: local_storage_scratch_confirmed: %s in group_vars; it fits these rules alone, on every node"
        % code_of(declared),
    ]


def user(uid):
    """Return who that is, the number where nobody has it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return "%d" % uid


class Cleaner(object):
    """One run. `jobs` returns the owners to spare, and may raise Stop."""

    def __init__(self, top, days, jobs, now, opened=frozenset(), mounts=frozenset(), remove=True, say=None):
        self.top, self.jobs, self.opened, self.mounts, self.remove = top, jobs, opened, mounts, remove
        self.limit = now - days * DAY
        self.say = say or (lambda text: None)
        self.asked, self.busy = None, frozenset()
        self.files = self.folders = self.size = 0
        self.owners = {}
        self.problems = []

    def run(self):
        """Clean up. Every step goes by a folder that is held open: a name swapped meanwhile leads nowhere else."""
        try:
            top = os.open(self.top, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise Stop("%s: %s" % (self.top, error.strerror))
        before = os.open(".", os.O_RDONLY)
        try:
            self.device = os.fstat(top).st_dev
            self.ask()
            self.folder(top, self.top, 0)
        finally:
            os.fchdir(before)
            os.close(before)
            os.close(top)

    def ask(self):
        """Find out again, now and then, whose files are spared."""
        if self.asked is None or time.time() - self.asked > ASK_SECONDS:
            self.busy, self.asked = self.jobs(), time.time()

    def folder(self, handle, path, depth):
        """Clean one folder, which is open; return whether nothing is left in it."""
        left = 0
        os.fchdir(handle)
        try:
            names = sorted(os.listdir("."))
        except OSError as error:
            self.problems.append("%s: %s" % (path, error.strerror))
            return False
        for name in names:
            self.ask()
            here = os.path.join(path, name)
            os.fchdir(handle)
            try:
                status = os.lstat(name)
                if stat.S_ISDIR(status.st_mode):
                    gone = self.below(name, here, status, handle, depth)
                else:
                    gone = self.file(name, here, status)
            except OSError as error:
                gone = error.errno == errno.ENOENT  # its owner was quicker
                if not gone:
                    self.problems.append("%s: %s" % (here, error.strerror))
            left += not gone
        return left == 0

    def below(self, name, path, status, parent, depth):
        """Clean a folder, and remove it when it has been empty for long; return whether it is gone."""
        if path in self.mounts or status.st_dev != self.device:
            return False
        if depth >= DEEPEST:
            self.problems.append("%s: folders nested too deeply" % path)
            return False
        handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            opened = os.fstat(handle)
            if opened.st_dev != self.device:
                return False
            empty = self.folder(handle, path, depth + 1)
        finally:
            os.close(handle)
            os.fchdir(parent)
        # Of a folder only what was done to it counts: looking for files in it reads it.
        if not empty or max(opened.st_mtime, opened.st_ctime) > self.limit or not self.spares_none(opened):
            return False
        if depth == 0 and opened.st_uid == 0:
            return False  # what the administrator has made there
        self.say(path + "/")
        if self.remove:
            os.rmdir(name)
        self.folders += 1
        return True

    def file(self, name, path, status):
        """Remove a file that may go; return whether it is gone."""
        if max(status.st_atime, status.st_mtime, status.st_ctime) > self.limit or not self.spares_none(status):
            return False
        if stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode):
            return False
        self.say(path)
        if self.remove:
            os.unlink(name)
        self.files += 1
        self.size += status.st_blocks * 512
        self.owners[status.st_uid] = self.owners.get(status.st_uid, 0) + 1
        return True

    def spares_none(self, status):
        """Whether neither its owner nor that it is open, nor its device, keeps something."""
        kept = status.st_uid in self.busy or (status.st_dev, status.st_ino) in self.opened
        return not kept and status.st_dev == self.device


def cleaner_of(declared, seconds, remove, say=None):
    """Return the run that a node's settings ask for; Stop where scratch is not its own."""
    top = name_of(declared["mount"].encode("utf-8"))
    with io.open("/proc/self/mountinfo", "rb") as stream:
        mounts = mount_points(name_of(stream.read()))
    check_place(top, declared["device"], declared["beside"])
    jobs = (lambda: patient(lambda: users_with_jobs(declared["node"]), seconds)) if declared["slurm"] else frozenset
    days = int(declared["days"])  # given on a command line it is text
    return Cleaner(top, days, jobs, time.time(), open_files(), mounts, remove, say)


def waiting(declared):
    """Return what would go now, in lines. Where Slurm does not answer, files of users with jobs are among it."""
    cleaner, busy, spared = cleaner_of(declared, 0, False), frozenset(), ""
    try:
        busy = cleaner.jobs()
    except (Stop, NoSlurm):
        spared = " (Slurm did not answer: those of users with a job are spared then)"
    cleaner.jobs = lambda: busy
    cleaner.run()
    return would_go(declared, cleaner, spared)


def asked(declared, options):
    """Answer --permission or --permit; return the exit status."""
    if options.permit is not None:
        try:
            cleaner_of(declared, 0, False)
            permit(declared, options.permit, options.served, options.record, lambda: waiting(declared))
        except Stop as error:
            say("The clean-up of %s is off: %s" % (declared["mount"], error))
    elif not permitted(declared, options.record):
        say("nobody has permitted to remove from %s what was not used for %s days: a rollout shows what would go,"
            " and the code" % (declared["mount"], declared["days"]))
    return 0


def clean(declared, options):
    """Remove, or show, what may go; return the exit status."""
    if not options.dry_run and not permitted(declared, options.record):
        print("The clean-up of %s is off, nothing is removed: nobody has permitted its rules" % declared["mount"])
        return 0
    seconds = 0 if options.dry_run else options.patience
    cleaner = cleaner_of(declared, seconds, not options.dry_run, say if options.dry_run else None)
    cleaner.run()
    word = "would be removed" if options.dry_run else "removed"
    print("%s: %d files (%d MiB) and %d folders %s" % (
        declared["mount"], cleaner.files, cleaner.size // 2 ** 20, cleaner.folders, word))
    for problem in cleaner.problems:
        say(problem, sys.stderr)
    return 1 if cleaner.problems else 0


def main(argv):
    """Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = parser.add_mutually_exclusive_group()
    does.add_argument("--dry-run", action="store_true", help="show what would go, and remove nothing")
    does.add_argument("--permission", action="store_true", help="say what keeps it from removing anything")
    does.add_argument("--permit", metavar="CODE", help="permit the rules of this code, else show what would go")
    parser.add_argument("--served", action="store_true", help=argparse.SUPPRESS)  # the role has seen that they did
    parser.add_argument("--config", default=CONFIG, help=argparse.SUPPRESS)
    parser.add_argument("--record", default=PERMITTED, help=argparse.SUPPRESS)
    parser.add_argument("--patience", type=int, default=PATIENCE_SECONDS, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    try:
        with io.open(options.config) as stream:
            declared = json.load(stream)
        return (asked if options.permission or options.permit is not None else clean)(declared, options)
    except NoSlurm:
        print("Slurm is not installed here, so nobody knows whose files are in use: nothing is removed")
        return 0
    except (Stop, IOError, OSError, ValueError, KeyError) as error:
        say("nothing more is removed: %s" % error, sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
