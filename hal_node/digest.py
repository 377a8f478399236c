# -*- coding: utf-8 -*-
"""SHA-256 of files; memory does not grow with them.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import hashlib

MYPY = False
if MYPY:
    from typing import IO  # noqa: F401  in comments

BLOCK = 1024 * 1024


def sha256_of(path):
    # type: (str | bytes) -> str
    """Return the digest of a file's content in hex."""
    with open(path, "rb") as stream:
        return sha256_of_rest(stream)


def sha256_of_rest(stream):
    # type: (IO[bytes]) -> str
    """Return the digest in hex of what an open file still has."""
    digest = hashlib.sha256()
    for block in iter(lambda: stream.read(BLOCK), b""):
        digest.update(block)
    return digest.hexdigest()
