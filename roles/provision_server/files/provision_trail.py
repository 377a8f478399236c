# -*- coding: utf-8 -*-
"""The trail of hal-provision: what was done, and apart from it what was refused. Python 2.7 and 3.

audit.jsonl     orders, what was handed out, calls home. Nobody without an order or a token adds a line
refused.jsonl   who was refused. Strangers can ask as often as they like, so equal refusals are counted, not repeated

Each has at most two files of MOST_BYTES. They are two so that no number of refusals pushes out what was done.
"""

from __future__ import absolute_import, division, print_function

import json
import os
import threading

from provision_common import Problem, alone, as_account, opened, stamp

DONE, REFUSED = "audit.jsonl", "refused.jsonl"
MOST_BYTES = 10 * 1024 * 1024
PERIOD_SECONDS = 3600
MOST_STRANGERS = 20


def worth(times):
    """Return whether event number `times` of equal ones gets a line: the first, and each power of ten."""
    return str(times).rstrip("0") == "1"


def done(place, now, node, address, what, result):
    """Write down what is about to be done; Problem when that cannot be. No caller gives a token here."""
    _append(place, DONE, now, {"node": node, "address": address, "what": what, "result": result})


class Refusals(object):
    """Who was refused, by one server. Its memory and its lines are bounded, whatever is asked of it."""

    def __init__(self, place):
        self._place, self._lock = place, threading.Lock()
        self._since, self._times, self._strangers = None, {}, set()

    def note(self, now, node, address, what, result):
        """Write a refusal down when it is the first of its kind within the hour, or the tenth, or the hundredth.

        `what` has words of the one who asks: it is written, and makes nothing a kind of its own. Return whether it was
        written: then it is worth a line in the journal, too.
        """
        with self._lock:
            if self._since is None or not 0 <= now - self._since < PERIOD_SECONDS:
                self._since, self._times, self._strangers = now, {}, set()
            if node is None and address not in self._strangers:
                if len(self._strangers) < MOST_STRANGERS:
                    self._strangers.add(address)
                else:
                    address, what = "others", ""
            kind = (node, address, result)
            times = self._times[kind] = self._times.get(kind, 0) + 1
        if worth(times):
            line = {"node": node, "address": address, "what": what, "result": result}
            _append(self._place, REFUSED, now, dict(line, times=times) if times > 1 else line)
        return worth(times)


def _append(place, name, now, line):
    path = os.path.join(place.state, name)
    text = json.dumps(dict(line, at=stamp(now)), sort_keys=True) + "\n"
    try:
        # Two who rotate at once would throw away what was just written.
        with as_account(place), alone(os.path.join(place.state, ".lock-trail"), "the trail"):
            if os.path.exists(path) and os.path.getsize(path) > MOST_BYTES:
                os.rename(path, path + ".1")
            handle = opened(path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(handle, text.encode("utf-8"))
            finally:
                os.close(handle)
    except (IOError, OSError) as error:
        raise Problem("%s: cannot be written: %s" % (path, error.strerror))
