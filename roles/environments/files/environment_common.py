# -*- coding: utf-8 -*-
"""What the parts of hal-environment share: errors, words, small files, programs, places. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import errno
import io
import json
import os
import pwd
import subprocess

from hal_node.text import native, text

GB = 1000 ** 3
BLOCK = 1024 * 1024
SETTINGS = "/etc/hal/environments.json"
DECLARED = "/etc/hal/environments.d"
LOCK = "/run/hal-environment.lock"  # not in /run/lock, where all may write on some systems
PACKAGES = {"account": "nobody"}  # what their programs run as; settings() may name another


class Problem(Exception):
    """What went wrong, in one line for the administrator."""


class Full(Problem):
    """There was no room on the way."""


# ---------------------------------------------------------------- words
def one_line(value, length=400):
    """Return a program's words on one line, from the end: that is where it says why."""
    words = " ".join(native(text(value)).split())
    return words if len(words) <= length else "... " + words[-length:]


def some(names, shown=3):
    """Return the first few names and how many more there are."""
    more = " and %d more" % (len(names) - shown) if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


# ---------------------------------------------------------------- small files
def load(path):
    """Return a JSON file's content; None when it is not there."""
    try:
        with io.open(path, encoding="utf-8") as source:
            return native(json.load(source))
    except (IOError, OSError, ValueError) as error:
        if isinstance(error, EnvironmentError) and error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise Problem("%s cannot be read: %s" % (path, error))


def save(path, content):
    """Write a JSON file that everybody may read: whole or not at all."""
    replace(path, text(json.dumps(content, indent=1, sort_keys=True)) + u"\n")


def replace(path, content):
    """Write a text that everybody may read, whole or not at all, and on the disk when this returns."""
    with create(path + ".new") as target:
        target.write(text(content).encode("utf-8"))
        target.flush()
        os.fsync(target.fileno())
    os.rename(path + ".new", path)


def create(path):
    """Return a new file that everybody may read, open for writing. What is there is removed: a package may have brought
    a link, which would lead to a file of root's.
    """
    if os.path.lexists(path):
        os.unlink(path)
    target = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644), "wb")
    os.fchmod(target.fileno(), 0o644)
    return target


def inside(path):
    """Return the names in a folder, sorted; none when it is not there."""
    try:
        return sorted(os.listdir(path))
    except (IOError, OSError) as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return []
        raise


def link_of(path):
    """Return where a link leads; None when there is no link."""
    try:
        return os.readlink(path)
    except (IOError, OSError) as error:
        if error.errno in (errno.ENOENT, errno.EINVAL, errno.ENOTDIR):
            return None
        raise


# ---------------------------------------------------------------- programs
def run(argv, environment, given=b"", limit_seconds=0, folder="/", account=""):
    """Run a program; return its status, its output and its errors as bytes. 124: it took longer than the limit.

    account: root starts it as this one, without any group but its own.
    """
    words = ["timeout", str(limit_seconds)] + list(argv) if limit_seconds else list(argv)
    try:
        child = subprocess.Popen(words, env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, preexec_fn=_lower(account),
                                 close_fds=True)  # among them the lock: what stays behind would hold it (Python 2.7)
    except (IOError, OSError) as error:
        return 127, b"", ("%s: %s" % (argv[0], error.strerror)).encode("utf-8")
    output, errors = child.communicate(given)
    return child.returncode, output, errors


def run_theirs(argv, environment, limit_seconds):
    """Run what packages brought, as run() does, but not as root: the maker of a package is not root here."""
    return run(argv, environment, limit_seconds=limit_seconds, account=PACKAGES["account"])


def _lower(account):
    if not account or os.getuid() != 0:
        return None
    try:
        user = pwd.getpwnam(account)
    except KeyError:
        raise Problem("there is no account %s, which programs of packages run as" % account)

    def lower():
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    return lower


# ---------------------------------------------------------------- settings and places
def settings(path=SETTINGS):
    """Return what the role environments wrote."""
    chosen = load(path)
    if chosen is None:
        raise Problem("%s is not there: roll out the role environments" % path)
    # A template makes texts of numbers.
    chosen["keep"] = int(chosen["keep"])
    for name in ("grace_hours", "reserve_gb", "unpacked_factor", "timeout_seconds", "verify_max_days"):
        chosen[name] = float(chosen[name])
    PACKAGES["account"] = chosen.get("account", PACKAGES["account"])
    return chosen


def declared(owner, folder=DECLARED):
    """Return the environments that a role declares, as it wrote them."""
    environments = load(os.path.join(folder, owner + ".json"))
    if environments is None:
        raise Problem("%s/%s.json is not there: the role %s has not been rolled out here" % (folder, owner, owner))
    return environments


def owners(folder=DECLARED):
    """Return the roles that declare environments here."""
    return [name[:-5] for name in inside(folder) if name.endswith(".json")]


def there(chosen):
    """Refuse when the file system is not mounted: environments would fill the system's own disk."""
    if chosen["mount"] and not os.path.ismount(chosen["mount"]):
        raise Problem("%s is not mounted: nothing is done" % chosen["mount"])


def hidden(prefix, name):
    """Return the path of what hal-environment keeps in a prefix."""
    return os.path.join(prefix, ".hal", name)


def record_of(prefix):
    """Return the record of a finished prefix; None for one that is not."""
    return load(hidden(prefix, "record.json"))
