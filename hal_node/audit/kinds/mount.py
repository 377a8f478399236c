# -*- coding: utf-8 -*-
"""Mounts: what is mounted, and what shall be at the next boot.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from .kind import Kind
from ...expect.mounts import parse as parse_mounts

MYPY = False
if MYPY:
    from .kind import Attributes, Difference  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

#: Options of a mount that are another after each time it is mounted.
PASSING = ('addr', 'clientaddr', 'mountaddr', 'mountport', 'fd', 'pgrp', 'pipe_ino', 'lowerdir', 'upperdir', 'workdir')
#: Words of fstab that are flags of the kernel, and the word that means their contrary.
FLAGS = {'ro': 'rw', 'nosuid': 'suid', 'nodev': 'dev', 'noexec': 'exec', 'noatime': 'atime', 'nodiratime': 'diratime'}


class Mounts:
    """The tables of what is mounted and what shall be, read once."""

    def __init__(self, node):
        # type: (Node) -> None
        self.live = parse_mounts(node.text('/proc/self/mountinfo') or '')
        self.saved = parse_fstab(node.text('/etc/fstab') or '')

    def observe(self, path):
        # type: (str) -> Attributes
        path = path.rstrip('/') or '/'
        live, saved = self.live.get(path), self.saved.get(path)
        out = {'state': 'mounted' if live else 'unmounted' if saved else 'absent'}  # type: Attributes
        if live:
            options = [option for option in live['options'] if option.split('=')[0] not in PASSING]
            out.update(source=live['source'], fstype=live['fstype'], options=sorted(options))
        if saved:
            out['saved'] = saved
        return out


def parse_fstab(text):
    # type: (str) -> dict[str, str]
    """Return {path: "options source fstype"}. Pure."""
    table = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 3 or fields[0].startswith('#'):
            continue
        source, path, fstype = [re.sub(r'\\([0-7]{3})', lambda hit: chr(int(hit.group(1), 8)), field)
                                for field in fields[:3]]
        options = fields[3] if len(fields) > 3 else 'defaults'
        table[path.rstrip('/') or '/'] = '%s %s %s' % (options, source, fstype)
    return table


class Mount(Kind):
    """mount:PATH, in force and in /etc/fstab."""

    words = {'options': 'options', 'saved': 'saved'}
    in_force = True

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        return survey.once(Mounts).observe(name)

    def compare(self, recorded, declared, seen, epoch):
        # type: (Attributes, Attributes, Attributes, float) -> list[Difference]
        wanted = declared.get('state')
        if wanted == 'absent':
            if seen['state'] == 'absent':
                return []
            return [('present', 'state', 'absent', seen['state'], '')]
        out, live = [], wanted == 'mounted'  # type: tuple[list[Difference], bool]
        if live and seen['state'] != 'mounted':
            out.append(('missing', 'state', 'mounted', seen['state'], ''))
        leave = ('options', 'source', 'fstype') + (() if 'saved' in declared or 'saved' in recorded else ('saved',))
        mine = {name: value for name, value in declared.items() if name == 'saved'}
        out.extend(self.attributes(recorded, mine, seen, leave))
        if live and seen['state'] == 'mounted':
            if recorded.get('state') == 'mounted':
                out.extend(self.attributes(recorded, {}, seen, ('saved',)))
            missing = _flags_missing(declared, seen.get('options') or [])
            if missing and not any(difference[1] == 'options' for difference in out):
                out.append(('options', 'options', missing, seen.get('options'), 'declared, but not in force'))
        return out

    def may_lack(self, name):
        # type: (str) -> bool
        return name == 'saved'

    def lacked(self, name):
        # type: (str) -> bool
        return name == 'saved'

    def path(self, name, declared):
        # type: (str, Attributes) -> str
        return '/etc/fstab'


def _flags_missing(declared, options):
    # type: (Attributes, list[str]) -> list[str]
    words = declared.get('options')
    if words is None:
        words = (declared.get('saved') or '').split(' ')[0].split(',')
    missing = [word for word in words if word in FLAGS and word not in options]
    missing += [word for word in words for flag, contrary in FLAGS.items() if word == contrary and flag in options]
    return missing
