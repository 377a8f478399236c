# -*- coding: utf-8 -*-
"""Merge what a run did into the record of what all runs did. Pure.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kinds import file as files
from .kinds.kind import ASIDE, kind_of
from .kinds.registry import kind_for
from .node import iso
from .secrets import TEXTS, conceal, conceal_texts, id_of, is_keyed
from ..expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Any, Collection  # noqa: F401  in comments
    from .kinds.kind import Attributes  # noqa: F401

__metaclass__ = type

GONE = 'its task is gone'
RELEASED = 'its task no longer manages it'
CONTENT = ('sha256', 'keyed', 'size', 'target', 'type', 'state', 'version', 'lines', 'lines_keyed', 'block')
OWN = ('resource', 'declared', 'role', 'task', 'source', 'secret', 'units', 'inputs_hash', 'commit', 'converged_at')
TOLERANCE_SECONDS = 5
LATE_SECONDS = 600  # after which a busy machine has begun what it was told


def task_id(entry):
    # type: (dict[str, Any]) -> str
    """Return "<role>|<source file>|<task name>". The callback sends it as the task."""
    task = entry.get('task', '')  # type: str
    if task.count('|') >= 2:
        return task
    return '%s|%s|%s' % (entry.get('role', ''), entry.get('source', '').rpartition(':')[0], task)


def united(entries):
    # type: (list[dict[str, Any]]) -> dict[str, dict[str, Any]]
    """Return {resource: entry} of a run: the last owner wins, what several declare adds up."""
    out = {}  # type: dict[str, Any]
    for entry in entries:
        old, entry = out.get(entry['resource']), dict(entry)
        entry['declared'] = dict(entry.get('declared') or {})
        entry['units'] = sorted(set(entry.get('units') or []))
        entry['secret'] = bool(entry.get('secret'))
        entry['changed'] = entry.get('changed', True)
        if old:
            state = old['declared'].get('state')
            for owner, other in ((entry, old), (old, entry)):  # somebody writes it: its content counts
                if owner['declared'].get('content') is False and other['declared'].get('content') is not False:
                    del owner['declared']['content']
            if entry['declared'].get('state', state) == state or state is None:
                entry['declared'] = dict(old['declared'], **entry['declared'])
            entry['units'] = sorted(set(entry['units']) | set(old['units']))
            entry['secret'] = entry['secret'] or old['secret']
            entry['changed'] = entry['changed'] or old['changed']
        out[entry['resource']] = entry
    return out


def merge(old, request, now):
    # type: (list[dict[str, Any]], dict[str, Any], float) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]
    """Return (entries of the run, entries that stay) after a run.

    old is the entries of the record, request the arguments of hal_record, now the node's clock. Entries of the run are
    not observed yet, and have `changed`. Whatever the run says nothing about stays as it is; what lost its task is
    marked as orphaned.
    """
    run = united(request.get('entries') or [])
    roles, reached = request.get('roles') or {}, set(request.get('reached') or [])
    reached -= set(request.get('skipped') or [])
    commit = (request.get('run') or {}).get('commit') or ''
    stay = {}
    for entry in old:
        if entry['resource'] in run:
            continue
        entry, identity = dict(entry), task_id(entry)
        tasks = (roles.get(entry.get('role')) or {}).get('tasks')
        reason = ''
        if tasks is not None and identity not in tasks:
            reason = GONE
        elif identity in reached:
            reason = RELEASED
        if reason and not entry.get('orphaned'):
            entry['orphaned'] = {'at': iso(now), 'commit': commit, 'reason': reason}
        stay[entry['resource']] = entry
    fresh = {}
    for resource, entry in run.items():
        entry = {name: entry[name] for name in OWN + ('changed',) if name in entry}
        entry.setdefault('commit', commit)
        entry.setdefault('converged_at', iso(now))
        fresh[resource] = entry
    return fresh, stay


def merged_roles(old, request, now):
    # type: (dict[str, Any], dict[str, Any], float) -> dict[str, Any]
    """Return the roles of the record after a run.

    One that did not complete keeps its older inputs, or has none yet, which equal no others; those that it began with
    are noted beside them.
    """
    roles = dict(old)
    for name, role in (request.get('roles') or {}).items():
        new = {'inputs_hash': role.get('inputs_hash') or '', 'tasks': sorted(role.get('tasks') or []),
               'commit': (request.get('run') or {}).get('commit') or '', 'converged_at': iso(now)}
        if role.get('complete') is False:
            begun = new['inputs_hash']
            new = dict(roles.get(name) or dict(new, inputs_hash=''), tasks=new['tasks'])
            if begun != new['inputs_hash']:
                new['begun'] = begun
        roles[name] = new
    return roles


def observed_entry(entry, seen, old, key, now, managed=()):
    # type: (Attributes, Attributes | Unreadable, Attributes | None, bytes, float, Collection[str]) -> Attributes
    """Return an entry of the run with what was observed of it.

    old      what the record has of it so far, or None
    managed  every resource that is recorded, was, or is of the run
    """
    entry = dict(entry)
    entry.pop('unreadable', None)
    changed = entry.pop('changed', True)
    old = old if old and not old.get('orphaned') else {}
    before = old.get('observed') or {}
    if isinstance(seen, Unreadable):
        entry['unreadable'] = seen.reason
        same_key = old.get('key_id', id_of(key)) == id_of(key)
        entry['observed'] = {name: value for name, value in before.items()
                             if name not in TEXTS and (same_key or not is_keyed(name, value))}
        entry['observed_since'] = old['observed_since'] if before and 'observed_since' in old else int(now)
        entry['declared'] = conceal(key, conceal_texts(key, entry['declared'], not entry.get('secret')), True)
        return _with_key_id(entry, key)
    private = seen.get('public') is False
    protected = bool(entry.get('secret')) or (kind_of(entry['resource']) == 'file' and 'keyed' in seen)
    entry['declared'] = conceal(key, entry['declared'], protected)
    seen_attributes = {name: value for name, value in seen.items() if name not in ASIDE}
    if entry.get('secret') or private:
        entry['declared'] = conceal_texts(key, entry['declared'], not entry.get('secret'))
        seen_attributes = conceal_texts(key, seen_attributes)
    if before:
        if old.get('key_id', id_of(key)) != id_of(key):  # hashes of another key tell nothing
            before = {name: value for name, value in before.items() if not is_keyed(name, value)}
        seen_attributes = _kept(entry, seen_attributes, before, changed, managed, seen.get('plain'))
    entry['observed'] = seen_attributes
    if seen.get('unhashed'):
        entry['unhashed'] = seen['unhashed']
    same = before and all(before.get(name) == seen_attributes.get(name) for name in CONTENT)
    entry['observed_since'] = old['observed_since'] if same and 'observed_since' in old else _since(seen, now)
    return _with_key_id(entry, key)


def _with_key_id(entry, key):
    # type: (dict[str, Any], bytes) -> dict[str, Any]
    if any(is_keyed(name, value) for part in ('declared', 'observed') for name, value in entry[part].items()):
        entry['key_id'] = id_of(key)
    return entry


def _kept(entry, seen, before, changed, managed, plain):
    # type: (dict[str, Any], dict[str, Any], dict[str, Any], bool, Collection[str], str | None) -> dict[str, Any]
    """Return what to record: what is seen, but what was before of all that this run did not put right.

    Else a run that succeeds would take over what somebody changed by hand, and no audit would tell any more.
    """
    kind, declared = kind_for(entry['resource']), entry['declared']
    if kind.as_seen:
        return seen
    if (seen.get('state') == 'absent') != (before.get('state') == 'absent'):
        return seen if changed or 'state' in declared or not kind.state_is_presence else before
    if seen.get('type') != before.get('type'):
        return seen if changed or 'type' in declared else before
    names = set(kind.in_passing) if changed else (set(seen) | set(before)) - set(files.CONTENT)
    out = dict(seen)
    for name in names - set(declared) - set(TEXTS) - {'state', 'file'}:
        if name in before:
            out[name] = kind.older(name, before[name], seen.get(name), changed, managed)
        elif kind.lacked(name):
            out.pop(name, None)
    return kind.merged(out, seen, before, declared, changed, plain)


def _since(seen, now):
    # type: (dict[str, Any], float) -> int
    """Return since when content is there: its own time, if that is not in the future."""
    since = seen.get('since') or now
    return int(min(since, now)) if since > 0 else int(now)


def is_gone(seen):
    # type: (dict[str, Any] | Unreadable) -> bool
    """Say whether an orphan has nothing left on the node that somebody would have to clean up."""
    return not isinstance(seen, Unreadable) and (seen.get('state') == 'absent' or seen.get('loaded') is False)


def node_windows(request, now):
    # type: (dict[str, Any], float) -> list[tuple[float, float]]
    """Return [(begin, end)] of package tasks by the node's clock. Raises ValueError."""
    return _by_node(request, request.get('windows') or [], now)


def changed_windows(request, now):
    # type: (dict[str, Any], float) -> list[tuple[float, float]]
    """Return [(begin, end)] by the node's clock in which tasks changed something. Raises ValueError."""
    windows = (request.get('run') or {}).get('changes') or []
    return _by_node(request, list(windows) + list(request.get('windows') or []), now)


def _by_node(request, windows, now):
    # type: (dict[str, Any], list[Any], float) -> list[tuple[float, float]]
    """Return windows by the node's clock. It may be ahead, or this may have begun late: nobody can tell those apart."""
    run = request.get('run') or {}
    ahead = now - float(run['now']) if run.get('now') else 0.0
    late = min(max(ahead, 0.0), LATE_SECONDS)
    return [(float(begin) + ahead - late - TOLERANCE_SECONDS, float(end) + ahead + TOLERANCE_SECONDS)
            for begin, end in windows]
