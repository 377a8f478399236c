# -*- coding: utf-8 -*-
"""The host name that is saved.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

__metaclass__ = type


def observe_hostname(node):
    text = node.text('/etc/hostname')
    lines = [line.strip() for line in (text or '').splitlines() if line.strip() and not line.startswith('#')]
    return {'name': lines[0]} if lines else {'state': 'absent'}
