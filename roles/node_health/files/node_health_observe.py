# -*- coding: utf-8 -*-
"""A node that is only observed: what it would be drained for is written, and it stays in service. Python 2.7 and 3.

Nobody knows what a check finds on machines that have been in production for years. So for some days after its first run
on a node it takes none out; an administrator sees what it would have done, and corrects the node or the declaration.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import time

__metaclass__ = type

OBSERVED = "/var/lib/hal-node-health/observed.json"
DAY = 86400
MOST = 100  # lines that are kept
STAMP = "%Y-%m-%d %H:%M"


def observes(days):
    """Return until when the node is only observed, in words; "" when it is not.

    days: declared; they begin with the first call on the node. When that was is kept in OBSERVED: if it cannot be, the
    node is observed.
    """
    if not days:
        return ""
    known, now = _read(), time.time()
    began = known.get("began")
    if not isinstance(began, (int, float)) or began > now:  # or the clock was wrong
        began = now
        if not _write(dict(known, began=began)):
            return "since when it is observed cannot be kept in %s" % OBSERVED
    end = began + days * DAY
    return "only observed until %s" % time.strftime(STAMP, time.localtime(end)) if now < end else ""


def note(words):
    """Keep that the node would have been drained for this."""
    known = _read()
    lines = known.get("lines") if isinstance(known.get("lines"), dict) else {}
    now = time.strftime(STAMP)
    first, _last, times = lines.get(words, (now, now, 0))
    lines[words] = (first, now, times + 1)
    newest = sorted(lines, key=lambda line: lines[line][1])[-MOST:]
    _write(dict(known, lines={line: lines[line] for line in newest}))


def told():
    """Return a line for each reason for which the node would have been drained, by the time of the first."""
    lines = _read().get("lines") or {}
    return ["%s to %s, in %d run%s: %s" % (first, last, times, "" if times == 1 else "s", words)
            for words, (first, last, times) in sorted(lines.items(), key=lambda line: (line[1][0], line[0]))]


def _read():
    try:
        with open(OBSERVED) as stream:
            known = json.load(stream)
    except (IOError, OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(known):
    """Return whether it could be written."""
    try:
        with open(OBSERVED + ".new", "w") as stream:
            json.dump(known, stream, sort_keys=True)
        os.rename(OBSERVED + ".new", OBSERVED)
    except (IOError, OSError):
        return False
    return True
