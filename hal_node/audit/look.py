# -*- coding: utf-8 -*-
"""Look at a node: everything that an audit asks, in one pass.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import base64
import difflib
import hashlib
import os
import resource
import stat
import time

from . import record as records
from .checks import make_checks
from .compare import Now, compare
from .files import MOST_KEPT
from .kinds.kind import kind_of, name_of
from .node import Node, as_bytes, everybody_reads, shown_name, small_file
from .observe import Survey
from .packages import unexplained
from .secrets import id_of, read_key
from .unmanaged import look_at
from .verify import verify
from .watch import look_for_extra, recorded_paths
from ..expect.evaluate import evaluate
from ..expect.process import read_guarded
from ..expect.values import Unreadable, present, to_text

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

__metaclass__ = type

MOST_DIFFERENCES = 1000
MOST_ITEMS = 200
MOST_DIFFS = 100
MOST_DIFF_LINES = 40
MOST_LINE = 300  # characters


def look(request, node=None):
    # type: (dict[str, Any], Node | None) -> dict[str, Any]
    """Return what hal_audit returns. Never raises for what is on the node."""
    request, node, began = to_text(request), node or Node(), time.time()
    cpu = _cpu()
    record, said = records.choose(request['node'], request.get('record'), node)
    survey = Survey(node, read_key(node))
    entries = _entries(record, request.get('roles') or [])
    units = {unit for entry in entries for unit in entry.get('units') or []}
    seen = survey.observe(entries, more_units=units)
    now = Now(node.now(), survey.units, record['effective'] if record else {}, id_of(survey.key))
    differences = [difference for entry in entries for difference in compare(entry, seen[entry['resource']], now)]
    _add_diffs(differences, entries, node)
    every = record['entries'] if record else []
    planned = compare_planned(request.get('planned') or [], request.get('planned_key') or '', node)
    known = recorded_paths(every + (request.get('planned') or []))
    extra, watched, problems = look_for_extra(request.get('watched') or [], known, node)
    strange, unknown = _packages(record, survey, every)
    told, deep, accepted = {file['path'] for file in extra}, request.get('deep') is True, request.get('accepted') or []
    held = look_at(record if request.get('tree') else None, node, survey.key, told, accepted, deep)
    verified = verify(record, node, accepted) if deep else {}
    checks = make_checks(request.get('checks') or [], survey, record, strange, unknown)
    answers = evaluate(request.get('questions') or [])
    problems = survey.problems + _unseen_units(units, survey) + problems
    problems += held['problems'] + verified.get('problems', []) + planned['problems']
    return {
        'record': said,
        'differences': [_cut(difference) for difference in differences[:MOST_DIFFERENCES]],
        'extra': extra[:MOST_ITEMS],
        'packages': {'extra': strange[:MOST_ITEMS], 'unknown': unknown},
        'planned': planned['differences'][:MOST_DIFFERENCES],
        'unmanaged': held['findings'], 'package_files': verified.get('files', []),
        'software': _software(entries, seen),
        'checks': checks, 'answers': answers, 'problems': problems[:MOST_ITEMS],
        'more': {'differences': max(0, len(differences) - MOST_DIFFERENCES),
                 'planned': max(0, len(planned['differences']) - MOST_DIFFERENCES),
                 'extra': max(0, len(extra) - MOST_ITEMS), 'packages': max(0, len(strange) - MOST_ITEMS),
                 'unmanaged': held['more'], 'package_files': verified.get('more', 0)},
        'counts': {'resources': len(entries), 'questions': len(answers), 'watched_files': watched,
                   'unmanaged_files': held['files']},
        'seconds': round(time.time() - began, 3), 'cpu_seconds': round(_cpu() - cpu, 3),
        'memory_mb': round(max(resource.getrusage(who).ru_maxrss for who in (
            resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024.0, 1),
    }


def compare_planned(entries, key, node):
    # type: (list[dict[str, Any]], str, Node) -> dict[str, list[Any]]
    """Return {differences, problems} of what roles would manage: entries without anything that was observed.

    key  base64 of the key of their keyed hashes, made for this call: nothing of the node's state is used
    """
    survey = Survey(node, base64.b64decode(key))
    seen = survey.observe(entries)
    now = Now(node.now(), survey.units, {})
    differences = [_cut(difference) for entry in entries for difference in compare(entry, seen[entry['resource']], now)]
    _add_diffs(differences, entries, node)
    return {'differences': differences, 'problems': survey.problems}


def _cpu():
    # type: () -> float
    return sum(usage.ru_utime + usage.ru_stime for usage in (
        resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


def _entries(record, roles):
    # type: (dict[str, Any] | None, list[str]) -> list[dict[str, Any]]
    """Return the entries to compare, the first of each resource."""
    out, known = [], set()
    for entry in record['entries'] if record else []:
        if entry['resource'] not in known and (not roles or entry.get('role') in roles):
            known.add(entry['resource'])
            out.append(entry)
    return out


def _unseen_units(units, survey):
    # type: (set[str], Survey) -> list[str]
    unseen = {state.reason for state in survey.units.values() if isinstance(state, Unreadable)}
    if not units or not unseen:
        return []
    return ['whether units run with their files is not known: %s' % '; '.join(sorted(unseen)[:3])]


def _packages(record, survey, entries):
    # type: (dict[str, Any] | None, Survey, list[dict[str, Any]]) -> tuple[list[str], str]
    """Return (["name-evr.arch"] that nobody explains, the reason why that is not known or '')."""
    if not record:
        return [], 'there is no record to compare with'
    explained = record['packages'].get('explained')
    if explained is None:
        return [], 'packages were not recorded'
    named = {name_of(entry['resource']) for entry in entries if kind_of(entry['resource']) == 'package'}
    try:
        return unexplained(explained, survey.installed.get(), named), ''
    except Unreadable as error:
        return [], error.reason


def _software(entries, seen):
    # type: (list[dict[str, Any]], dict[str, dict[str, Any] | Unreadable]) -> dict[str, str]
    software = {}
    for entry in entries:
        answer = seen[entry['resource']]
        if kind_of(entry['resource']) == 'package' and isinstance(answer, dict) and answer.get('version'):
            software[name_of(entry['resource'])] = ' '.join(answer['version'])
    return software


def _add_diffs(differences, entries, node):
    # type: (list[dict[str, Any]], list[dict[str, Any]], Node) -> None
    """Add `diff` to changes of small readable texts whose recorded content is stored, or came with the question."""
    asked = {entry['resource']: {'path': name_of(entry['resource']), 'text': entry.get('text'),
                                 'sha256': (entry.get('observed') or {}).get('sha256')}
             for entry in entries if entry['resource'].startswith('file:') and not entry.get('secret')}
    asked = {name: question for name, question in asked.items() if question['sha256'] or question['text'] is not None}
    wanted = [change for change in differences if change['kind'] == 'changed' and change['resource'] in asked
              and change['attribute'] in ('sha256', 'size', 'sha1', 'keyed')][:MOST_DIFFS]
    requests = [asked[change['resource']] for change in wanted]
    for change, answer in zip(wanted, read_guarded(lambda ask: present(_diff(ask, node)), requests, most_hangs=3)):
        if not isinstance(answer, Unreadable) and answer.value:
            change['diff'] = answer.value


def _diff(ask, node):
    # type: (dict[str, Any], Node) -> list[str]
    """Return the lines of a diff from the content that should be to what is; [] if either may not be shown."""
    path = node.path(ask['path'])
    if stat.S_ISLNK(os.lstat(path).st_mode) or not everybody_reads(ask['path'], node):
        return []
    before, after = _wanted_content(ask, node), small_file(path, MOST_KEPT)
    if before is None or after is None or b'\0' in after:
        return []
    try:
        should, are = before.decode('utf-8'), after.decode('utf-8')
    except UnicodeDecodeError:
        return []
    lines = list(difflib.unified_diff(should.splitlines(), are.splitlines(), 'recorded', 'now', n=1, lineterm=''))
    lines = [shown_name(line) for line in lines] or ['only the ends of lines differ']
    lines = [line if len(line) <= MOST_LINE else line[:MOST_LINE] + '...' for line in lines]
    if len(lines) > MOST_DIFF_LINES:
        lines = lines[:MOST_DIFF_LINES - 1] + ['... %d more lines' % (len(lines) - MOST_DIFF_LINES + 1)]
    return lines


def _wanted_content(ask, node):
    # type: (dict[str, Any], Node) -> bytes | None
    """Return the bytes that a file should have: as they were sent, or as they were stored; None if that is lost."""
    if ask['text'] is not None:
        return as_bytes(ask['text'])
    stored = small_file(node.state('content/' + ask['sha256']), MOST_KEPT)
    return stored if stored is not None and hashlib.sha256(stored).hexdigest() == ask['sha256'] else None


def _cut(difference):
    # type: (dict[str, Any]) -> dict[str, Any]
    for name in ('should', 'is'):
        value = difference[name]
        if isinstance(value, list) and len(value) > MOST_ITEMS:
            difference[name] = value[:MOST_ITEMS] + ['... %d more' % (len(value) - MOST_ITEMS)]
    return difference
