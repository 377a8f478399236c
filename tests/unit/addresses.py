"""Addresses of the loopback interface that no other test has, so that ports need not be looked for.

A port that was free a moment ago may be another's when it is used; an address of one's own has all its ports.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

_MARK = 14999
_kept: list[socket.socket] = []  # as long as this process lives, so do its networks


def network() -> str:
    """Return three octets of a loopback network that no other process has: who listens at its .1 owns it."""
    for number in range(os.getpid(), os.getpid() + 60_000):
        octets = f"127.{16 + number // 250 % 239}.{number % 250}"
        mark = socket.socket()
        try:
            mark.bind((f"{octets}.1", _MARK))
            mark.listen(1)
        except OSError:
            mark.close()
            continue
        _kept.append(mark)
        return octets
    raise OSError("no network of the loopback interface is left")


def _addresses() -> Iterator[str]:
    while True:
        octets = network()
        yield from (f"{octets}.{last}" for last in range(2, 255))


_each = _addresses()


def address() -> str:
    """Return an address that is given once."""
    return next(_each)
