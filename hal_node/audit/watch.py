# -*- coding: utf-8 -*-
"""Watched folders: files that are neither recorded nor of a package.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import errno
import fnmatch
import glob
import os

from .files import kind
from .kinds.kind import kind_of, name_of
from .kinds.registry import kind_named
from .node import as_bytes, changed_at, shown_name
from .packages import owned
from ..expect.process import read_guarded
from ..expect.values import Unreadable, present

MYPY = False
if MYPY:
    from typing import Any, Collection, Sequence  # noqa: F401  in comments
    from .node import Node  # noqa: F401

__metaclass__ = type

MASKS = '/etc/systemd/system'
MOST_FILES = 20000  # of one folder and all below it
BELOW = '/**'


def recorded_paths(entries):
    # type: (list[dict[str, Any]]) -> set[str]
    """Return the paths that the record knows, whatever it knows of them."""
    paths = set()
    for entry in entries:
        name, what = name_of(entry['resource']), kind_of(entry['resource'])
        if what == 'file':
            paths.add(name)
        elif what == 'service' and (entry.get('declared') or {}).get('masked') is True:
            paths.add('%s/%s' % (MASKS, name))  # the link that masks it
        elif what in ('line', 'repository'):
            paths.add(kind_named(what).path(name, {}))
    return paths


def look_for_extra(watched, recorded, node):
    # type: (list[dict[str, Any]], Collection[str], Node) -> tuple[list[dict[str, Any]], int, list[str]]
    """Return ([{path, what, type, note, when}], number of files looked at, [problems])."""
    problems, seen = [], {}  # type: tuple[list[str], dict[str, tuple[dict[str, Any], str, bool]]]
    for place, answer in zip(watched, read_guarded(lambda place: present(_files(place, node)), watched, most_hangs=3)):
        if isinstance(answer, Unreadable):
            problems.append('%s: %s' % (place.get('path'), answer.reason))
            continue
        problems.extend(answer.value['problems'])
        for path, what, plain in answer.value['files']:
            seen.setdefault(path, (place, what, plain))
    strange = sorted(path for path, (place, _what, _plain) in seen.items()
                     if path not in recorded and not is_accepted(path, place.get('accepted') or []))
    try:
        of_packages = owned([node.path(path) for path in strange if seen[path][2]], node)
    except Unreadable as error:
        problems.append('whose files %d in watched folders are is not known: %s' % (len(strange), error.reason))
        return [], len(seen), problems
    extra = []
    for path in strange:
        place, what, plain = seen[path]
        if plain and node.path(path) in of_packages:
            continue
        note = '' if plain else 'its name is not UTF-8, or has control characters'
        extra.append({'path': path, 'what': place.get('what') or '', 'type': what, 'note': note,
                      'when': changed_at(node.path(path)) if plain else 0})
    return extra, len(seen), problems


def is_accepted(path, patterns):
    # type: (str, Sequence[str]) -> bool
    """Say whether a site accepts a path, whatever becomes of it. Pure."""
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def _files(place, node):
    # type: (dict[str, Any], Node) -> dict[str, Any]
    """Return {files: [(path as text, type, whether the text is exact)], problems: [text]} of one watched path."""
    pattern, names = place.get('path') or '', place.get('names') or []
    deep = pattern.endswith(BELOW)
    folders = glob.glob(node.path(pattern[:-len(BELOW)] if deep else pattern))
    files, problems, below = [], [], len(node.path('/')) - 1
    todo = sorted(folders)
    while todo:
        folder = todo.pop()
        try:
            content = sorted(os.listdir(folder))
        except EnvironmentError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                problems.append('%s: %s' % (shown_name(folder[below:]), os.strerror(error.errno or 0)))
            continue
        for name in content:
            path = os.path.join(folder, name)
            try:
                what = kind(os.lstat(path).st_mode)
            except EnvironmentError:
                continue
            if what == 'directory':
                todo.extend([path] if deep else [])
            elif not names or any(fnmatch.fnmatchcase(shown_name(name), wanted) for wanted in names):
                shown = shown_name(path[below:])
                files.append((shown, what, as_bytes(shown) == path[below:]))
        if len(files) > MOST_FILES:
            problems.append('%s: more than %d files; not all were looked at' % (pattern, MOST_FILES))
            break
    return {'files': files, 'problems': problems}
