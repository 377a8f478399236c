# -*- coding: utf-8 -*-
"""Lines and blocks in a file that others may change, too: only what was declared is looked at.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import os
import re

from .kind import Kind, name_of
from ..node import folders_open, small_file
from ..secrets import keyed
from ...expect.files import NOT_THERE
from ...expect.process import read_guarded
from ...expect.values import Unreadable, present, to_text

MYPY = False
if MYPY:
    from ...expect.values import Reading  # noqa: F401  in comments
    from .kind import Attributes, Difference  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

MOST_NEAR = 3
MOST_FILE = 16 * 1024 * 1024


def observe_line(declared, text, key, public):
    # type: (Attributes, str | None, bytes, bool) -> Attributes
    """Return what `text` (None: there is no such file) has of the declared lines. Pure.

    state is present when all of them are there, else absent; `near` are lines that begin alike, for the report.
    """
    lines = [line.rstrip() for line in (text or '').split('\n')]
    have = set(lines)
    if declared.get('lines_keyed'):
        keyed_lines = {keyed(key, line) for line in have if line} if key else set()
        there = [digest for digest in declared['lines_keyed'] if digest in keyed_lines]
        return {'state': _state(declared, len(there), len(declared['lines_keyed'])), 'lines_keyed': there}
    if declared.get('block') is not None:
        block = [line.rstrip() for line in declared['block'].strip('\n').split('\n')]
        spots = [spot for spot in range(len(lines)) if lines[spot:spot + len(block)] == block]
        out = {'state': 'present' if spots else 'absent'}  # type: Attributes
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
    # type: (Attributes, int, int) -> str
    if declared.get('state') == 'absent':
        return 'present' if there else 'absent'
    return 'present' if there == wanted else 'absent'


def near(missing, lines):
    # type: (list[str], list[str]) -> list[str]
    """Return the lines that begin with the first word of a missing one: most likely what it was changed to."""
    words = {_word(line) for line in missing}
    return [line for line in lines if line.strip() and _word(line) in words][:MOST_NEAR]


def _word(line):
    # type: (str) -> str
    return re.split(r'[\s=:]', line.strip().lstrip('#; '), maxsplit=1)[0]


class Line(Kind):
    """line:PATH#NUMBER, read once a file."""

    as_seen = True

    def observe(self, entries, survey):
        # type: (list[Attributes], Survey) -> dict[str, Attributes | Unreadable]
        by_path = {}  # type: dict[str, list[Attributes]]
        for entry in entries:
            by_path.setdefault(self.path(name_of(entry['resource']), {}), []).append(entry)
        paths = sorted(by_path)

        def read(path):
            # type: (str) -> Reading
            return present(_lines_of(path, by_path[path], survey))

        results = {}  # type: dict[str, Attributes | Unreadable]
        for path, answer in zip(paths, read_guarded(read, paths, most_hangs=3)):
            for position, entry in enumerate(by_path[path]):
                results[entry['resource']] = answer if isinstance(answer, Unreadable) else answer.value[position]
        return results

    def compare(self, recorded, declared, seen, epoch):
        # type: (Attributes, Attributes, Attributes, float) -> list[Difference]
        if seen.get('state') == 'unknown':
            return [('unreadable', 'regexp', None, None, 'its pattern is not a regular expression')]
        wanted = declared.get('state') or recorded.get('state') or 'present'
        if seen['state'] == wanted:
            return []
        name = next((key for key in ('lines', 'block', 'regexp') if key in declared), 'state')
        near_by = seen.get('near') or None
        if wanted == 'present':
            should = declared.get(name, 'present')
            if name == 'lines':
                should = [line for line in declared['lines'] if line.rstrip() not in (seen.get('lines') or [])]
            return [('missing', name, should, near_by, '')]
        return [('present', name, 'no line as %s' % declared[name] if name == 'regexp' else 'absent',
                 near_by or seen.get('lines') or 'present', '')]

    def path(self, name, declared):
        # type: (str, Attributes) -> str
        return name.rpartition('#')[0]


def _lines_of(path, entries, survey):
    # type: (str, list[Attributes], Survey) -> list[Attributes]
    text, public, since = None, False, 0.0
    try:
        status = os.stat(survey.node.path(path))
        content = small_file(survey.node.path(path), MOST_FILE)
        if content is None:
            raise Unreadable('%s is not a regular file of at most %d MiB' % (path, MOST_FILE // 1024 // 1024))
        text, since = to_text(content), status.st_mtime
        public = bool(status.st_mode & 0o004) and folders_open(path, survey.node)
    except EnvironmentError as error:
        if error.errno not in NOT_THERE:
            raise Unreadable('%s: %s' % (path, os.strerror(error.errno) if error.errno else error))
    return [dict(observe_line(entry.get('declared') or {}, text, survey.key,
                              public and not entry.get('secret')), since=since, public=public)
            for entry in entries]
