# -*- coding: utf-8 -*-
"""Merge what a run did into the record of what all runs did. Pure.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from ansible.module_utils.hal_audit_node import iso
from ansible.module_utils.hal_audit_observe import ASIDE, kind_of
from ansible.module_utils.hal_audit_secrets import conceal, conceal_texts
from ansible.module_utils.hal_expect_values import Unreadable

__metaclass__ = type

GONE = 'its task is gone'
RELEASED = 'its task no longer manages it'
CONTENT = ('sha256', 'keyed', 'size', 'target', 'type', 'state', 'version', 'lines', 'lines_keyed', 'block')
OWN = ('resource', 'declared', 'role', 'task', 'source', 'secret', 'units', 'inputs_hash', 'commit', 'converged_at')
TOLERANCE_SECONDS = 5


def task_id(entry):
    """Return "<role>|<source file>|<task name>". The callback sends it as the task."""
    task = entry.get('task', '')
    if task.count('|') >= 2:
        return task
    return '%s|%s|%s' % (entry.get('role', ''), entry.get('source', '').rpartition(':')[0], task)


def united(entries):
    """Return {resource: entry} of a run: the last owner wins, what several declare adds up."""
    out = {}
    for entry in entries:
        old, entry = out.get(entry['resource']), dict(entry)
        entry['declared'] = dict(entry.get('declared') or {})
        entry['units'] = sorted(set(entry.get('units') or []))
        entry['secret'] = bool(entry.get('secret'))
        if old:
            state = old['declared'].get('state')
            for one, other in ((entry, old), (old, entry)):  # somebody writes it: its content counts
                if one['declared'].get('content') is False and other['declared'].get('content') is not False:
                    del one['declared']['content']
            if entry['declared'].get('state', state) == state or state is None:
                entry['declared'] = dict(old['declared'], **entry['declared'])
            entry['units'] = sorted(set(entry['units']) | set(old['units']))
            entry['secret'] = entry['secret'] or old['secret']
        out[entry['resource']] = entry
    return out


def merge(old, request, now):
    """Return (entries of the run, entries that stay) after a run.

    old is the entries of the record, request the arguments of hal_record, now the node's clock. Entries of the run are
    not observed yet. Whatever the run says nothing about stays as it is; what lost its task is marked as orphaned.
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
        entry = {name: entry[name] for name in OWN if name in entry}
        entry.setdefault('commit', commit)
        entry.setdefault('converged_at', iso(now))
        fresh[resource] = entry
    return fresh, stay


def merged_roles(old, request, now):
    """Return the roles of the record after a run.

    One that did not complete keeps its older inputs, if it had any; those that it began with are noted beside them.
    """
    roles = dict(old)
    for name, role in (request.get('roles') or {}).items():
        new = {'inputs_hash': role.get('inputs_hash') or '', 'tasks': sorted(role.get('tasks') or []),
               'commit': (request.get('run') or {}).get('commit') or '', 'converged_at': iso(now)}
        if role.get('complete') is False and name in roles:
            begun = new['inputs_hash']
            new = dict(roles[name], tasks=new['tasks'])
            if begun != new['inputs_hash']:
                new['begun'] = begun
        roles[name] = new
    return roles


def observed_entry(entry, seen, old, key, now):
    """Return an entry of the run with what was observed of it."""
    entry = dict(entry)
    entry.pop('unreadable', None)
    if isinstance(seen, Unreadable):
        entry['unreadable'] = seen.reason
        entry['observed'] = {}
        entry['observed_since'] = int(now)
        if entry.get('secret'):
            entry['declared'] = conceal_texts(key, entry['declared'])
        entry['declared'] = conceal(key, entry['declared'], True)
        return entry
    protected = bool(entry.get('secret')) or (kind_of(entry['resource']) == 'file' and 'keyed' in seen)
    entry['declared'] = conceal(key, entry['declared'], protected)
    seen_attributes = {name: value for name, value in seen.items() if name not in ASIDE}
    if entry.get('secret'):
        entry['declared'] = conceal_texts(key, entry['declared'])
        seen_attributes = conceal_texts(key, seen_attributes)
    entry['observed'] = seen_attributes
    if seen.get('unhashed'):
        entry['unhashed'] = seen['unhashed']
    before = (old or {}).get('observed') or {}
    same = before and all(before.get(name) == seen_attributes.get(name) for name in CONTENT)
    entry['observed_since'] = old['observed_since'] if same and 'observed_since' in old else _since(seen, now)
    return entry


def _since(seen, now):
    """Return since when content is there: its own time, if that is not in the future."""
    since = seen.get('since') or now
    return int(min(since, now)) if since > 0 else int(now)


def is_gone(entry, seen):
    """Say whether an orphan has nothing left on the node that somebody would have to clean up."""
    if isinstance(seen, Unreadable):
        return False
    if seen.get('state') == 'absent' or seen.get('loaded') is False:
        return True
    return entry.get('declared', {}).get('state') == 'absent' and seen.get('state') == 'absent'


def node_windows(request, now):
    """Return [(begin, end)] of package tasks by the node's clock. Raises ValueError."""
    run = request.get('run') or {}
    ahead = now - float(run['now']) if run.get('now') else 0.0
    return [(float(begin) + ahead - TOLERANCE_SECONDS, float(end) + ahead + TOLERANCE_SECONDS)
            for begin, end in request.get('windows') or []]
