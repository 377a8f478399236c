# -*- coding: utf-8 -*-
"""What the parts of hal-container share: faults, settings, small files written at once. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import errno
import io
import json
import os
import re
import tempfile

from hal_node.subids import decoded
from hal_node.text import native

HIDDEN = ".hal"
SUFFIX = ".sif"
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}$")
MEGABYTE = 1024 * 1024


class Problem(Exception):
    """What went wrong, in one line for whoever called."""


def read_json(path, default):
    """Return what a JSON file has, `default` when there is none; Problem when it is damaged."""
    try:
        with io.open(path, encoding="utf-8") as stream:
            return native(json.load(stream))
    except (IOError, OSError) as error:
        if error.errno == errno.ENOENT:
            return default
        raise Problem("%s: cannot be read: %s" % (path, error.strerror))
    except ValueError as error:
        raise Problem("%s: is damaged: %s" % (path, error))


def write_json(path, document, mode=0o644):
    """Write a JSON file at once: no reader meets half of it."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write((json.dumps(document, indent=1, sort_keys=True) + "\n").encode("utf-8"))
            os.fchmod(stream.fileno(), mode)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def check_name(name):
    """Raise Problem unless it is the name of an image."""
    if not NAME.match(name) or name.endswith(SUFFIX) or "--" in name:
        raise Problem("%r is not a name of an image: small letters, digits, . _ -, at most 63, without .sif and without"
                      " --" % name)


def in_words(size):
    """Return a number of bytes for people."""
    return "%.1f GB" % (size / 1e9) if size >= 1e9 else "%.1f MB" % (size / 1e6)


def mounts():
    """Return (mount point, type) of every mount, as the kernel has them."""
    with io.open("/proc/self/mounts", encoding="utf-8", errors="replace") as stream:
        rows = [line.split(" ") for line in stream]
    return [(re.sub(r"\\([0-7]{3})", lambda hit: chr(int(hit.group(1), 8)), row[1]), row[2]) for row in rows]


def file_system_of(path):
    """Return (mount point, type) of what a path is on."""
    path = os.path.realpath(path)
    inside = [mount for mount in mounts() if path == mount[0] or path.startswith(mount[0].rstrip("/") + "/")]
    return max(inside, key=lambda mount: len(mount[0])) if inside else ("/", "unknown")


def text_of(path):
    """Return a file's content for hal_node.subids; nothing when there is no file."""
    if not os.path.exists(path):
        return u""
    with io.open(path, "rb") as stream:
        return decoded(stream.read())
