# -*- coding: utf-8 -*-
"""Bring the archives of packages: resumed, and verified before anything is unpacked. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import errno
import io
import os
import socket

try:
    from urllib.error import URLError
    from urllib.parse import quote, unquote, urlsplit
    from urllib.request import ProxyHandler, Request, build_opener
except ImportError:
    from urllib import quote, unquote
    from urllib2 import ProxyHandler, Request, URLError, build_opener
    from urlparse import urlsplit

try:
    from http.client import HTTPException
except ImportError:
    from httplib import HTTPException

from environment_common import BLOCK, Full, Problem
from hal_node.digest import sha256_of

PARTIAL = 206
NEXT = "what came is kept, and the next run goes on"


def archive(root, package):
    """Return the place of a package's archive: named by its checksum, so two channels' files never meet."""
    return os.path.join(root, ".packages", "files", package["sha256"], package["file"])


def address(package, channels, mirror):
    """Return where a package comes from: its channel, or the mirror and nothing else."""
    base = "%s/%s" % (mirror.rstrip("/"), package["channel"]) if mirror else channels[package["channel"]].rstrip("/")
    return "%s/%s/%s" % (base, package["subdir"], quote(package["file"]))


def is_here(path, package):
    """Say whether the archive is here and is the locked one; one that is not is removed."""
    if not os.path.isfile(path):
        return False
    if os.path.getsize(path) == package["size"] and sha256_of(path) == package["sha256"]:
        return True
    os.unlink(path)
    return False


def fetch(source, path, package, timeout_seconds):
    """Bring an archive to path; raise Problem or Full in one line."""
    part = path + ".part"
    have = os.path.getsize(part) if os.path.exists(part) else 0
    if have > package["size"]:
        os.unlink(part)
        have = 0
    if have < package["size"]:
        try:
            _append(source, part, have, package["size"], timeout_seconds)
        except (IOError, OSError, HTTPException, URLError, socket.error, ValueError) as error:
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
                raise Full("no room for %s; %s" % (package["file"], NEXT))
            raise Problem("%s cannot be read: %s; %s" % (source, getattr(error, "reason", None) or error, NEXT))
    size = os.path.getsize(part)
    if size < package["size"]:
        raise Problem("%s ends after %d of %d bytes; %s" % (source, size, package["size"], NEXT))
    checksum = sha256_of(part)
    if size != package["size"] or checksum != package["sha256"]:
        os.unlink(part)
        raise Problem("%s has sha256 %s, locked is %s: it is not used" % (source, checksum, package["sha256"]))
    os.rename(part, path)


def _append(source, part, have, size, timeout_seconds):
    if source.startswith("file://"):
        stream = io.open(unquote(urlsplit(source).path), "rb")  # noqa: SIM115  # closed below, as the other one
        stream.seek(have)
    else:
        request = Request(source, headers={"Range": "bytes=%d-" % have} if have else {})
        # No proxy: channels are asked by the mirror's node, or the mirror by others.
        stream = build_opener(ProxyHandler({})).open(request, timeout=timeout_seconds)
        if have and stream.getcode() != PARTIAL:
            have = 0  # a server that cannot resume sends all of it
    try:
        with io.open(part, "r+b" if have else "wb") as target:
            target.seek(have)
            # One byte more than wanted: a longer file is another file.
            while have <= size:
                block = stream.read(min(BLOCK, size + 1 - have))
                if not block:
                    break
                target.write(block)
                have += len(block)
            target.truncate()
            target.flush()
            os.fsync(target.fileno())
    finally:
        stream.close()
