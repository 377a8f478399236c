# -*- coding: utf-8 -*-
"""What modules that own files on a node share.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import pwd
import tempfile

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments


def has_user(name):
    # type: (str) -> bool
    """Return whether the user exists; in a first check, before packages are installed, it may not."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def content_of(path):
    # type: (str) -> bytes | None
    """Return the bytes of a file; None when there is no such file."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as stream:
        return stream.read()


def replace_content(module, path, content):
    # type: (Any, str, bytes) -> None
    """Write the bytes beside the file and move them there, so that no reader meets half of them."""
    handle, temporary = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    module.atomic_move(temporary, path)
