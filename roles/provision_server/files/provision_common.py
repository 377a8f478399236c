# -*- coding: utf-8 -*-
"""What the parts of hal-provision share: errors, small files, the lock, what a node is. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import contextlib
import errno
import io
import json
import os
import re
import sys
import tempfile
import time

from hal_node import printable
from hal_node.lock import locked

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}\Z")
FOLDERS = ("armed", "tokens", "spool", "calls")
LOCK_SECONDS = 60  # as long as who asks the server waits
TEXT = type(u"")


class Problem(Exception):
    """What went wrong, in one line for the administrator. Never with a token in it."""

    status = 2

    def __unicode__(self):
        return text(self.args[0])

    def __str__(self):
        words = text(self.args[0])
        return words if isinstance(words, str) else words.encode("utf-8")  # Python 2 takes ASCII only


def text(value):
    """Return bytes or text as text; what is not UTF-8 is replaced."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else u"%s" % value


def clean(words):
    """Return words in one line, with blanks between them; what drives a terminal or hides is an escape.

    Others wrote them. Words that are clean stay as they are.
    """
    return printable.shown(u" ".join(text(words).split()), u"\\").decode("utf-8")


def checked_name(name):
    """Return the name of a node, which becomes the name of a file; Problem for anything else."""
    if not NAME.match(name):
        raise Problem("%r is not a name of a node" % name)
    return name


def stamp(now):
    """Return a time in seconds as UTC for people."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))


def say(words):
    """Write lines to the journal, or to whoever called the program. Others' words in them are made printable."""
    lines = [printable.shown(line, u"\\") + b"\n" for line in text(words).split(u"\n")]
    printable.write(b"".join(lines), sys.stderr)


def tell(words):
    """Print lines as they are, in UTF-8, whatever the locale. Others' words in them: clean() them first."""
    printable.write((text(words) + u"\n").encode("utf-8", "replace"))


def standard_input():
    """Return standard input as a stream of bytes."""
    return getattr(sys.stdin, "buffer", sys.stdin)


def exit_status(program, work):
    """Do the work of a program, print what it returns unless that is nothing, and return the exit status."""
    os.umask(0o077)
    try:
        said = work()
    except Problem as problem:
        say(text(problem))
        return problem.status
    except (IOError, OSError) as error:
        # An account without rights asks, or the disk is full.
        say("%s: %s" % (error.filename or program, error.strerror or error))
        return 2
    except KeyboardInterrupt:
        return 130
    if said:
        tell(said)
    return 0


def read_json(path):
    """Return what a file has, None when it is not there; Problem names one that cannot be read."""
    try:
        with io.open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (IOError, OSError) as error:
        if error.errno in (2, 20):
            return None
        raise Problem("%s: cannot be read: %s" % (path, error.strerror))
    except ValueError:
        raise Problem("%s: is damaged; no JSON" % path)
    if not isinstance(content, dict):
        raise Problem("%s: is damaged; no mapping" % path)
    return content


def replace(path, content, mode=0o600):
    """Write a file as a whole or not at all. It belongs to whom its folder belongs to: the service reads it."""
    folder = os.path.dirname(path)
    try:
        handle, new = tempfile.mkstemp(prefix=".new-", dir=folder)
    except (IOError, OSError) as error:
        raise Problem("%s: cannot be written: %s" % (path, error.strerror))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            if os.geteuid() == 0:
                owner = os.stat(folder)
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.flush()
            os.fsync(file.fileno())
        os.rename(new, path)
    except (IOError, OSError) as error:
        remove(new)
        raise Problem("%s: cannot be written: %s" % (path, error.strerror))


def write_json(path, data, mode=0o600):
    """Write a small document as a whole."""
    replace(path, (json.dumps(data, indent=1, sort_keys=True) + "\n").encode("utf-8"), mode)


def remove(path):
    """Remove a file; return whether it was there."""
    try:
        os.unlink(path)
        return True
    except OSError as error:
        if error.errno == 2:
            return False
        raise Problem("%s: cannot be removed: %s" % (path, error.strerror))


