# -*- coding: utf-8 -*-
"""Get a file of a repository: resume what was interrupted, and keep nothing that is not what was locked.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import io
import os

from ansible.module_utils.six.moves.urllib.parse import unquote, urlsplit
from ansible.module_utils.urls import open_url

from ..digest import BLOCK, sha256_of

PARTIAL = 206


class MirrorError(Exception):
    """Why a file cannot be published; the text is for the administrator."""


def fetch(address, path, size, sha256, timeout_seconds):
    # type: (str, str, int, str, float) -> int
    """Bring a file to path; return how many bytes had to be fetched.

    What an interrupted run left in path.part is gone on with. A file that is not what was locked is removed.
    """
    part = path + ".part"
    have = os.path.getsize(part) if os.path.exists(part) else 0
    if have > size:
        os.unlink(part)
        have = 0
    fetched = 0
    if have < size:
        try:
            fetched = _append(address, part, have, size, timeout_seconds)
        except Exception as error:  # urllib, ssl and socket have no common root in Python 2
            raise MirrorError("%s: cannot be read: %s; what came is kept, the next run goes on" % (address, error))
    came = os.path.getsize(part)
    if came < size:
        raise MirrorError("%s: ends after %d of %d bytes; what came is kept, the next run goes on"
                          % (address, came, size))
    checksum = sha256_of(part)
    if came != size or checksum != sha256:
        os.unlink(part)
        raise MirrorError("%s: has sha256 %s (%d bytes), locked is %s (%d bytes): not published"
                          % (address, checksum, came, sha256, size))
    os.rename(part, path)
    return fetched


def _append(address, part, have, size, timeout_seconds):
    # type: (str, str, int, int, float) -> int
    if address.startswith("file://"):
        source = io.open(unquote(urlsplit(address).path), "rb")  # noqa: SIM115  # closed below, as the other one
        source.seek(have)
    else:
        headers = {"Range": "bytes=%d-" % have} if have else {}
        source = open_url(address, headers=headers, timeout=timeout_seconds, http_agent="hal-mirror")
        if have and source.getcode() != PARTIAL:
            have = 0  # a server that cannot resume sends all of it
    fetched = 0
    try:
        with io.open(part, "r+b" if have else "wb") as target:
            target.seek(have)
            # One byte more than wanted: a longer file is another file.
            while have + fetched <= size:
                block = source.read(min(BLOCK, size + 1 - have - fetched))
                if not block:
                    break
                target.write(block)
                fetched += len(block)
            target.truncate()
    finally:
        source.close()
    return fetched
