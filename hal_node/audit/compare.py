# -*- coding: utf-8 -*-
"""Compare an entry of the record with what is there now. Pure.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kinds.package import pinned
from .kinds.service import started_at
from .kinds.slurm import compared, is_over, same_field
from .node import iso
from .observe import ASIDE, kind_of
from .secrets import TEXTS, is_keyed
from ..expect.values import Unreadable, as_flag, is_text, same, to_text

__metaclass__ = type

OWNER = ('role', 'task', 'source', 'commit', 'converged_at', 'units')
SECRET = '(secret)'
OPEN = ('state', 'type', 'mode', 'owner', 'group', 'target', 'enabled', 'masked', 'immutable', 'acl')
#: Attributes with a kind of their own; any other is `changed`.
KINDS = {'mode': 'mode', 'owner': 'owner', 'group': 'owner', 'type': 'type', 'target': 'target', 'acl': 'acl',
         'immutable': 'immutable', 'version': 'version', 'enabled': 'enabled', 'masked': 'masked',
         'drop_ins': 'drop_ins', 'saved': 'saved', 'value': 'live', 'live': 'live', 'loaded': 'live',
         'options': 'options'}
CONTENT = ('sha256', 'keyed', 'size')
ONLY_DECLARED = {'service': ('state', 'enabled'), 'user': ('groups',), 'sysctl': ('value',)}
#: What an observation leaves out when the node has none: declared it is missing. Any key of a repository is so, too.
MAY_LACK = {'sysctl': ('value', 'saved'), 'mount': ('saved',), 'selinux': ('mode',)}
#: Words of fstab that are flags of the kernel, and the word that means their contrary.
FLAGS = {'ro': 'rw', 'nosuid': 'suid', 'nodev': 'dev', 'noexec': 'exec', 'noatime': 'atime', 'nodiratime': 'diratime'}
EFFECTIVE_SECONDS = 1


class Now:
    """What comparing needs of the node beside the resource itself."""

    def __init__(self, epoch, units, effective, key_id=None):
        self.epoch = epoch
        self.units = units
        self.effective = effective
        self.key_id = key_id


def compare(entry, seen, now):
    """Return the differences of one entry: [{resource, kind, attribute, should, is, note, + its owner}]."""
    recorded, declared = entry.get('observed') or {}, entry.get('declared') or {}
    kind = kind_of(entry['resource'])
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
        recorded, declared, seen = (_without_keyed(one) for one in (recorded, declared, seen))
    if other_key and kind == 'line':
        out.append(_difference(entry, 'unreadable', 'state', None, None, other_key))
    else:
        found = _of_kind(kind, entry, recorded, declared, seen, now)
        if seen.get('public') is False:
            found = [one[:2] + (SECRET, SECRET) + one[4:] if one[1] in TEXTS else one for one in found]
        out.extend(_difference(entry, *one) for one in found)
        if other_key and not any(one['kind'] in ('missing', 'present', 'type') or one['attribute'] in CONTENT
                                 for one in out):
            out.append(_difference(entry, 'unreadable', 'keyed', None, None, other_key))
    if not any(one['kind'] in ('changed', 'missing', 'present', 'version', 'type', 'target', 'unreadable')
               for one in out):
        out.extend(_not_effective(entry, now))
    return out


def _other_key(entry, now):
    """Return why keyed hashes of an entry tell nothing; '' if they do, or it has none."""
    if now.key_id is None or not entry.get('key_id') or entry['key_id'] == now.key_id:
        return ''
    return 'its hash was made with another key' if now.key_id else 'the key of its hash is lost'


def _without_keyed(attributes):
    return {name: value for name, value in attributes.items() if not is_keyed(name, value)}


def _difference(entry, kind, attribute, should, seen, note=''):
    if entry.get('secret') and attribute not in OPEN or is_keyed(attribute, should):
        should, seen = (None if one is None else SECRET for one in (should, seen))
    out = {name: entry.get(name, [] if name == 'units' else '') for name in OWNER}
    out.update({'resource': entry['resource'], 'kind': kind, 'attribute': attribute, 'should': should, 'is': seen,
                'note': note})
    return out


def _of_kind(kind, entry, recorded, declared, seen, now):
    if kind.startswith('slurm-'):
        return _slurm(kind, recorded, declared, seen, now)
    if kind == 'mount':
        return _mount(recorded, declared, seen)
    if kind == 'sysctl' and declared.get('state') == 'absent':
        return [('present', 'saved', None, seen['saved'], '')] if 'saved' in seen else []
    if kind == 'line':
        return _line(recorded, declared, seen)
    over, out = _state(kind, recorded, declared, seen)
    if over:
        return out
    if kind == 'file':
        return out + _file(entry, recorded, declared, seen)
    if kind == 'service':
        return out + _service(recorded, declared, seen)
    if kind == 'selinux':
        return out + _selinux(recorded, declared, seen)
    return out + _attributes(kind, recorded, declared, seen)


def _state(kind, recorded, declared, seen):
    """Return (whether there is nothing more to compare, [difference])."""
    wanted, then, state = declared.get('state'), recorded.get('state'), seen.get('state')
    if kind == 'service':  # its state is another thing, but it may be gone
        wanted, then = 'present', 'absent' if then == 'absent' else 'present'
        state = 'absent' if state == 'absent' else 'present'
        if not recorded and not declared:
            wanted = None
    if state == 'absent':
        if wanted == 'absent' or (wanted is None and then == 'absent'):
            return True, []
        return True, [('missing', 'state', 'present', 'absent', '')]
    if wanted == 'absent' or (wanted is None and then == 'absent'):
        return True, [('present', 'state', 'absent', 'present', '')]
    return False, []


def _attributes(kind, recorded, declared, seen, leave=()):
    """Return differences of every attribute: as declared, else as recorded."""
    out = []
    for name in sorted((set(recorded) | set(seen) | set(declared)) - set(ASIDE) - {'state', 'file'} - set(leave)):
        if name in ONLY_DECLARED.get(kind, ()) and name not in declared:
            continue
        is_now = seen.get(name)
        known = name in seen or name in recorded or kind == 'repository' or name in MAY_LACK.get(kind, ())
        if name in declared and known and not _as_declared(kind, name, declared[name], is_now):
            out.append((_kind(name), name, declared[name], is_now, ''))
        elif recorded.get('state') != 'absent' and recorded and not _as_recorded(recorded.get(name), is_now):
            out.append((_kind(name), name, recorded.get(name), is_now, ''))
    return out


def _kind(name):
    return KINDS.get(name, 'changed')


def _as_recorded(then, is_now):
    """Say whether an attribute is exactly what it was; both are of one observer, so there is one spelling."""
    if isinstance(then, bool) or isinstance(is_now, bool):
        return then is is_now
    return to_text(then) == to_text(is_now)


def _as_declared(kind, name, wanted, is_now):
    if name == 'version':
        return all(pinned(one, is_now or []) for one in wanted)
    if kind == 'service' and name == 'enabled' and is_text(is_now):
        return True  # static and the like: nobody can enable it
    if kind == 'user' and name == 'groups':
        return sorted(wanted) == sorted(is_now or [])
    if kind == 'user' and name == 'group' and is_text(wanted) and wanted.isdigit():
        return True  # by number: what was recorded is compared
    if kind == 'repository':
        return _in_repository(wanted) == _in_repository(is_now) or same(wanted, is_now)
    if kind == 'cron' and name == 'job':
        return wanted.strip() == (is_now or '').strip()
    return same(wanted, is_now)


def _in_repository(value):
    flag = as_flag(value)
    if flag is not None:
        return ['%d' % flag]
    return ('\n'.join(value) if isinstance(value, list) else '%s' % (value,)).replace(',', ' ').split()


def _file(entry, recorded, declared, seen):
    wanted = declared.get('type') or recorded.get('type')
    if wanted and seen.get('type') != wanted:
        return [('type', 'type', wanted, seen.get('type'), '')]
    if recorded.get('type') and seen.get('type') != recorded['type']:
        return [('type', 'type', recorded['type'], seen.get('type'), '')]
    leave = CONTENT + ('sha1', 'sha1_keyed', 'content')
    if 'acl' not in seen or 'acl' not in recorded:  # there is, or was, no getfacl: said once for all files
        leave += ('acl',)
    if 'acl' not in leave and recorded['acl'] != seen['acl'] and _differ_in_group(recorded.get('mode'), seen['mode']):
        leave += ('mode',)  # the group's digit of a mode is the mask of an ACL
    out = _attributes('file', recorded, declared, seen, leave)
    return out if declared.get('content') is False else _content(recorded, declared, seen) + out


def _differ_in_group(one, other):
    try:
        return (int(one, 8) ^ int(other, 8)) & ~0o070 == 0
    except (TypeError, ValueError):
        return False


def _content(recorded, declared, seen):
    for name in ('sha256', 'keyed'):
        if name in recorded and name in seen and recorded[name] != seen[name]:
            return [('changed', name, recorded[name], seen[name], '')]
        if name in declared and name in seen and declared[name] != seen[name]:
            return [('changed', name, declared[name], seen[name], '')]
    if 'size' in recorded and recorded['size'] != seen.get('size'):
        return [('changed', 'size', recorded['size'], seen.get('size'), '')]
    for name in ('sha1', 'sha1_keyed'):
        if name in declared and name in seen and declared[name] != seen[name]:
            if name == 'sha1_keyed':
                return [('changed', 'keyed', '', '', 'not what its task wrote')]
            return [('changed', name, declared[name], seen[name], 'not what its task wrote')]
    if ('sha256' in recorded or 'keyed' in recorded) and seen.get('unhashed'):
        return [('unreadable', 'content', None, None, seen['unhashed'])]
    return []


def _service(recorded, declared, seen):
    if seen.get('masked') != declared.get('masked', recorded.get('masked', seen.get('masked'))):
        leave = ('enabled', 'fragment')
    else:
        leave = ()
    out = _attributes('service', recorded, declared, seen, leave)
    if 'state' in declared and declared['state'] in ('started', 'stopped') and seen['state'] != declared['state']:
        out.append(('state', 'state', declared['state'], seen['state'], ''))
    return out


def _selinux(recorded, declared, seen):
    out = _attributes('selinux', recorded, declared, seen, ('live',))
    if seen.get('live') != seen.get('mode'):
        if recorded.get('live') not in (None, seen.get('live')):
            out.append(('live', 'live', recorded['live'], seen.get('live'), ''))
        elif not out:
            out.append(('not-effective', 'live', seen.get('mode'), seen.get('live'),
                        'configured; it takes a reboot'))
    return out


def _mount(recorded, declared, seen):
    wanted = declared.get('state')
    if wanted == 'absent':
        if seen['state'] == 'absent':
            return []
        return [('present', 'state', 'absent', seen['state'], '')]
    out, live = [], wanted == 'mounted'
    if live and seen['state'] != 'mounted':
        out.append(('missing', 'state', 'mounted', seen['state'], ''))
    leave = ('options', 'source', 'fstype') + (() if 'saved' in declared or 'saved' in recorded else ('saved',))
    mine = {name: value for name, value in declared.items() if name == 'saved'}
    out.extend(_attributes('mount', recorded, mine, seen, leave))
    if live and seen['state'] == 'mounted':
        if recorded.get('state') == 'mounted':
            out.extend(_attributes('mount', recorded, {}, seen, ('saved',)))
        missing = _flags_missing(declared, seen.get('options') or [])
        if missing and not any(one[1] == 'options' for one in out):
            out.append(('options', 'options', missing, seen.get('options'), 'declared, but not in force'))
    return out


def _flags_missing(declared, options):
    words = declared.get('options')
    if words is None:
        words = (declared.get('saved') or '').split(' ')[0].split(',')
    missing = [word for word in words if word in FLAGS and word not in options]
    missing += [word for word in words for flag, contrary in FLAGS.items() if word == contrary and flag in options]
    return missing


def _line(recorded, declared, seen):
    if seen.get('state') == 'unknown':
        return [('unreadable', 'regexp', None, None, 'its pattern is not a regular expression')]
    wanted = declared.get('state') or recorded.get('state') or 'present'
    if seen['state'] == wanted:
        return []
    name = next((one for one in ('lines', 'block', 'regexp') if one in declared), 'state')
    near = seen.get('near') or None
    if wanted == 'present':
        should = declared.get(name, 'present')
        if name == 'lines':
            should = [one for one in declared['lines'] if one.rstrip() not in (seen.get('lines') or [])]
        return [('missing', name, should, near, '')]
    return [('present', name, 'no line as %s' % declared[name] if name == 'regexp' else 'absent',
             near or seen.get('lines') or 'present', '')]


def _slurm(kind, recorded, declared, seen, now):
    if kind == 'slurm-reservation' and seen.get('state') == 'absent' and (
            is_over(recorded, now.epoch) or is_over(declared, now.epoch)):
        return []
    over, out = _state(kind, recorded, declared, seen)
    if over:
        return out
    for key in sorted(set(declared) & compared(kind)):
        try:
            equal = same_field(kind, key, declared[key], seen.get(key))
        except ValueError as error:
            out.append(('unreadable', key, None, None, '%s' % error))
            continue
        if not equal:
            out.append(('changed', key, declared[key], seen.get(key), ''))
    return out


def _not_effective(entry, now):
    since, out = entry.get('observed_since'), []
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
