# -*- coding: utf-8 -*-
"""Packages in a root file system, from exactly the declared repositories, by the node's own package manager.

All of its settings are in one file that names no other (``reposdir=/dev/null``), as mock has it, and works for yum 3
and dnf alike. A key is compared with its declared fingerprint before the package manager is told of it.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re
import shutil
import subprocess

from .hold import LOG, ImageError, inside
from ..mirror.fetch import MirrorError
from ..mirror.keys import Keyring

MYPY = False
if MYPY:
    from typing import Any, Callable, Iterable  # noqa: F401  in comments

MAIN = u"""\
[main]
reposdir=/dev/null
cachedir=/var/cache/hal-image
logfile=/var/log/yum.log
keepcache=0
plugins=0
gpgcheck=1
assumeyes=1
obsoletes=1
installonly_limit=2
install_weak_deps=False
"""
SAYS = re.compile(r"^(Error: .*|Error .*|No package .* available\.|Public key for .*|Package .* is not signed"
                  r"|.*: \[Errno .*|.*FAILED.*|error: .*)$")
MANAGERS = frozenset({"dnf", "yum"})


def settings(repositories, keys):
    # type: (str, Iterable[str]) -> str
    """Return the package manager's file: ``repositories`` is a node's own file, ``keys`` are paths of key files."""
    lines = [MAIN]
    declared = False
    for line in repositories.splitlines():
        if line.startswith(u"#"):
            continue
        lines.append(line)
        if re.match(r"\[[^\]]+\]\s*$", line):
            if line.strip() == u"[main]":
                raise ImageError("the repositories have a section [main], which is not a repository")
            declared = True
            if keys:
                lines.append(u"gpgkey=%s" % u" ".join(u"file://%s" % path for path in keys))
    if not declared:
        raise ImageError("no repository is declared for this image")
    return u"\n".join(lines) + u"\n"


def bring_keys(module, folder, keys, opened):
    # type: (Any, str, list[dict[str, str]], Callable[[str], Any]) -> list[str]
    """Bring the declared keys and compare their fingerprints; return their paths. ``opened(url)`` gives a file."""
    place = os.path.join(folder, "keys")
    check = os.path.join(folder, "check")
    for path in (place, check):
        if os.path.isdir(path):
            shutil.rmtree(path)
        os.mkdir(path, 0o700)
    if not keys:
        return []
    paths = []
    ring = Keyring(module, check)
    for key in keys:
        path = os.path.join(place, key["id"])
        try:
            if key["source"].startswith("/"):
                shutil.copyfile(key["source"], path)
            else:
                with open(path, "wb") as file:
                    shutil.copyfileobj(opened(key["source"]), file)
        except Exception as error:  # noqa: B902  # whatever a URL ends in
            raise ImageError("key %s: %s cannot be had: %s" % (key["id"], key["source"], error))
        try:
            ring.trust(key["id"], path, key["fingerprint"])
        except MirrorError as error:
            raise ImageError("%s" % error)
        paths.append(path)
    return paths


def install(pid, folder, manager, packages, release):
    # type: (int, str, str, Iterable[str], str) -> None
    """Install packages into the root; ImageError says in one line why that is not possible. What it says is in LOG."""
    if manager not in MANAGERS:
        raise ImageError("%s is not a package manager that is known here; use yum or dnf" % manager)
    argv = inside(pid) + [manager, "--config=%s" % os.path.join(folder, "yum.conf"),
                          "--installroot=%s" % os.path.join(folder, "root"), "--releasever=%s" % release,
                          "--assumeyes", "install"] + list(packages)
    with open(LOG, "ab") as log, open(os.devnull) as nothing:
        log.seek(0, os.SEEK_END)  # Python 2 tells 0 before the first write
        start = log.tell()
        try:
            status = subprocess.call(argv, stdin=nothing, stdout=log, stderr=subprocess.STDOUT,
                                     env=dict(os.environ, LC_ALL="C"))
        except OSError as error:
            raise ImageError("%s cannot be run: %s" % (argv[0], error.strerror))
    with open(LOG, "rb") as log:
        log.seek(start)
        said = log.read().decode("utf-8", "replace")
    if status != 0:
        raise ImageError("%s could not install into the root: %s. All of it is in %s" % (manager, reason(said), LOG))


def reason(said):
    # type: (str) -> str
    """Return the line of a package manager's output that says why it gave up."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = []
    for line in lines:
        if SAYS.match(line) and line not in telling:
            telling.append(line)
    return "; ".join(telling[-2:]) if telling else (lines[-1] if lines else "it said nothing")


def missing(run, root, packages):
    # type: (Callable[..., Any], str, Iterable[str]) -> list[str]
    """Return what of the list is not there: yum ends well where a name is in no repository."""
    wanted = [name for name in packages if not name.startswith("@")]
    _, output, _ = run(in_root(root, ["rpm", "-q"] + wanted))
    absent = re.findall(r"^package (\S+) is not installed$", output, re.M)
    if not absent:
        return []
    left = []
    for name in absent:
        status, _, _ = run(in_root(root, ["rpm", "-q", "--whatprovides", name]))
        if status != 0:
            left.append(name)
    return left


def kernels(run, root):
    # type: (Callable[..., Any], str) -> list[str]
    """Return the releases of all packages named kernel."""
    status, output, _ = run(in_root(root, ["rpm", "-q", "--queryformat", "%{VERSION}-%{RELEASE}\\n", "kernel"]))
    return sorted(output.split()) if status == 0 else []


def all_packages(run, root):
    # type: (Callable[..., Any], str) -> list[str]
    """Return every package as name-version-release.arch, without keys."""
    form = "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}\\n"
    status, output, errors = run(in_root(root, ["rpm", "-q", "--all", "--queryformat", form]))
    if status != 0:
        raise ImageError("the root's package database cannot be read: %s" % errors.strip())
    return sorted(name for name in output.split() if not name.startswith("gpg-pubkey-"))


def in_root(root, argv):
    # type: (str, list[str]) -> list[str]
    """Return a command as it is run in the root, whose files nothing of this machine's environment leads to."""
    return ["chroot", root, "/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"] + argv
