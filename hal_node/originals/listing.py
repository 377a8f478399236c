# -*- coding: utf-8 -*-
"""What is kept, beside what is there now.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import json

from ..audit import record as records
from ..audit.kinds.kind import kind_of, name_of
from ..expect.values import Unreadable
from .paths import described, same
from .store import guarded, observed, read_index, things_of

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

__metaclass__ = type


def listed(node):
    # type: (Any) -> list[dict[str, Any]]
    """Return [{thing, kept_at, roles, was, now}] of what is kept; `now`: as it was, changed, or not known."""
    index = read_index(node)
    record = _own_record(node)
    roles = roles_of(index, record)
    seen = seen_now(index['entries'], node)
    return [{'thing': thing, 'kept_at': entry['kept_at'], 'roles': sorted(roles[thing]),
             'was': summary(thing, entry['was']), 'now': state_of(thing, entry, seen[thing])}
            for thing, entry in sorted(index['entries'].items())]


def _own_record(node):
    # type: (Any) -> Any
    """Return the record of this node without asking whose it is; None where it cannot be read."""
    try:
        return json.loads(records.read_content(node).decode('utf-8'))
    except (records.RecordError, ValueError):
        return None


def roles_of(index, record):
    # type: (dict[str, Any], dict[str, Any] | None) -> dict[str, set[str]]
    """Return {thing: the roles that have it}: those that it was kept for, and those that the record has. Pure."""
    out = {thing: set(entry['roles']) for thing, entry in index['entries'].items()}
    for entry in (record or {}).get('entries') or []:
        for thing in things_of(entry['resource'], entry.get('declared') or {}):
            if thing in out and not entry.get('orphaned'):
                out[thing].add(entry['role'])
    return out


def seen_now(entries, node):
    # type: (dict[str, Any], Any) -> dict[str, Any]
    """Return {thing: what is there now, or Unreadable}."""
    paths = [thing for thing in sorted(entries) if kind_of(thing) == 'file']
    out = guarded(lambda thing: described(
        node.path(name_of(thing)), None if entries[thing]['content'] else False), paths)
    out.update(observed([thing for thing in entries if kind_of(thing) != 'file'], {}, node))
    return out


def state_of(thing, entry, now):
    # type: (str, dict[str, Any], Any) -> str
    """Return "as it was", "changed" or "not known". Pure."""
    if isinstance(now, Unreadable):
        return 'not known'
    return 'as it was' if is_same(thing, entry, now) else 'changed'


def is_same(thing, entry, now):
    # type: (str, dict[str, Any], dict[str, Any]) -> bool
    """Say whether a thing is what it was. Pure."""
    was = entry['was']
    if kind_of(thing) != 'file':
        return bool(was == now)
    return same(was, now)


def summary(thing, was):
    # type: (str, dict[str, Any]) -> str
    """Return in few words what was there; nothing of its content. Pure."""
    if was.get('state') == 'absent':
        return 'nothing'
    if kind_of(thing) == 'file':
        size = ', %d bytes' % was['size'] if was['type'] == 'file' else ''
        return '%s %s %s:%s%s' % (was['type'], was['mode'], was['owner'], was['group'], size)
    if kind_of(thing) == 'service':
        return ', '.join([was['state'], was.get('file_state') or 'cannot be enabled'])
    if kind_of(thing) == 'package':
        return ' '.join(was.get('version') or [])
    return ', '.join('%s %s' % (name, value) for name, value in sorted(was.items()) if name != 'state') or 'there'
