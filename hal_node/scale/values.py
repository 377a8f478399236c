# -*- coding: utf-8 -*-
"""Values of Spectrum Scale's attributes: how they are written, and when two of them are the same.

Pure functions. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
NUMBER = re.compile(r"(-?[0-9]+) ?([KMGT]?)B?\Z", re.IGNORECASE)
# mmdiag prints the switches of the daemon as 1 and 0.
SWITCHES = {"yes": "1", "enable": "1", "true": "1", "on": "1", "no": "0", "disable": "0", "false": "0", "off": "0"}
# What withdraws a setting (IBM Docs, mmchconfig: "Attribute=value").
DEFAULT = "DEFAULT"


def number(value):
    # type: (object) -> int | None
    """Return 131072 for "128K", None for what is not a number."""
    if isinstance(value, bool):
        return None
    match = NUMBER.match(("%s" % (value,)).strip())
    return int(match.group(1)) * UNITS[match.group(2).upper()] if match else None


def written(value):
    # type: (object) -> str
    """Return a value of YAML as mmchconfig takes it: true is yes, a list has blanks."""
    if value is None:
        return DEFAULT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return " ".join("%s" % (part,) for part in value)
    return ("%s" % (value,)).strip()


def plain(value):
    # type: (object) -> str
    """Return a value in the one form that compares: numbers in full, words in lower case, single blanks."""
    text = " ".join(written(value).replace(",", " ").split())
    size = number(text)
    return text.lower() if size is None else "%d" % size


def same(value, other):
    # type: (object, object) -> bool
    """Return whether two values mean the same, each as written in YAML, by mmlsconfig or by mmdiag."""
    value, other = plain(value), plain(other)
    if value == other:
        return True
    if value in SWITCHES or other in SWITCHES:
        return SWITCHES.get(value, value) == SWITCHES.get(other, other)
    return False
