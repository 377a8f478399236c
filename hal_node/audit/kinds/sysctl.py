# -*- coding: utf-8 -*-
"""Kernel settings: what is saved, and what is in force.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from ...expect.kernel import read_sysctls, sysctl_path
from ...expect.values import Unreadable

__metaclass__ = type

SYSCTL_FILE = '/etc/sysctl.conf'


def observe_sysctl(name, declared, node):
    reading = read_sysctls([{'name': name}], folder=node.native('/proc/sys'))[0]
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
