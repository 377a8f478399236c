# -*- coding: utf-8 -*-
"""/etc and /boot of a node: what an audit finds there beside what roles manage, and what a run keeps of them.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .databases import read_databases
from .kept import Managed, Run, Seen, differences, keep, may_be_gone
from .merge import changed_windows, node_windows, united
from .packages import owned, owners
from .secrets import id_of
from .tree import walk
from .watch import is_accepted
from ..expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Any, Collection, Sequence  # noqa: F401  in comments
    from .node import Node  # noqa: F401

__metaclass__ = type

MOST = 200
MOST_ENTRIES = 40  # of a user database that differ
MOST_LINE = 300  # characters
NOT_KEPT = 'what /etc and /boot hold is not in the record yet: the next rollout keeps it'


def look_at(record, node, key, told, accepted=(), deep=False):
    # type: (dict[str, Any] | None, Node, bytes, Collection[str], Sequence[str], bool) -> dict[str, Any]
    """Return {findings, more, problems, files} of a record; without one there is nothing to compare with.

    told      paths that are findings already
    accepted  patterns of paths that are not findings: left out before the list is cut, which they would fill
    deep      read every file, whatever its stamps say
    """
    out = {'findings': [], 'more': 0, 'problems': [], 'files': 0}  # type: dict[str, Any]
    if record is None:
        return out
    kept = record.get('tree')
    if not kept:
        return dict(out, problems=[NOT_KEPT])
    same_key = bool(key) and kept['key_id'] == id_of(key)
    tree = walk(node, key, kept['paths'] if same_key else {}, deep)
    out['problems'] += tree.problems
    try:
        databases = read_databases(node, key)
    except Unreadable as error:
        out['problems'].append('entries of the user databases: %s' % error.reason)
        databases = {}
    findings, unread = differences(kept, Seen(tree, databases, same_key), Managed(record['entries']), told)
    findings = [finding for finding in findings if not is_accepted(finding['path'], accepted)]
    if unread:
        out['problems'].append('whether the content of %d files below /etc and /boot is as it was is not known: '
                               'the key of their hashes is %s; the first is %s' % (
                                   len(unread), 'another' if key else 'lost', unread[0]))
    findings, out['more'] = findings[:MOST], max(0, len(findings) - MOST)
    try:
        packages = owners([node.path(finding['path']) for finding in findings], node)
    except Unreadable as error:
        packages = {}
        if findings:
            out['problems'].append('whose files below /etc and /boot are is not known: %s' % error.reason)
    for finding in findings:
        finding['package'] = packages.get(node.path(finding['path']), '')
        finding['should'], finding['is'] = _cut(finding['should']), _cut(finding['is'])
    return dict(out, findings=findings, files=len(tree.paths))


def _cut(value):
    # type: (Any) -> Any
    if not isinstance(value, list):
        return value
    lines = [line if len(line) <= MOST_LINE else line[:MOST_LINE] + '...' for line in value[:MOST_ENTRIES]]
    return lines + ['... %d more' % (len(value) - MOST_ENTRIES)] * (len(value) > MOST_ENTRIES)


def keep_for(old, request, node, key, now, dropped=()):
    # type: (Any, dict[str, Any], Node, bytes, float, Sequence[dict[str, Any]]) -> tuple[Any, list[str]]
    """Return (what the record keeps of /etc and /boot after a run, [problems]).

    It begins with the first run that rolls out a role. What only lets a node in, playbooks/bootstrap.yml, comes before
    the clock is set: of what the rollout after it changes, nobody could tell that it was in its time.

    old      what it kept so far, or None: then all is taken as it is, the installation brought it
    request  the arguments of hal_record
    dropped  entries of the record that lost their tasks, and are gone: their roles took them away
    """
    if not old and not request.get('roles'):
        return None, []
    same_key = bool(old) and old['key_id'] == id_of(key)
    tree = walk(node, key, old['paths'] if same_key else {})
    problems = list(tree.problems)
    try:
        databases = read_databases(node, key)
    except Unreadable as error:
        problems.append('entries of the user databases: %s' % error.reason)
        databases = {}
    if not old:
        if not tree.whole:
            return None, problems + ['what /etc and /boot hold is not kept: not all of it could be read']
        return {'key_id': id_of(key), 'paths': tree.paths, 'databases': databases}, problems
    seen = Seen(tree, databases, same_key)
    entries = list(united(request.get('entries') or []).values()) + list(dropped)
    run = Run(entries, changed_windows(request, now), node_windows(request, now))
    try:
        gone = {node.path(path): path for path in may_be_gone(old, seen, run)}
        still = {gone[path] for path in owned(list(gone), node)}
    except Unreadable as error:
        still = set(gone.values())
        problems.append('whether %d files below /etc and /boot went with a package is not known: %s' % (
            len(gone), error.reason))
    return dict(keep(old, seen, run, still), key_id=id_of(key)), problems
