# -*- coding: utf-8 -*-
"""Users in words: who owns a process or a file, for sinfo and for a log. Python 2.7 and 3.

Names of accounts and processes are other people's text. A name stands as one word without blanks, commas or brackets,
so that none of them looks like words of ours.
"""

from __future__ import absolute_import, division, print_function

import re

from hal_node.expect.process import run
from hal_node.expect.values import Unreadable

__metaclass__ = type

LOWEST_UID = 1000  # smaller numbers are accounts of the system: login.defs(5), UID_MIN; hal_inventory/users.py
LONGEST = 32  # characters of a name
SECONDS = 2  # for the directory of users to answer
SUBUID = "/etc/subuid"


def is_user(uid):
    """Whether a number is a user's: neither root's nor one of an account of the system."""
    return uid >= LOWEST_UID


def plain(name):
    """Return a name, given as bytes or as text, as one word of ASCII, with "?" for what is not plain."""
    text = name.decode("utf-8", "replace") if isinstance(name, bytes) else name
    return re.sub(r"[^A-Za-z0-9_.+:/@-]", "?", text)[:LONGEST] or "?"


def named(uids):
    """Return {uid: "uid 1004 (eve)"}, without a name where there is none or the directory does not answer."""
    names = _names(uids) if uids else {}
    names.update((uid, _holder(uid)) for uid in uids if uid not in names)
    return {uid: "uid %d (%s)" % (uid, names[uid]) if names[uid] else "uid %d" % uid for uid in uids}


def _names(uids):
    """Return {uid: name}. A program is asked, since it can be ended: the library's call may wait long for LDAP."""
    try:
        out = run(["getent", "passwd"] + ["%d" % uid for uid in uids], timeout_seconds=SECONDS)[1]
    except Unreadable:
        return {}
    names = {}
    for fields in (line.split(":") for line in out.splitlines()):
        if len(fields) > 2 and fields[2].isdigit():
            names.setdefault(int(fields[2]), plain(fields[0]))
    return names


def _holder(uid):
    """Return whose subordinate id it is, "" for nobody's: root of a container has one outside of it (subuid(5))."""
    try:
        with open(SUBUID, "rb") as stream:
            ranges = [line.strip().split(b":") for line in stream]
    except (IOError, OSError):
        return ""
    for entry in ranges:
        if len(entry) == 3 and entry[1].isdigit() and entry[2].isdigit() and 0 <= uid - int(entry[1]) < int(entry[2]):
            return "an id of " + plain(entry[0])
    return ""
