# -*- coding: utf-8 -*-
"""Mounts: what is mounted, and what shall be at the next boot.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from ...expect.mounts import parse as parse_mounts

__metaclass__ = type

#: Options of a mount that are another after each time it is mounted.
PASSING = ('addr', 'clientaddr', 'mountaddr', 'mountport', 'fd', 'pgrp', 'pipe_ino', 'lowerdir', 'upperdir', 'workdir')


class Mounts:
    """The tables of what is mounted and what shall be, read once."""

    def __init__(self, node):
        self.live = parse_mounts(node.text('/proc/self/mountinfo') or '')
        self.saved = parse_fstab(node.text('/etc/fstab') or '')

    def observe(self, path):
        path = path.rstrip('/') or '/'
        live, saved = self.live.get(path), self.saved.get(path)
        out = {'state': 'mounted' if live else 'unmounted' if saved else 'absent'}
        if live:
            options = [one for one in live['options'] if one.split('=')[0] not in PASSING]
            out.update(source=live['source'], fstype=live['fstype'], options=sorted(options))
        if saved:
            out['saved'] = saved
        return out


def parse_fstab(text):
    """Return {path: "options source fstype"}. Pure."""
    table = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 3 or fields[0].startswith('#'):
            continue
        source, path, fstype = [re.sub(r'\\([0-7]{3})', lambda hit: chr(int(hit.group(1), 8)), one)
                                for one in fields[:3]]
        options = fields[3] if len(fields) > 3 else 'defaults'
        table[path.rstrip('/') or '/'] = '%s %s %s' % (options, source, fstype)
    return table
