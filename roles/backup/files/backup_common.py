# -*- coding: utf-8 -*-
"""What the programs of the backup share: one kind of error, files, and other programs. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import hashlib
import json
import os
import subprocess
import sys
import tempfile

FORMAT = 1
SUFFIX = ".tar.gz.gpg"
MEGABYTE = 1024 * 1024


class Problem(Exception):
    """What went wrong, in one line for the administrator."""


NUMBERS = ("reserve_mb", "max_age_hours", "keep_daily", "keep_weekly")  # Ansible's templates give them as text


def configuration(path):
    """Return a configuration as the role wrote it."""
    return {name: int(value) if name in NUMBERS else value for name, value in load(path).items()}


def native(value):
    """Return what JSON gave with Python's own strings: names of files are bytes in Python 2, whatever the locale."""
    if isinstance(value, dict):
        return {native(key): native(item) for key, item in value.items()}
    if isinstance(value, list):
        return [native(item) for item in value]
    if str is bytes and isinstance(value, type(u"")):
        return value.encode("utf-8")
    return value


def text(name):
    """Return a file's name as JSON can hold it, the same in Python 2 and 3; what is no UTF-8 is replaced."""
    if not isinstance(name, bytes):
        name = name.encode("utf-8", "surrogateescape")
    return name.decode("utf-8", "replace")


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
            json.dump(content, target, indent=1, sort_keys=True)
            target.write("\n")
            target.flush()
            os.fsync(target.fileno())
        os.chmod(temporary, mode)
        os.rename(temporary, path)
    except Exception:
        os.unlink(temporary)
        raise


def sha256(path):
    """Return the digest of a file's content."""
    with open(path, "rb") as source:
        return sha256_of(source)


def sha256_of(source):
    """Return the digest of what an open file still has."""
    digest = hashlib.sha256()
    for block in iter(lambda: source.read(MEGABYTE), b""):
        digest.update(block)
    return digest.hexdigest()


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
            )
    except OSError as error:
        raise Problem("%s cannot be started: %s" % (argv[0], error.strerror))
    output, errors = process.communicate(stdin if isinstance(stdin, bytes) else None)
    if process.returncode:
        said = last_line(errors) or "exit status %d" % process.returncode
        own = os.path.basename(argv[0]) + ": "
        raise Problem(said if said.startswith(own) else own + said)
    return (output or b"").decode("utf-8", "replace")


def last_line(text):
    """Return the last line that says something."""
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1] if lines else ""


def main(function):
    """Run a program's function with its arguments; a Problem is one line and exit status 1."""
    os.umask(0o077)
    try:
        sys.exit(function(sys.argv[1:]))
    except Problem as error:
        sys.stderr.write("%s\n" % error)
        sys.exit(1)
