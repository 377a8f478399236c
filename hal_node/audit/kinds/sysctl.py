# -*- coding: utf-8 -*-
"""Kernel settings: what is saved, and what is in force.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind
from ...expect.kernel import read_sysctls, sysctl_path
from ...expect.values import Unreadable

MYPY = False
if MYPY:
    from .kind import Attributes, Difference  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

SYSCTL_FILE = '/etc/sysctl.conf'


def observe_sysctl(name, declared, node):
    # type: (str, Attributes, Node) -> Attributes
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
    # type: (str, str) -> str | None
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


class Sysctl(Kind):
    """sysctl:NAME, in force and in the file that is declared."""

    words = {'value': 'live', 'saved': 'saved'}
    only_declared = ('value',)
    in_force = comes_back = True

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        return observe_sysctl(name, entry.get('declared') or {}, survey.node)

    def compare(self, recorded, declared, seen, epoch):
        # type: (Attributes, Attributes, Attributes, float) -> list[Difference]
        if declared.get('state') == 'absent':
            return [('present', 'saved', None, seen['saved'], '')] if 'saved' in seen else []
        return Kind.compare(self, recorded, declared, seen, epoch)

    def may_lack(self, name):
        # type: (str) -> bool
        return name in ('value', 'saved')

    def lacked(self, name):
        # type: (str) -> bool
        return name == 'saved'

    def path(self, name, declared):
        # type: (str, Attributes) -> str
        return declared.get('file') or SYSCTL_FILE
