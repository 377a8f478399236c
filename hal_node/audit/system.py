# -*- coding: utf-8 -*-
"""Kernel settings and modules, mounts, host name, SELinux: what is saved, and what is in force.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import os
import re

from ..expect.kernel import read_modules, read_sysctls, sysctl_path
from ..expect.mounts import parse as parse_mounts
from ..expect.values import Unreadable

__metaclass__ = type

SYSCTL_FILE = '/etc/sysctl.conf'
#: Options of a mount that are another after each time it is mounted.
PASSING = ('addr', 'clientaddr', 'mountaddr', 'mountport', 'fd', 'pgrp', 'pipe_ino', 'lowerdir', 'upperdir', 'workdir')


def observe_sysctl(name, declared, node):
    reading = read_sysctls([{'name': name}], folder=_native(node, '/proc/sys'))[0]
    if isinstance(reading, Unreadable):
        raise reading
    out = {'state': 'present' if reading.exists else 'absent', 'file': declared.get('file') or SYSCTL_FILE}
    if reading.exists:
        out['value'] = reading.value
    saved = saved_sysctl(node.text(out['file']) or '', name)
    if saved is not None:
        out['saved'] = saved
    return out


def saved_sysctl(text, name):
    """Return the value that a sysctl.d file gives to a name, None if none. The last line wins. Pure."""
    path, value = sysctl_path(name), None
    for line in text.splitlines():
        line = line.strip()
        if not line or line[0] in '#;' or '=' not in line:
            continue
        key, _equals, right = line.partition('=')
        try:
            if sysctl_path(key.strip().lstrip('-').strip()) == path:
                value = ' '.join(right.split())
        except Unreadable:
            continue
    return value


def observe_kernel_module(name, node):
    reading = read_modules([{'name': name}], folder=_native(node, '/sys/module'))[0]
    if isinstance(reading, Unreadable):
        raise reading
    return {'loaded': bool(reading.value)}


def _native(node, path):
    return node.path(path) if str is bytes else os.fsdecode(node.path(path))


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


def observe_hostname(node):
    text = node.text('/etc/hostname')
    lines = [line.strip() for line in (text or '').splitlines() if line.strip() and not line.startswith('#')]
    return {'name': lines[0]} if lines else {'state': 'absent'}


def observe_selinux(node):
    """Return the configured mode, and the one in force."""
    out = {}
    text = node.text('/etc/selinux/config')
    for line in (text or '').splitlines():
        key, equals, value = line.partition('=')
        if equals and key.strip() == 'SELINUX':
            out['mode'] = value.split('#')[0].strip().lower()
    enforce = node.text('/sys/fs/selinux/enforce')
    out['live'] = 'disabled' if enforce is None else 'enforcing' if enforce.strip() == '1' else 'permissive'
    if 'mode' not in out:
        out['state'] = 'absent'
    return out
