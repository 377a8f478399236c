# -*- coding: utf-8 -*-
"""Lmod's cache of the tree of modulefiles: whether it is current, and a new one. Python 2.7 and 3.

    hal-modules status      as JSON: is the cache current, and which files of the tree nobody declared
    hal-modules renew       make the cache anew if it is not current

Lmod believes the cache when it is not older than the tree (SitePackage.lua looks at the same times). So an old one
costs time, and nobody reads anything wrong in it. Exit status: 0, or 1 with one line that says why not.
"""

from __future__ import absolute_import, division, print_function

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from hal_node.lock import locked
from hal_node.text import native

SETTINGS = "/etc/hal/modules.json"
LMOD = "/usr/share/lmod/lmod/libexec"
LIST = "spiderT.lua"
WRITTEN = re.compile(br"-- Written by Ansible, role [a-z0-9_]+;")
SPIDER_SECONDS = 120
TRIES = 5


class Problem(Exception):
    """What went wrong, in one line for the administrator."""


def shown(path):
    """Return a path as text for JSON; what is not UTF-8 is replaced."""
    return path.decode("utf-8", "replace") if isinstance(path, bytes) else path


def load(path):
    """Return the settings: tree, cache_dir."""
    try:
        with open(path) as source:
            return native(json.load(source))
    except (IOError, OSError, ValueError) as error:
        raise Problem("%s cannot be read: %s" % (path, error))


def files(tree):
    """Yield the paths of all that is in the tree, folders too, sorted."""
    for folder, folders, names in os.walk(tree):
        folders.sort()
        yield folder
        for name in sorted(names + [link for link in folders if os.path.islink(os.path.join(folder, link))]):
            yield os.path.join(folder, name)


def newest(tree):
    """Return (when the tree was last changed as the kernel has it, in whole seconds; what was changed then)."""
    changes = [(int(os.lstat(path).st_ctime), path) for path in files(tree)]
    return max(changes) if changes else (0, "")


def state(settings):
    """Return what is wrong with the cache in words; "" when it is current."""
    if not os.path.isdir(settings["tree"]):
        return "%s is not there" % settings["tree"]
    try:
        made = int(os.stat(os.path.join(settings["cache_dir"], LIST)).st_mtime)
    except OSError:
        return "there is none"
    if made > time.time():
        return "it is dated in the future: the clock was ahead when it was made"
    changed, path = newest(settings["tree"])
    return "" if made >= changed else "it is older than %s" % path


def foreign(tree):
    """Return the files of the tree that no role has written, without the stamp."""
    paths = []
    for path in files(tree):
        if os.path.isdir(path) and not os.path.islink(path) or path == os.path.join(tree, ".changed"):
            continue
        if os.path.islink(path) or not os.path.isfile(path):
            paths.append(path)
            continue
        with open(path, "rb") as source:
            if not WRITTEN.match(source.read(200)):
                paths.append(path)
    return paths


def spider(tree, target):
    """Write Lmod's list of a tree to a file; the environment is ours, so that nobody's settings are in it."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/", "LC_ALL": "C", "LMOD_PACKAGE_PATH": "/etc/lmod"}
    with open(target, "wb") as output:
        process = subprocess.Popen([os.path.join(LMOD, "spider"), "-o", "spiderT", tree], stdout=output,
                                   stderr=subprocess.PIPE, stdin=subprocess.PIPE, env=environment)
        process.stdin.close()
        process.stdin = None
        until = time.time() + SPIDER_SECONDS
        while process.poll() is None and time.time() < until:
            time.sleep(0.05)
        if process.poll() is None:
            process.kill()
            raise Problem("Lmod's spider has not ended after %d s" % SPIDER_SECONDS)
        said = process.stderr.read().decode("utf-8", "replace").strip()
    if process.returncode != 0 or not os.path.getsize(target):
        raise Problem("Lmod's spider failed: %s" % (said or "exit status %d" % process.returncode).splitlines()[0])


def renew(settings):
    """Make the cache anew if it is not current; return what was done, in words."""
    tree, folder = settings["tree"], settings["cache_dir"]
    if not os.path.isdir(tree):
        raise Problem("%s is not there" % tree)
    # As long as another renewal may take.
    with locked(os.path.join(folder, ".lock"), Problem, TRIES * SPIDER_SECONDS, "Lmod's cache"):
        if not state(settings):
            return "the cache is current"
        _now(tree)
        for _ in range(TRIES):
            _make(tree, folder)
            if not state(settings):
                return "the cache is new"
    raise Problem("the tree changes faster than it can be read: %s" % state(settings))


def _now(tree):
    """Have what was changed when the clock was ahead be changed now: no list could be newer than it.

    Linux notes a change also when a file is given to whom it belongs already; nothing else can set that time.
    """
    for path in list(files(tree)):
        if os.lstat(path).st_ctime > time.time():
            os.lchown(path, -1, -1)


def _make(tree, folder):
    """Read the tree and put the list where Lmod looks."""
    work = tempfile.mkdtemp(prefix=".new-", dir=folder)
    try:
        made = os.path.join(work, LIST)
        # Times are whole seconds: what changes in the second in which the reading begins must be later than the cache.
        time.sleep(1.0 - time.time() % 1.0 + 0.01)
        began = int(time.time()) - 1
        spider(tree, made)
        os.chmod(made, 0o644)
        os.utime(made, (began, began))
        _only_ours(folder)
        os.rename(made, os.path.join(folder, LIST))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _only_ours(folder):
    """Remove other forms of the list, compiled or old: Lmod would take them first."""
    for name in os.listdir(folder):
        if name.startswith("spiderT.") and name != LIST:
            os.unlink(os.path.join(folder, name))


def main(arguments):
    """Run the program and return its exit status."""
    parser = argparse.ArgumentParser(prog="hal-modules", description="Lmod's cache of the tree of modulefiles")
    parser.add_argument("command", choices=["status", "renew"])
    parser.add_argument("--settings", default=SETTINGS, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    try:
        settings = load(asked.settings)
        if asked.command == "status":
            known = {"cache": shown(state(settings)), "foreign": [shown(path) for path in foreign(settings["tree"])]}
            print(json.dumps(known, indent=1, sort_keys=True))
        else:
            print(renew(settings))
    except Problem as error:
        print("hal-modules: %s" % error, file=sys.stderr)
        return 1
    except (IOError, OSError) as error:
        print("hal-modules: %s: %s" % (error.filename or "cannot be read", error.strerror), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