def opened(path, flags):
    """Return a file's descriptor; OSError when it is a link, which the service's account could have laid for root.

    Made when it is not there: then it belongs to whom its folder belongs to. What was there stays as it is.
    """
    while True:
        try:
            handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL, 0o600)
            break
        except OSError as error:
            if error.errno != errno.EEXIST:
                raise
        try:
            return os.open(path, flags | os.O_NOFOLLOW)
        except OSError as error:
            if error.errno != errno.ENOENT:  # renamed just now
                raise
    if os.geteuid() == 0:
        owner = os.stat(os.path.dirname(path))
        os.fchown(handle, owner.st_uid, owner.st_gid)
    return handle


def alone(path, what):
    """One at a time, of programs and of threads: who has the lock of this file. Problem names who does not end."""
    return locked(path, Problem, LOCK_SECONDS, what)


@contextlib.contextmanager
def as_account(place):
    """Work below ``place.state`` as the account that it belongs to. Problem when one of its folders is a link.

    That account may lay a link there at any moment, also right after it was looked for. Root would write, give away and
    remove what it leads to; whoever works as the account can do nothing there that the account cannot do by itself.
    """
    for kind in FOLDERS:
        path = os.path.join(place.state, kind)
        if os.path.islink(path):
            raise Problem("%s: is a link, where a folder has to be; find out who made it, remove it, and roll out"
                          " provision_server" % path)
    owner = os.stat(place.state) if os.geteuid() == 0 else None
    if owner is None or owner.st_uid == 0:
        yield
        return
    groups, group = os.getgroups(), os.getegid()
    try:
        os.setgroups([owner.st_gid])
        os.setegid(owner.st_gid)
        os.seteuid(owner.st_uid)
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


class Place(object):
    """Where everything is: ``state`` holds what changes, ``nodes`` a file for each node, which the role wrote.

    ``records`` holds what is known of each node's reimage.
    """

    def __init__(self, settings_file):
        """Problem when the settings are not there or do not say what is needed."""
        settings = read_json(settings_file)
        if settings is None:
            raise Problem("%s is missing; role provision_server writes it" % settings_file)
        try:
            self.state = settings["state"]
            self.nodes = settings["nodes"]
            self.records = settings["records"]
            self.images = settings["images"]
            self.key = settings["image_key"]
            self.keep = int(settings["keep_images"])
            self.connections, self.request_seconds = int(settings["connections"]), int(settings["request_seconds"])
            self.listen = settings["listen"]
            self.port, self.tls_port = int(settings["port"]), int(settings["tls_port"])
            self.certificate, self.private_key = settings["certificate"], settings["private_key"]
        except (KeyError, TypeError, ValueError) as error:
            raise Problem("%s: %s is missing or wrong; role provision_server writes it" % (settings_file, error))
        self._index = (None, {})

    def path(self, kind, name):
        """Return the file of a node in one of FOLDERS."""
        return os.path.join(self.state, kind, name)

    def node(self, name):
        """Return what the role wrote of a node; Problem when there is no such node, or its file is damaged."""
        path = os.path.join(self.nodes, checked_name(name))
        entry = read_json(path)
        if entry is None:
            raise Problem("%s: this server has no such node; it knows those of cluster.yml with a MAC" % name)
        for key, kind in (("address", TEXT), ("names", list), ("standing", TEXT)):
            if not isinstance(entry.get(key), kind):
                raise Problem("%s: is damaged; no %s" % (path, key))
        return entry

    def names(self):
        """Return the names of all nodes."""
        try:
            return sorted(name for name in os.listdir(self.nodes) if NAME.match(name))
        except OSError as error:
            raise Problem("%s: cannot be read: %s" % (self.nodes, error.strerror))

    def by_address(self, address):
        """Return the name of the node with an address, None without one. Files are read again when one was replaced.

        A damaged file is one node's: it is named in the journal, that node is unknown, and others are served.
        """
        try:
            changed = os.stat(self.nodes).st_mtime
        except OSError as error:
            raise Problem("%s: cannot be read: %s" % (self.nodes, error.strerror))
        if self._index[0] != changed:
            index = {}
            for name in self.names():
                try:
                    index[self.node(name)["address"]] = name
                except Problem as problem:
                    say("%s; %s gets nothing until role provision_server writes it anew" % (problem, name))
            self._index = (changed, index)
        return self._index[1].get(address)

    def locked(self, name):
        """One at a time for each node, of programs and of threads."""
        return alone(os.path.join(self.state, "tokens", ".lock-" + checked_name(name)), name)
