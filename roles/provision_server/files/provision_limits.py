# -*- coding: utf-8 -*-
"""What those who ask may take of hal-provision: connections, time, lines of the journal. Python 2.7 and 3.

A node has a share of its own, this machine has one, and all strangers have one together. Whoever uses up a share takes
nothing from anybody else, and all shares together are less than what the unit allows.
"""

from __future__ import absolute_import, division, print_function

import os
import socket
import threading
import time

from provision_common import Problem, clean, say
from provision_trail import Refusals

WATCH_SECONDS = 0.5
MOST_LINES = 60
PERIOD_SECONDS = 60
MOST_LETTERS = 300


def clock():
    """Return seconds of a clock that nobody sets. time.monotonic came with Python 3."""
    return os.times()[4]


class Limits(object):
    """What all places that listen have in common."""

    def __init__(self, place):
        self.place = place
        self.refusals, self.journal = Refusals(place), Journal()
        self.connections = Connections(place.connections, place.request_seconds)

    def share(self, address):
        """Return whose share an address uses; None is that of all strangers."""
        try:
            node = self.place.by_address(address)
        except Problem:  # nobody is known then; who asks is told so, and the journal
            node = None
        return node or (address if address in self.place.listen else None)

    def say(self, address, words):
        """Write a line to the journal that this address caused, as long as its share has any left."""
        self.journal.say(time.time(), self.share(address), "%s %s" % (address, words))

    def watch(self):
        """End connections whose time is over, as long as this process lives."""
        while True:
            time.sleep(WATCH_SECONDS)
            self.connections.end_late()


class Connection(object):
    """One that is open: whose it is, and until when. `late`: its time was over, and it was ended."""

    def __init__(self, share, handle, end):
        self.share, self.late, self._handle, self._end = share, False, handle, end

    def end_if_late(self, now):
        """End it when its time is over, whatever its thread waits for. That thread gets an error, or the end."""
        if not self.late and self._end <= now:
            self.late = True
            try:
                self._handle.shutdown(socket.SHUT_RDWR)
            except (IOError, OSError):
                pass  # the other side was quicker

    def close(self):
        """Give the handle back."""
        self._handle.close()


class Connections(object):
    """Those that are open: of each share at most `most`, none longer than `seconds`, from first to last byte.

    A limit for each wait would not do: who sends a byte now and then stays for good.
    """

    def __init__(self, most, seconds):
        self.most, self.seconds = most, seconds
        self._lock, self._open = threading.Lock(), {}

    def enter(self, share, request):
        """Return the connection, which has to `leave`; None when there is no room for it."""
        with self._lock:
            there = self._open.setdefault(share, set())
            if len(there) >= self.most:
                return None
            # A handle of its own: that of the thread is closed, or becomes TLS, while somebody looks at the time.
            connection = Connection(share, request.dup(), clock() + self.seconds)
            there.add(connection)
            return connection

    def leave(self, connection):
        """Make room."""
        with self._lock:
            self._open[connection.share].discard(connection)
            if not self._open[connection.share]:
                del self._open[connection.share]
            connection.close()

    def end_late(self):
        """End all whose time is over."""
        with self._lock:
            now = clock()
            for there in self._open.values():
                for connection in there:
                    connection.end_if_late(now)


class Journal(object):
    """Lines that others cause: short, of letters, and of each share at most MOST_LINES within PERIOD_SECONDS."""

    def __init__(self):
        self._lock, self._since, self._lines = threading.Lock(), None, {}

    def say(self, now, share, words):
        """Write a line, or leave it out."""
        with self._lock:
            if self._since is None or not 0 <= now - self._since < PERIOD_SECONDS:
                self._since, self._lines = now, {}
            lines = self._lines[share] = self._lines.get(share, 0) + 1
        if lines <= MOST_LINES:
            say(clean(words)[:MOST_LETTERS])
        elif lines == MOST_LINES + 1:
            say("%s: more than %d lines a minute; the others are left out" % (share or "strangers", MOST_LINES))
