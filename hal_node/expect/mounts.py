# -*- coding: utf-8 -*-
"""Reader `mount`: what is mounted where, from /proc/self/mountinfo (proc(5)); never touches the mount itself.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from .values import Unreadable, missing, present, to_text

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .values import Reading  # noqa: F401  in comments

__metaclass__ = type

MOUNTINFO = '/proc/self/mountinfo'


def read_mounts(requests, table=MOUNTINFO):
    # type: (list[dict[str, Any]], str) -> list[Reading | Unreadable]
    """Return a Reading or Unreadable for each request, in order."""
    try:
        with open(table, 'rb') as stream:
            mounts = parse(to_text(stream.read()))
    except (IOError, OSError) as error:
        return [Unreadable('%s: %s' % (table, error.strerror)) for _request in requests]
    return [_reading(request, mounts) for request in requests]


def parse(text):
    # type: (str) -> dict[str, dict[str, Any]]
    """Return {path: {fstype, source, options}}. Of several mounts on one path the last is the visible one."""
    mounts = {}
    for line in text.splitlines():
        before, separator, after = line.partition(' - ')
        fields, rest = before.split(' '), after.split(' ')
        if not separator or len(fields) < 6 or len(rest) < 3:
            continue
        mounts[_plain(fields[4])] = {
            'fstype': rest[0], 'source': _plain(rest[1]), 'options': effective(fields[5], rest[2])}
    return mounts


def effective(of_mount, of_file_system):
    # type: (str, str) -> list[str]
    """Return the options in force. Read-only holds if either says so, as after an error of the file system."""
    options = []
    for option in of_mount.split(',') + of_file_system.split(','):
        if option and option not in options:
            options.append(option)
    return [option for option in options if not (option == 'rw' and 'ro' in options)]


def _plain(text):
    # type: (str) -> str
    """Undo the octal escapes of blanks and backslashes."""
    return re.sub(r'\\([0-7]{3})', lambda hit: chr(int(hit.group(1), 8)), text)


def _reading(request, mounts):
    # type: (dict[str, Any], dict[str, dict[str, Any]]) -> Reading | Unreadable
    path, what = request['path'], request.get('read') or 'mounted'
    if not path.startswith('/'):
        return Unreadable('path has to be absolute: %s' % path)
    path = path.rstrip('/') or '/'
    mount = mounts.get(path)
    if mount is None:
        return missing('nothing is mounted at %s' % path, False if what == 'mounted' else None)
    if what == 'mounted':
        return present(True)
    if what not in mount:
        return Unreadable('a mount has no "%s" to read' % what)
    return present(mount[what])
