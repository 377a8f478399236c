# -*- coding: utf-8 -*-
"""Files of packages that are not as their packages brought them: rpm -Va, behind everything else that the node does.

The format of rpm's lines is that of rpm(8), VERIFY OPTIONS. Standard library only, Python 2.7 and 3.6 or later: this
file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from .node import changed_at
from .kinds.kind import kind_of, name_of
from .packages import owners
from .watch import is_accepted
from ..expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Any, Collection, Sequence  # noqa: F401  in comments
    from .node import Node  # noqa: F401

__metaclass__ = type

#: Not the time of files: a restored backup has another. Not what packages depend on, nor their own scripts: it reads.
ARGV = ['nice', '-n', '19', 'ionice', '-c', '3', 'rpm', '-Va', '--nomtime', '--nodeps', '--noscripts']
HANG_SECONDS = 6 * 3600  # on a busy disk the last of all waits for long
MOST = 200
MOST_SAID = 5
LINE = re.compile(r'(?P<flags>[.SM5DLUGTP?]{8,9}|missing)\s+(?:(?P<mark>[a-zA-Z]) )?(?P<path>/.*)\Z')
WORDS = (('S', 'content'), ('5', 'content'), ('L', 'target'), ('D', 'device'), ('M', 'mode'), ('U', 'owner'),
         ('G', 'group'), ('P', 'capabilities'))
CONTENT = ('missing', 'content', 'target')
GHOST, CONFIG = 'g', 'c'
#: Whose configuration files the record keeps, or keeps as gone: a role sets CentOS-Base.repo aside.
KEPT = ('/etc/', '/boot/')
#: Where programs give their files the owners and modes that they need: a package says how it begins.
AT_WORK = '/var/'
#: Empty after each boot, whatever a package brought there.
EMPTIED = ('/run/', '/var/run/', '/var/lock/')


def verify(record, node, accepted=()):
    # type: (dict[str, Any] | None, Node, Sequence[str]) -> dict[str, Any]
    """Return {files: [{path, differs, package, role, task, source, ...}], more, problems}. Never raises.

    accepted  patterns of paths that are left out before the list is cut
    """
    out = {'files': [], 'more': 0, 'problems': []}  # type: dict[str, Any]
    try:
        status, said, errors = node.run(ARGV, HANG_SECONDS)
        files, strange = parse(said)
        strange += [line for line in errors.splitlines() if line.strip()]
        if status != 0 and not files:
            raise Unreadable('rpm -Va ended with status %d: %s' % (status, ' '.join(errors.split())[:200]))
    except Unreadable as error:
        return dict(out, problems=['files of packages are not verified: %s' % error.reason])
    entries = record['entries'] if record else []
    kept = (record.get('tree') or {}).get('paths', {}) if record else {}
    files = [file for file in files if file['mark'] != GHOST]
    unknown = [file['path'] for file in files if file['differs'] == []]
    files = without_known([file for file in files if file['differs']], entries, kept)
    files = [file for file in files if not is_accepted(file['path'], accepted)]
    files, out['more'] = files[:MOST], max(0, len(files) - MOST)
    try:
        packages = owners([node.path(file['path']) for file in files], node)
    except Unreadable as error:
        packages = {}
        out['problems'].append('whose files these are is not known: %s' % error.reason)
    managed = {name_of(entry['resource']): entry for entry in entries if kind_of(entry['resource']) == 'package'}
    for file in files:
        package = packages.get(node.path(file['path']), '')
        entry = managed.get(package) or {}
        out['files'].append({
            'path': file['path'], 'differs': file['differs'], 'package': package,
            'when': changed_at(node.path(file['path'])), 'role': entry.get('role', ''),
            'task': entry.get('task', ''), 'source': entry.get('source', ''), 'commit': entry.get('commit', ''),
            'converged_at': entry.get('converged_at', '')})
    out['problems'] += ['rpm -Va could not look at %s' % path for path in unknown[:MOST_SAID]]
    out['problems'] += ['rpm -Va: %s' % ' '.join(line.split())[:200] for line in strange[:MOST_SAID]]
    return out


def parse(said):
    # type: (str) -> tuple[list[dict[str, Any]], list[str]]
    """Return ([{path, mark, differs}], [lines not of rpm's form]). Pure. Nothing in `differs`: it was not seen."""
    files, strange = [], []
    for line in said.splitlines():
        hit = LINE.match(line)
        if hit is None:
            strange += [line] if line.strip() else []
            continue
        if hit.group('flags') == 'missing':
            differs = ['missing']
        else:
            differs = []
            for letter, word in WORDS:
                if letter in hit.group('flags') and word not in differs:
                    differs.append(word)
            if not differs and '?' not in hit.group('flags'):
                continue  # a time
        files.append({'path': hit.group('path'), 'mark': hit.group('mark') or '', 'differs': differs})
    return files, strange


def without_known(files, entries, kept):
    # type: (list[dict[str, Any]], list[dict[str, Any]], Collection[str]) -> list[dict[str, Any]]
    """Return what nobody else compares. Pure.

    entries  of the record: a role's own file is as the role says
    kept     what the record keeps of /etc and /boot: owners, modes and configuration files are compared with that alone
    """
    managed = {name_of(entry['resource']).partition('#')[0] for entry in entries
               if kind_of(entry['resource']) in ('file', 'line', 'repository')}
    out = []
    for file in files:
        path, differs = file['path'], file['differs']
        if path in managed or path.startswith(EMPTIED) or file['mark'] == CONFIG and kept and path.startswith(KEPT):
            continue
        if path.startswith(AT_WORK) or path in kept:
            differs = [word for word in differs if word in CONTENT]
        if differs:
            out.append(dict(file, differs=differs))
    return out
