# -*- coding: utf-8 -*-
"""Reader `port`: listening sockets, from /proc/net/{tcp,tcp6,udp,udp6} (proc(5)).

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import errno
import os
import socket
import struct
import sys

from .values import Unreadable, as_number, missing, present, to_text

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .values import Reading  # noqa: F401  in comments

__metaclass__ = type

NET_FOLDER = '/proc/net'
TABLES = {
    'tcp': ('tcp', 'tcp6'), 'tcp4': ('tcp',), 'tcp6': ('tcp6',),
    'udp': ('udp', 'udp6'), 'udp4': ('udp',), 'udp6': ('udp6',),
}
LISTENING = {'tcp': '0A', 'udp': '07'}  # TCP_LISTEN; an unconnected UDP socket is TCP_CLOSE


def read_ports(requests, folder=NET_FOLDER):
    # type: (list[dict[str, Any]], str) -> list[Reading | Unreadable]
    """Return a Reading or Unreadable for each request, in order. Each table is read once."""
    tables = {}  # type: dict[str, list[tuple[str, int]]]
    return [_caught(request, folder, tables) for request in requests]


def _caught(request, folder, tables):
    # type: (dict[str, Any], str, dict[str, list[tuple[str, int]]]) -> Reading | Unreadable
    try:
        return _reading(request, folder, tables)
    except Unreadable as error:
        return error


def _reading(request, folder, tables):
    # type: (dict[str, Any], str, dict[str, list[tuple[str, int]]]) -> Reading
    port = as_number(request['port'])
    if port is None or port != int(port) or not 0 < port < 65536:
        raise Unreadable('port has to be a number from 1 to 65535')
    protocol, what = request.get('protocol') or 'tcp', request.get('read') or 'listening'
    if protocol not in TABLES:
        raise Unreadable('protocol has to be one of %s' % ', '.join(sorted(TABLES)))
    sockets = []
    for name in TABLES[protocol]:
        if name not in tables:
            tables[name] = _table(folder, name)
        sockets.extend(tables[name])
    addresses = sorted({address for address, number in sockets if number == port})
    if request.get('address'):
        wanted = _packed(request['address'])
        addresses = [address for address in addresses if _packed(address) == wanted]
    place = '%s port %d%s' % (protocol, port, ' at %s' % request['address'] if request.get('address') else '')
    if what not in ('listening', 'addresses'):
        raise Unreadable('a port has no "%s" to read' % what)
    if not addresses:
        return missing('nothing listens on %s' % place, False if what == 'listening' else None)
    return present(True) if what == 'listening' else present(addresses)


def _table(folder, name):
    # type: (str, str) -> list[tuple[str, int]]
    path = os.path.join(folder, name)
    try:
        with open(path, 'rb') as stream:
            return parse(to_text(stream.read()), LISTENING[name[:3]])
    except (IOError, OSError) as error:
        if error.errno == errno.ENOENT and name.endswith('6'):
            return []  # a kernel without IPv6
        raise Unreadable('%s: %s' % (path, error.strerror))


def parse(text, state, byteorder=sys.byteorder):
    # type: (str, str, str) -> list[tuple[str, int]]
    """Return [(address, port)] of the sockets in a state. Addresses are words in the byte order of the machine."""
    found_sockets = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 4 or fields[3] != state:
            continue
        address, port = fields[1].split(':')
        found_sockets.append((_address(address, byteorder), int(port, 16)))
    return found_sockets


def _address(digits, byteorder):
    # type: (str, str) -> str
    words = [int(digits[start:start + 8], 16) for start in range(0, len(digits), 8)]
    packed = b''.join(struct.pack('<I' if byteorder == 'little' else '>I', word) for word in words)
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed)
    if packed[:12] == b'\0' * 10 + b'\xff\xff':
        return socket.inet_ntop(socket.AF_INET, packed[12:])
    return socket.inet_ntop(socket.AF_INET6, packed)


def _packed(address):
    # type: (object) -> bytes
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            return socket.inet_pton(family, str(address))
        except (socket.error, ValueError):
            continue
    raise Unreadable('not an IP address: "%s"' % address)
