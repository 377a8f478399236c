# -*- coding: utf-8 -*-
"""What the programs of the backup share: one kind of error, files, and other programs. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import calendar
import contextlib
import errno
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time

from hal_node import printable
from hal_node.text import WORD, mapped

FORMAT = 1
SUFFIX = ".tar.gz.gpg"
MEGABYTE = 1024 * 1024


class Problem(Exception):
    """What went wrong, in one line for the administrator."""


# Ansible's templates give them as text.
NUMBERS = ("reserve_mb", "max_age_hours", "keep_daily", "keep_weekly", "quota_mb")


def configuration(path):
    """Return a configuration as the role wrote it."""
    return {name: int(value) if name in NUMBERS else value for name, value in load(path).items()}


def native(value):
    """Return what JSON gave with this Python's own strings: they name the same files in every locale."""
    return mapped(value, _native)


def _native(value):
    if not isinstance(value, WORD):
        return value
    encoded = value.encode("utf-8", "replace")
    return encoded if str is bytes else os.fsdecode(encoded)


def text(name):
    """Return a file's name as JSON can hold it, the same in Python 2 and 3; what is not UTF-8 is replaced."""
    if not isinstance(name, bytes):
        name = name.encode("utf-8") if str is bytes else os.fsencode(name)
    return name.decode("utf-8", "replace")


def dumped(content):
    """Return content with names of files as JSON."""
    return json.dumps(mapped(content, _text), indent=1, sort_keys=True)


def _text(value):
    return text(value) if isinstance(value, str) else value


def known(name):
    """Return a file's name as what JSON gave has it."""
    return native(text(name))


def shown(name, kept=u""):
    """Return a name from an archive as a terminal may have it: what it would obey or hide is an escape.

    `kept`: what stays as it is, too; backslashes in words that may have escapes already.
    """
    return native(printable.shown(name, kept).decode("utf-8"))


def archive_name(node, made):
    """Return the name of the archive that a node made, at seconds since 1970."""
    return node + time.strftime("-%Y%m%dT%H%M%SZ", time.gmtime(made)) + SUFFIX


def made_at(node, name):
    """Return when an archive was made, by its name, in seconds since 1970; None for what is not the node's archive."""
    try:
        made = calendar.timegm(time.strptime(name, node + "-%Y%m%dT%H%M%SZ" + SUFFIX))
        return made if name == archive_name(node, made) else None
    except ValueError:
        return None


def clock(stamp):
    """Return a time, in seconds since 1970, as people read it."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(stamp))


def load(path):
    """Return a JSON file's content."""
    try:
        with open(path) as source:
            return native(json.load(source))
    except (IOError, OSError, ValueError) as error:
        raise Problem("%s cannot be read: %s" % (path, error))


def save(path, content, mode=0o600):
    """Write a JSON file: whole or not at all."""
    handle, temporary = tempfile.mkstemp(prefix=".", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "w") as target:
            target.write(dumped(content) + "\n")
            target.flush()
            os.fsync(target.fileno())
        os.chmod(temporary, mode)
        os.rename(temporary, path)
    except Exception:
        os.unlink(temporary)
        raise


@contextlib.contextmanager
def locked(path, otherwise):
    """Hold a file that only its owner may open. `otherwise`: the error when another process holds it."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise Problem("%s cannot be opened: %s" % (path, error.strerror))
    try:
        if not _is_taken(handle, path):
            raise Problem(otherwise)
        yield
    finally:
        os.close(handle)


def _is_taken(handle, path):
    """Whether the lock is ours, and still that of this path."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except (IOError, OSError) as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES, errno.ENOENT):
            raise
        return False


def free_mb(path):
    """Return how much an ordinary user may still write there."""
    seen = os.statvfs(path)
    return seen.f_bavail * seen.f_frsize // MEGABYTE


def need_room(path, size, reserve_mb, what):
    """Refuse to begin what the disk has no room for."""
    needed = size // MEGABYTE + 1
    free = free_mb(path)
    if free < needed + reserve_mb:
        raise Problem(
            "no room for %s in %s: %d MB are free, it needs %d MB and %d MB have to stay free"
            % (what, path, free, needed, reserve_mb)
        )


def run(argv, stdin=None, stdout=None):
    """Run a program and return its output; its last words are the error.

    `stdin`: bytes or an open file; `stdout`: an open file, when the output is not to be returned.
    """
    given = subprocess.PIPE if isinstance(stdin, bytes) else stdin
    try:
        with open(os.devnull, "rb") as nothing:
            process = subprocess.Popen(
                argv,
                stdin=nothing if given is None else given,
                stdout=subprocess.PIPE if stdout is None else stdout,
                stderr=subprocess.PIPE,
                env=dict(os.environ, LC_ALL="C"),
                close_fds=True,
            )
    except OSError as error:
        raise Problem("%s cannot be started: %s" % (argv[0], error.strerror))
    output, errors = process.communicate(stdin if isinstance(stdin, bytes) else None)
    if process.returncode:
        said = last_line(errors) or "exit status %d" % process.returncode
        own = os.path.basename(argv[0]) + ": "
        raise Problem(said if said.startswith(own) else own + said)
    return native((output or b"").decode("utf-8", "replace"))


def last_line(output):
    """Return the last line that says something, as a terminal may have it."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return shown(lines[-1], u"\\") if lines else ""


def main(function):
    """Run a program's function with its arguments; a Problem, or a disk's, is one line and exit status 1."""
    os.umask(0o077)
    try:
        sys.exit(function(sys.argv[1:]))
    except (Problem, EnvironmentError) as error:
        printable.write(printable.shown("%s" % error, u"\\") + b"\n", sys.stderr)
        sys.exit(1)
