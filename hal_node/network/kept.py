# -*- coding: utf-8 -*-
"""Files of interfaces as they were: when they were last in force, and before the role's own.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import shutil

from ansible.module_utils.common.text.converters import to_bytes, to_text

from ..files import content_of
from . import places
from .files import HEADER
from .live import head_of

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping, Sequence  # noqa: F401  in comments


def keep(path, content, head, waiting):
    # type: (str, bytes | None, str, set[str]) -> None
    """Keep a file as it was when it was in force, for the way back; what an earlier run kept is older and stays."""
    folder = places.SAVED + "/" + head
    copy = folder + "/" + os.path.basename(path)
    if head not in waiting or os.path.exists(copy) or os.path.exists(copy + ".absent"):
        return
    if not os.path.isdir(folder):
        os.makedirs(folder, 0o700)
    if content is None:
        put(copy + ".absent", [])
    else:
        shutil.copy2(path, copy)


def keep_first(path, content):
    # type: (str, bytes | None) -> None
    """Keep what somebody else wrote, for ever: a boot does not ask whether it was in force."""
    copy = places.BEFORE + "/" + os.path.basename(path)
    if content is None or content.startswith(to_bytes(HEADER)) or os.path.exists(copy):
        return
    if not os.path.isdir(places.BEFORE):
        os.makedirs(places.BEFORE, 0o700)
    shutil.copy2(path, copy)


def forget(heads):
    # type: (Iterable[str]) -> None
    """Forget older files of interfaces that are as their files say."""
    for head in heads:
        shutil.rmtree(places.SAVED + "/" + head, ignore_errors=True)


def text_in_force(device):
    # type: (Mapping[str, Any]) -> str
    """Return the file of an interface as it was when it was in force."""
    copy = "%s/%s/%s" % (places.SAVED, head_of(device), os.path.basename(device["path"]))
    if os.path.exists(copy + ".absent"):
        return ""
    return shown(content_of(copy if os.path.exists(copy) else device["path"]))


def shown(content):
    # type: (bytes | None) -> str
    """Return bytes of a file, or None, as text."""
    return to_text(content or b"", errors="surrogate_or_replace")  # type: ignore[no-any-return]  # Ansible has no types


def put(path, lines):
    # type: (str, Sequence[str]) -> None
    """Write lines."""
    with open(path, "wb") as stream:
        stream.write(to_bytes("".join(line + "\n" for line in lines)))


def settle(*folders):
    # type: (*str) -> None
    """Get files to the disk: a power cut soon after leaves empty ones otherwise."""
    for root, _, names in (level for folder in folders for level in os.walk(folder)):
        for path in [root] + [os.path.join(root, name) for name in names]:
            if os.path.isdir(path) or os.path.isfile(path):
                handle = os.open(path, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)
