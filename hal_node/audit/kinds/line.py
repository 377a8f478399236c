# -*- coding: utf-8 -*-
"""Lines and blocks in a file that others may change, too: only what was declared is looked at.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from ..secrets import keyed

__metaclass__ = type

MOST_NEAR = 3


def observe_line(declared, text, key, public):
    """Return what `text` (None: there is no such file) has of the declared lines. Pure.

    state is present when all of them are there, else absent; `near` are lines that begin alike, for the report.
    """
    lines = [line.rstrip() for line in (text or '').split('\n')]
    have = set(lines)
    if declared.get('lines_keyed'):
        keyed_lines = {keyed(key, line) for line in have if line} if key else set()
        there = [one for one in declared['lines_keyed'] if one in keyed_lines]
        return {'state': _state(declared, len(there), len(declared['lines_keyed'])), 'lines_keyed': there}
    if declared.get('block') is not None:
        block = [line.rstrip() for line in declared['block'].strip('\n').split('\n')]
        spots = [spot for spot in range(len(lines)) if lines[spot:spot + len(block)] == block]
        out = {'state': 'present' if spots else 'absent'}
        if spots:
            out['block'] = declared['block']
        elif public and text is not None:
            out['near'] = [line for line in block if line not in have][:MOST_NEAR]
        return out
    if declared.get('lines'):
        wanted = [line.rstrip() for line in declared['lines']]
        there = [line for line in wanted if line in have]
        out = {'state': _state(declared, len(there), len(wanted)), 'lines': there}
        if public and len(there) < len(wanted):
            out['near'] = near([line for line in wanted if line not in have], lines)
        return out
    if declared.get('regexp'):
        try:
            pattern = re.compile(declared['regexp'])
        except re.error:
            return {'state': 'unknown'}
        hits = [line for line in lines if pattern.search(line)]
        out = {'state': 'present' if hits else 'absent'}
        if hits and public:
            out['near'] = hits[:MOST_NEAR]
        return out
    return {'state': 'present' if text is not None else 'absent'}


def _state(declared, there, wanted):
    if declared.get('state') == 'absent':
        return 'present' if there else 'absent'
    return 'present' if there == wanted else 'absent'


def near(missing, lines):
    """Return the lines that begin with the first word of a missing one: most likely what it was changed to."""
    words = {_word(line) for line in missing}
    return [line for line in lines if line.strip() and _word(line) in words][:MOST_NEAR]


def _word(line):
    return re.split(r'[\s=:]', line.strip().lstrip('#; '), maxsplit=1)[0]
