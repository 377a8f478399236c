# -*- coding: utf-8 -*-
"""Sections of repository files.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from ..secrets import PASSWORD_IN_URL, REPOSITORY, keyed

__metaclass__ = type


def observe_repository(name, node, key):
    path, _hash, section = name.partition('#')
    settings = sections(node.text(path) or '').get(section)
    if settings is None:
        return {'state': 'absent'}
    out = {'state': 'present'}
    for setting, value in settings.items():
        secret = setting in REPOSITORY or PASSWORD_IN_URL.search(value)
        out[setting] = 'keyed ' + keyed(key, value) if secret and value else value
    return out


def sections(text):
    """Return {section: {key: value}} of a repository file. Lines that go on are one value with line breaks. Pure."""
    found_sections, current, last = {}, None, None
    for line in text.splitlines():
        if not line.strip() or line.lstrip()[0] in '#;':
            continue
        if line.startswith('[') and ']' in line:
            current, last = found_sections.setdefault(line[1:line.index(']')], {}), None
        elif current is not None and line[0] in ' \t' and last:
            current[last] = (current[last] + '\n' + line.strip()).strip('\n')
        elif current is not None and '=' in line:
            key, _equals, value = line.partition('=')
            last = key.strip().lower()
            current[last] = value.strip()
    return found_sections
