# -*- coding: utf-8 -*-
"""Text and bytes, which Python 2 and 3 take for names of files and for words in different ways.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import sys

MYPY = False
if MYPY:
    from typing import Any, Callable  # noqa: F401  in comments

WORD = type(u"")


def mapped(value, change):
    # type: (Any, Callable[[Any], Any]) -> Any
    """Return what JSON gave with `change` made to all but mappings and lists, keys as well."""
    if isinstance(value, dict):
        return {mapped(key, change): mapped(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [mapped(item, change) for item in value]
    return change(value)


def native(value):
    # type: (Any) -> Any
    """Return what JSON gave with Python's own strings: names of files are bytes in Python 2, whatever the locale."""
    return mapped(value, _native)


def _native(value):
    # type: (Any) -> Any
    return value.encode("utf-8") if sys.version_info < (3,) and isinstance(value, WORD) else value


def name_of(raw):
    # type: (bytes) -> str
    """Return bytes as the name of a file that Python's own functions take: in Python 3 a text with any byte in it."""
    if sys.version_info < (3,):
        return raw
    return os.fsdecode(raw)


def raw_of(name):
    # type: (str | bytes) -> bytes
    """Return the bytes of a file's name."""
    return name if isinstance(name, bytes) else os.fsencode(name)


def text(value):
    # type: (object) -> str
    """Return anything as text for people and JSON; what is not UTF-8 is replaced."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, WORD):
        return value if sys.version_info < (3,) else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return u"%s" % value


def in_words(size):
    # type: (float) -> str
    """Return a number of bytes for people."""
    for unit, factor in (("TB", 1000 ** 4), ("GB", 1000 ** 3), ("MB", 1000 ** 2), ("kB", 1000)):
        if size >= factor:
            return "%.1f %s" % (size / factor, unit)
    return "%d bytes" % size
