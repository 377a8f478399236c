# -*- coding: utf-8 -*-
"""The mode of SELinux: what is configured, and what is in force.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type


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
