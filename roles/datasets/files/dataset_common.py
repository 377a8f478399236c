# -*- coding: utf-8 -*-
"""What the parts of hal-dataset share: errors, words, small files, places. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import errno
import io
import json
import os
import pwd
import threading

try:
    import queue
except ImportError:
    import Queue as queue

from hal_node import printable
from hal_node.text import native, raw_of, text

MEGABYTE = 1024 * 1024
GB = 1000 ** 3
HIDDEN = ".hal"


class Problem(Exception):
    """What went wrong, in one line for the administrator."""


class NotOurs(Problem):
    """Somebody else's files are where data sets are to be."""


# ---------------------------------------------------------------- words
def write(words):
    """Write text of ours in UTF-8, whatever the locale. What others say: printable.say()."""
    printable.write(text(words).encode("utf-8"))


def who():
    """Return who asked: the administrator behind sudo, where there is one."""
    return os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name


# ---------------------------------------------------------------- small files
def load(path):
    """Return a JSON file's content; None when it is not there."""
    try:
        with io.open(path, encoding="utf-8") as source:
            return native(json.load(source))
    except (IOError, OSError, ValueError) as error:
        if not os.path.exists(path):
            return None
        raise Problem("%s cannot be read: %s" % (path, error))


def save(path, content):
    """Write a JSON file that everybody may read: whole or not at all."""
    replace(path, text(json.dumps(content, indent=1, sort_keys=True)) + u"\n")


def replace(path, content):
    """Write a text that everybody may read, whole or not at all; return whether that changed anything."""
    raw = content.encode("utf-8")
    if os.path.isfile(path) and not os.path.islink(path):
        with open(path, "rb") as source:
            if source.read() == raw:
                return False
    with create(path + ".new", 0o644) as target:
        target.write(raw)
        target.flush()
        os.fsync(target.fileno())
    os.rename(path + ".new", path)
    return True


def create(path, mode):
    """Return a new file, open for writing. What is there already is removed: a link would lead to somebody's file."""
    try:
        os.unlink(path)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
    target = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")
    os.fchmod(target.fileno(), mode)
    return target


def make_folder(path, mode=0o755):
    """Make a folder and those above; threads may do so at the same time. A link to a folder does not count as one."""
    try:
        os.makedirs(path, mode)
    except OSError:
        if os.path.islink(path) or not os.path.isdir(path):
            raise


def is_mounted(mount):
    """Whether something is mounted there."""
    wanted = raw_of(mount.rstrip("/") or "/")
    with open("/proc/self/mounts", "rb") as source:
        return any(line.split(b" ")[1] == wanted for line in source)


def free_bytes(path):
    """Return how much may still be written there."""
    seen = os.statvfs(path)
    return seen.f_bavail * seen.f_frsize


# ---------------------------------------------------------------- places
class Place(object):
    """Where a version of a data set is, was, and will be. All of it on one file system: it moves by one rename."""

    def __init__(self, root, dataset):
        self.label = "%s/%s" % (dataset["name"], dataset["version"])
        self.group = os.path.join(root, dataset["name"])           # the folder of all versions
        self.folder = os.path.join(self.group, dataset["version"])  # what users see
        self.link = os.path.join(self.group, "default")
        self.message = self.folder + ".retired.txt"
        self.hidden = os.path.join(root, HIDDEN, dataset["name"], dataset["version"])
        self.lock = self.hidden + ".lock"
        self.data = os.path.join(self.hidden, "data")          # what has arrived and is right
        self.parts = os.path.join(self.hidden, "parts")        # what has arrived in part
        self.incoming = os.path.join(self.hidden, "incoming")  # what rsync is writing
        self.retired = os.path.join(self.hidden, "retired")
        self.manifest = os.path.join(self.hidden, "manifest")
        self.state = os.path.join(self.hidden, "state.json")
        self.checked = os.path.join(self.hidden, "check.json")  # how far a verification has come
        self.own = (self.hidden, self.data, self.parts, self.incoming, self.retired)  # folders that root works in

    def remember(self, **known):
        """Add to what is known of it."""
        save(self.state, dict(load(self.state) or {}, **known))

    def known(self):
        """Return what is known of it."""
        return load(self.state) or {}


# ---------------------------------------------------------------- at the same time
def in_parallel(make, entries, workers):
    """Yield (entry, result) of a function for each entry, as they come; hold few entries at a time.

    `make` returns the function, once for each thread. The first exception is raised here, and nothing new is begun.
    """
    todo, done = queue.Queue(), queue.Queue()

    def work():
        function = make()
        for entry in iter(todo.get, None):
            try:
                done.put((entry, function(entry), None))
            except Exception as error:
                done.put((entry, None, error))

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    pending, entries, more = 0, iter(entries), True
    try:
        while True:
            while more and pending < 4 * workers:
                entry = next(entries, None)
                more = entry is not None
                if more:
                    todo.put(entry)
                    pending += 1
            if not pending:
                return
            entry, result, error = done.get(True, 10 ** 6)  # without a time Python 2 does not hear Ctrl-C
            pending -= 1
            if error is not None:
                raise error
            yield entry, result
    finally:
        for _ in threads:
            todo.put(None)
