# -*- coding: utf-8 -*-
"""Seal a run into the node's record: read, merge, observe, write.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from . import record as records
from .kinds.kind import kind_of, name_of
from .merge import (
    is_gone, merge, merged_roles, node_windows, observed_entry)
from .node import Node, as_bytes, from_iso, iso
from .observe import Survey
from .packages import explain
from .unmanaged import keep_for
from ..expect.values import Unreadable, to_text

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

__metaclass__ = type

CLOCK_SECONDS = 300


class SealError(Exception):
    """The record was not written; the old one is as it was. The message is one line."""


def seal(request, node=None):
    # type: (dict[str, Any], Node | None) -> dict[str, Any]
    """Return {serial, digest, record, problems, observed}. Raises SealError."""
    request, node = to_text(request), node or Node()
    _check(request)
    try:
        records.prepare(node)
        with records.locked(node):
            return _seal(request, node)
    except records.WriteError as error:
        raise SealError('%s' % error)


def _check(request):
    # type: (dict[str, Any]) -> None
    run = request.get('run') or {}
    for name in ('started', 'now'):
        value = run.get(name)
        try:
            float(value if value is not None else 0)
        except (TypeError, ValueError):
            raise SealError('run.%s has to be seconds since the epoch, not "%s"' % (name, value))
    for number, entry in enumerate(request.get('entries') or []):
        wrong = records.entry_wrong(entry)
        if wrong:
            raise SealError('entry %d of the run: %s' % (number + 1, wrong))
    for name, windows in (('windows', request.get('windows')), ('run.changes', run.get('changes'))):
        for window in windows or []:
            try:
                _begin, _end = [float(moment) for moment in window]
            except (TypeError, ValueError):
                raise SealError('%s are pairs of begin and end, as seconds since the epoch' % name)
    for name, role in (request.get('roles') or {}).items():
        if not isinstance(role, dict) or not isinstance(role.get('tasks') or [], list):
            raise SealError('role %s of the run: it has to be a mapping with a list of tasks' % name)


def _seal(request, node):
    # type: (dict[str, Any], Node) -> dict[str, Any]
    now, problems = node.now(), []  # type: tuple[float, list[str]]
    old = _old_record(request, node, now, problems)
    key, lost = records.ensure_key(node)
    if lost and (old['serial'] or lost != 'gone'):
        problems.append('record.key was %s; a new one is made, secrets recorded before cannot be compared' % lost)
    fresh, stay = merge(old['entries'], request, now)
    before = {entry['resource']: entry for entry in old['entries']}
    orphans = [entry for entry in stay.values() if entry.get('orphaned')]
    survey = Survey(node, key)
    seen = survey.observe(list(fresh.values()) + orphans, keep=node.state('content'))
    problems.extend(survey.problems)
    dropped = [entry for entry in orphans if is_gone(seen[entry['resource']])]
    entries = {entry['resource']: entry for entry in stay.values() if entry not in dropped}
    texts = {}
    for resource, entry in fresh.items():
        answer = seen[resource]
        entries[resource] = observed_entry(entry, answer, before.get(resource), key, now, set(before) | set(fresh))
        if not old['serial'] and entries[resource]['observed_since'] < _started(request, now):
            entries[resource]['observed_since'] = 0  # whether a daemon was told before the first record, nobody knows
        if not isinstance(answer, Unreadable) and answer.get('content') is not None and 'sha256' in answer:
            texts[answer['sha256']] = as_bytes(answer['content'])
    record = {
        'format': records.FORMAT, 'node': request['node'], 'machine_id': node.machine_id(),
        'serial': int(old['serial']) + 1, 'sealed_at': iso(now), 'run': '%s' % (request['run'].get('id') or ''),
        'commit': '%s' % (request['run'].get('commit') or ''),
        'roles': merged_roles(old['roles'], request, now),
        'effective': dict(old['effective'], **{unit: int(now) for unit in request.get('handled') or []}),
        'packages': _packages(old, request, entries, survey, now, problems),
        'entries': [entries[resource] for resource in sorted(entries)],
    }
    tree, unseen = keep_for(old.get('tree'), request, node, key, now, dropped)
    problems.extend(unseen)
    if tree:
        record['tree'] = tree
    wanted = {entry['observed']['sha256'] for entry in record['entries']
              if not entry.get('secret') and (entry.get('observed') or {}).get('sha256')}
    content = records.to_bytes(record)
    records.write(node, content, texts, wanted)
    return {'serial': record['serial'], 'digest': records.digest(content), 'record': records.pack(content),
            'problems': problems, 'observed': len(seen)}


def _started(request, now):
    # type: (dict[str, Any], float) -> float
    """Return when the run began, by the node's clock."""
    run = request.get('run') or {}
    return float(run.get('started') or 0) + now - float(run.get('now') or now)


def _old_record(request, node, now, problems):
    # type: (dict[str, Any], Node, float, list[str]) -> dict[str, Any]
    """Return the record so far, from the controller's copy if need be, or an empty one.

    Raises SealError for one that a newer version wrote.
    """
    record, said = records.choose(request['node'], request.get('copy'), node)
    status, reason = said['status'], said['reason']
    if status == records.NEWER:
        raise SealError('the record of this node is newer than this version of the project: %s; nothing was written'
                        % reason)
    then = "the controller's copy is taken up" if record else 'a new one is begun'
    if status in (records.CORRUPT, records.FOREIGN):
        aside = records.put_aside(node, now)
        problems.append('the record was %s (%s): kept as %s, %s' % (status, reason, aside, then))
    elif status != 'ok' and record:
        problems.append('the record was %s (%s): %s' % ('gone' if status == records.NONE else status, reason, then))
    if record is None:
        return {'serial': 0, 'entries': [], 'roles': {}, 'effective': {}, 'packages': {}}
    sealed = from_iso(record['sealed_at'])
    if sealed is not None and sealed > now + CLOCK_SECONDS:
        problems.append('the clock went back: the record was sealed at %s, now it is %s' % (
            record['sealed_at'], iso(now)))
    return record


def _packages(old, request, entries, survey, now, problems):
    # type: (dict[str, Any], dict[str, Any], dict[str, dict[str, Any]], Survey, float, list[str]) -> dict[str, Any]
    packages = old['packages']  # type: dict[str, Any]
    try:
        installed = survey.installed.get()
    except Unreadable as error:
        problems.append('packages are not recorded: %s' % error.reason)
        return packages
    named = {name_of(resource) for resource, entry in entries.items()
             if kind_of(resource) == 'package' and not entry.get('orphaned')}
    return {'explained': explain(packages.get('explained'), installed, node_windows(request, now), named),
            'since': packages.get('since') or iso(now)}
