# -*- coding: utf-8 -*-
"""The mode of SELinux: what is configured, and what is in force.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind

MYPY = False
if MYPY:
    from .kind import Attributes, Difference  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type


def observe_selinux(node):
    # type: (Node) -> Attributes
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


class Selinux(Kind):
    """selinux:mode."""

    words = {'mode': 'mode', 'live': 'live'}
    in_force = comes_back = True

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        return observe_selinux(survey.node)

    def differing(self, recorded, declared, seen):
        # type: (Attributes, Attributes, Attributes) -> list[Difference]
        out = self.attributes(recorded, declared, seen, ('live',))
        if seen.get('live') != seen.get('mode'):
            if recorded.get('live') not in (None, seen.get('live')):
                out.append(('live', 'live', recorded['live'], seen.get('live'), ''))
            elif not out:
                out.append(('not-effective', 'live', seen.get('mode'), seen.get('live'),
                            'configured; it takes a reboot'))
        return out

    def may_lack(self, name):
        # type: (str) -> bool
        return name == 'mode'

    def merged(self, out, seen, before, declared, changed, plain):
        # type: (Attributes, Attributes, Attributes, Attributes, bool, str | None) -> Attributes
        return dict(out, live=seen.get('live')) if seen.get('live') == seen.get('mode') else out

    def path(self, name, declared):
        # type: (str, Attributes) -> str
        return '/etc/selinux/config'
