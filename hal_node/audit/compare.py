# -*- coding: utf-8 -*-
"""Compare an entry of the record with what is there now. Pure.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kinds.file import CONTENT
from .kinds.registry import kind_for
from .kinds.service import started_at
from .node import iso
from .secrets import TEXTS, is_keyed
from ..expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

__metaclass__ = type

OWNER = ('role', 'task', 'source', 'commit', 'converged_at', 'units')
SECRET = '(secret)'
OPEN = ('state', 'type', 'mode', 'owner', 'group', 'target', 'enabled', 'masked', 'immutable', 'acl')
EFFECTIVE_SECONDS = 1


class Now:
    """What comparing needs of the node beside the resource itself."""

    def __init__(self, epoch, units, effective, key_id=None):
        # type: (float, dict[str, dict[str, str] | Unreadable], dict[str, float], str | None) -> None
        self.epoch = epoch
        self.units = units
        self.effective = effective
        self.key_id = key_id


def compare(entry, seen, now):
    # type: (dict[str, Any], dict[str, Any] | Unreadable, Now) -> list[dict[str, Any]]
    """Return the differences of one entry: [{resource, kind, attribute, should, is, note, + its owner}]."""
    recorded, declared = entry.get('observed') or {}, entry.get('declared') or {}
    kind = kind_for(entry['resource'])
    if isinstance(seen, Unreadable):
        reason = seen.reason if entry.get('secret') or not seen.detail else '%s: %s' % (seen.reason, seen.detail)
        return [_difference(entry, 'unreadable', '', None, None, reason)]
    if entry.get('orphaned'):
        if seen.get('state') == 'absent' or seen.get('loaded') is False:
            return []
        orphaned = entry['orphaned']
        note = '%s (since %s%s)' % (orphaned.get('reason', ''), orphaned.get('at', ''),
                                    ', commit %s' % orphaned['commit'] if orphaned.get('commit') else '')
        return [_difference(entry, 'orphaned', '', None, None, note)]
    out = []
    if entry.get('unreadable'):
        out.append(_difference(entry, 'unreadable', '', None, None, 'it could not be read when it was recorded: %s'
                               % entry['unreadable']))
    other_key = _other_key(entry, now)
    if other_key:
        recorded, declared, seen = (_without_keyed(values) for values in (recorded, declared, seen))
    if other_key and kind.name == 'line':
        out.append(_difference(entry, 'unreadable', 'state', None, None, other_key))
    else:
        differences = kind.compare(recorded, declared, seen, now.epoch)
        if seen.get('public') is False:
            differences = [difference[:2] + (SECRET, SECRET) + difference[4:] if difference[1] in TEXTS else difference
                           for difference in differences]
        out.extend(_difference(entry, *difference) for difference in differences)
        if other_key and not any(finding['kind'] in ('missing', 'present', 'type') or finding['attribute'] in CONTENT
                                 for finding in out):
            out.append(_difference(entry, 'unreadable', 'keyed', None, None, other_key))
    if not any(finding['kind'] in ('changed', 'missing', 'present', 'version', 'type', 'target', 'unreadable')
               for finding in out):
        out.extend(_not_effective(entry, now))
    return out


def _other_key(entry, now):
    # type: (dict[str, Any], Now) -> str
    """Return why keyed hashes of an entry tell nothing; '' if they do, or it has none."""
    if now.key_id is None or not entry.get('key_id') or entry['key_id'] == now.key_id:
        return ''
    return 'its hash was made with another key' if now.key_id else 'the key of its hash is lost'


def _without_keyed(attributes):
    # type: (dict[str, Any]) -> dict[str, Any]
    return {name: value for name, value in attributes.items() if not is_keyed(name, value)}


def _difference(entry, kind, attribute, should, seen, note=''):
    # type: (dict[str, Any], str, str, Any, Any, str) -> dict[str, Any]
    if entry.get('secret') and attribute not in OPEN or is_keyed(attribute, should):
        should, seen = (None if value is None else SECRET for value in (should, seen))
    out = {name: entry.get(name, [] if name == 'units' else '') for name in OWNER}
    out.update({'resource': entry['resource'], 'kind': kind, 'attribute': attribute, 'should': should, 'is': seen,
                'note': note})
    return out


def _not_effective(entry, now):
    # type: (dict[str, Any], Now) -> list[dict[str, Any]]
    since, out = entry.get('observed_since'), []  # type: tuple[Any, list[dict[str, Any]]]
    if since is None or not entry.get('observed'):
        return out
    for unit in entry.get('units') or []:
        started = started_at(now.units.get(unit), now.epoch)
        if started is None:
            continue
        fresh = max(started, now.effective.get(unit, 0))
        if since > fresh + EFFECTIVE_SECONDS:
            out.append(_difference(entry, 'not-effective', 'units', 'as of %s' % iso(since), 'as of %s' % iso(fresh),
                                   '%s runs with what was there before' % unit))
    return out
