# -*- coding: utf-8 -*-
"""What belongs to one machine or to one build is taken out of an image; one that holds a secret is refused.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import fnmatch
import hashlib
import hmac
import os
import re
import shutil
import stat

from .hold import ImageError

MYPY = False
if MYPY:
    from typing import Iterator, Mapping, Sequence  # noqa: F401  in comments

# Patterns below the root. A folder goes with all that is in it.
GONE = (
    "etc/ssh/ssh_host_*",
    "etc/hostname",
    "etc/resolv.conf",
    "etc/adjtime",
    "etc/udev/rules.d/70-persistent-*",
    "etc/lvm/archive/*",
    "etc/lvm/backup/*",
    "etc/lvm/cache/*",
    "etc/sysconfig/network-scripts/ifcfg-[!l]*",
    "var/lib/hal",
    "var/lib/dbus/machine-id",
    "var/lib/systemd/random-seed",
    "var/lib/systemd/credential.secret",
    "var/lib/random-seed",
    "var/log/journal/*",
    "var/lib/NetworkManager/*",
    "var/lib/dhclient/*",
    "var/lib/rpm/__db.*",
    "var/lib/yum/history",
    "var/lib/dnf/history*",
    "var/cache/*/*",
    "var/tmp/*",
    "tmp/*",
    "tmp/.[!.]*",
    "var/spool/mail/root",
    "root/.ansible",
    "root/.*_history",
    "root/.ssh",
    "root/.gnupg",
    "root/.rpmdb",
    "root/anaconda-ks.cfg",
    "root/install.log*",
)
EMPTY = ("etc/machine-id",)
LOGS = "var/log"

# Where people and roles write; what packages bring below /usr everybody can have.
LOOKED_AT = ("etc", "root", "home", "var", "opt", "srv", "usr/local", "boot/grub2")
NOT_LOOKED_AT = ("var/lib/rpm", "var/lib/yum", "var/lib/dpkg")
MOST_BYTES = 1024 * 1024
PRIVATE = re.compile(br"-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY( BLOCK)?-----")
BETWEEN = re.compile(br"[\s\"'=:,;@<>(){}\[\]]+")
SHORTEST = 8


def clean(root):
    # type: (str) -> None
    """Take out what belongs to one machine or one build."""
    for pattern in GONE:
        for path in _matching(root, pattern):
            _remove(path)
    for name in EMPTY:
        path = os.path.join(root, name)
        if os.path.lexists(path):
            _remove(path)
        with open(path, "w"):
            pass
        os.chmod(path, 0o444)
    for path, status in _files(root, LOGS):
        if stat.S_ISREG(status.st_mode):
            with open(path, "r+b") as file:  # the file stays, with its owner and label: a daemon may not make it
                file.truncate()


def _matching(root, pattern):
    # type: (str, str) -> list[str]
    """Give what matches a pattern, without following links out of the root."""
    places = [root]
    parts = pattern.split("/")
    for at, part in enumerate(parts):
        matched = []
        for place in places:
            if os.path.islink(place) or not os.path.isdir(place):
                continue
            for name in sorted(os.listdir(place)):
                if fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith(".")
                                                        or part == "*" and at == len(parts) - 1):
                    matched.append(os.path.join(place, name))
        places = matched
    return places


def _remove(path):
    # type: (str) -> None
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _files(root, below):
    # type: (str, str) -> Iterator[tuple[str, os.stat_result]]
    """Give (path, its status) of everything below a folder except folders; links are not followed."""
    start = os.path.join(root, below)
    if os.path.islink(start):
        return
    for folder, _, names in os.walk(start):
        for name in sorted(names):
            path = os.path.join(folder, name)
            try:
                yield path, os.lstat(path)
            except OSError:
                continue


def faults(root, digests, key):
    # type: (str, Mapping[str, str], str) -> list[str]
    """Return why an image must not be published, a line each: private keys, passwords, secrets of the site.

    ``digests``: of secrets, as ``digest`` makes them; ``key``: of this one build. No secret comes to this machine.
    """
    lines = _passwords(root)
    known = dict(digests)
    for below in LOOKED_AT:
        for path, status in _files(root, below):
            name = path[len(root) + 1:]
            if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES or name.startswith(NOT_LOOKED_AT):
                continue
            try:
                with open(path, "rb") as file:
                    content = file.read()
            except (IOError, OSError):
                continue
            if PRIVATE.search(content):
                lines.append("/%s is a private key" % _shown(name))
            if known:
                lines.extend("/%s has the secret %s" % (_shown(name), secret)
                             for secret in _secrets(content, known, key))
    return lines


def _shown(name):
    # type: (str | bytes) -> str
    """Return a file's name as text, whatever bytes are in it."""
    raw = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")  # as the locale made it
    return raw.decode("utf-8", "replace")


def _passwords(root):
    # type: (str) -> list[str]
    lines = []
    for name in ("shadow", "shadow-", "gshadow", "gshadow-"):
        path = os.path.join(root, "etc", name)
        if not os.path.isfile(path) or os.path.islink(path):
            continue
        with open(path, "rb") as file:
            for line in file.read().decode("utf-8", "replace").splitlines():
                fields = line.split(":")
                if len(fields) > 1 and fields[1].strip("!*x"):
                    lines.append("/etc/%s has a password of %s" % (name, fields[0]))
                elif len(fields) > 1 and fields[1] == "" and not name.startswith("g"):
                    lines.append("/etc/%s lets %s in without a password" % (name, fields[0]))
    return lines


def digest(value, key):
    # type: (bytes, str) -> str
    """Return the keyed digest of a secret, which says nothing to a reader without the key and the secret."""
    return hmac.new(key.encode("ascii"), value, hashlib.sha256).hexdigest()


def _secrets(content, known, key):
    # type: (bytes, Mapping[str, str], str) -> list[str]
    """Return the names of secrets that are the whole file, a line, what follows = or :, or a word of it."""
    words = {content, content.strip()}
    for line in content.splitlines():
        line = line.strip()
        words.add(line)
        for sign in (b"=", b":"):
            words.add(line.partition(sign)[2].strip().strip(b"\"'"))
        words.update(BETWEEN.split(line))
    made = {digest(word, key) for word in words if len(word) >= SHORTEST}
    return sorted({known[hexdigest] for hexdigest in made if hexdigest in known})


def refuse(lines):
    # type: (Sequence[str]) -> None
    """Raise ImageError when there is a fault; the first three are named."""
    if lines:
        more = " and %d more" % (len(lines) - 3) if len(lines) > 3 else ""
        raise ImageError("the image would hold a secret: %s%s. Nothing was published" % ("; ".join(lines[:3]), more))
