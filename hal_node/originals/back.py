# -*- coding: utf-8 -*-
"""Give back what a role replaced on a node: say what would be done, and do it.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import errno
import os

from ..audit import record as records
from ..audit.kinds.kind import kind_of, name_of
from ..audit.node import as_bytes, iso, shown_name
from ..audit.packages import read_installed
from ..audit.secrets import read_key
from ..audit.unmanaged import keep_for
from ..expect.kernel import sysctl_path
from ..expect.values import Unreadable
from .listing import seen_now
from .paths import put_back, set_times
from .plan import SECONDS, fingerprint, is_back, others, plan
from .store import CONTENT, OriginalsError, read_index, write_index

MYPY = False
if MYPY:
    from typing import Any, Callable, Container, Iterable  # noqa: F401  in comments
    from .plan import Plan  # noqa: F401  in comments

__metaclass__ = type

#: Why something stays, and is tried again with the next role: this is not a failure.
NOT_EMPTY = 'it is not empty, and stays'
NEEDED = 'others need it, and it stays: '


def ask(request, node):
    # type: (dict[str, Any], Any) -> dict[str, Any]
    """Return {steps, stays, changed_since, jobs, serving, fingerprint, kept} of a plan. Raises OriginalsError."""
    index = read_index(node)
    record, _said = records.choose(request['node'], request.get('copy'), node)
    made, seen = plan(request['role'], index, record, node)
    return {'steps': [['%s' % shown_name(thing), what] for thing, what in made.steps], 'stays': made.stays,
            'changed_since': made.changed, 'jobs': made.jobs, 'serving': made.serving, 'kept': len(made.due),
            'fingerprint': fingerprint(node, request['role'], made, seen, index)}


def give_back(request, node):
    # type: (dict[str, Any], Any) -> dict[str, Any]
    """Do what `ask` said, if that is still so. Returns {done, left, stayed, serial, digest, record}.

    left     what could not be put back, and why: a failure; the next giveback of the role tries again
    stayed   folders that are not empty and packages that others need; a giveback of any role tries again

    request  {node, role, fingerprint, changed_ok, copy}
    Raises OriginalsError; before the first change, or with what was not put back.
    """
    records.prepare(node)
    with records.locked(node):
        index = read_index(node)
        record, _said = records.choose(request['node'], request.get('copy'), node)
        role = request['role']
        made, seen = plan(role, index, record, node)
        if fingerprint(node, role, made, seen, index) != request['fingerprint']:
            raise OriginalsError('it is not as it was shown any more; nothing was changed. Look at the plan again')
        if made.changed and not request.get('changed_ok'):
            raise OriginalsError('others changed what would be given back; nothing was changed: %s' % (
                '; '.join(made.changed)))
        if made.jobs:
            raise OriginalsError('jobs run on this node, and these would be stopped: %s; nothing was changed' % (
                ', '.join(made.jobs)))
        began = node.now()
        left = carry_out(made, index['entries'], seen, node)
        still = {thing: stays(why) or role for thing, why in left}
        for thing in made.due:
            if thing in still:
                index['entries'][thing].update(left=still[thing], roles=[])
            else:
                del index['entries'][thing]
        for thing in others(role, index, record):
            index['entries'][thing]['roles'] = sorted(set(index['entries'][thing]['roles']) - {role})
        write_index(node, index)
        sealed = forget(role, record, request, began, node) if record else {}
    return dict(sealed, done=['%s: %s' % (shown_name(thing), what) for thing, what in made.steps if thing not in still],
                left=['%s: %s' % (shown_name(thing), why) for thing, why in left if not stays(why)],
                stayed=['%s: %s' % (shown_name(thing), why) for thing, why in left if stays(why)])


def stays(why):
    # type: (str) -> bool
    """Say whether this is not a failure: it stays until nobody needs it. Pure."""
    return why.startswith((NOT_EMPTY, NEEDED))


def carry_out(made, entries, seen, node):
    # type: (Plan, dict[str, Any], dict[str, Any], Any) -> list[tuple[str, str]]
    """Do the steps in their order; return [(thing, why it was not put back)].

    Units stop before their files go, files that were not there go before their packages and folders after them,
    packages bring no file over those that come back, and what runs is told last.
    """
    left, was = [], {thing: entries[thing]['was'] for thing in made.due}  # type: list[tuple[str, str]], dict[str, Any]
    files = sorted(thing for thing, _what in made.steps if kind_of(thing) == 'file')
    gone = [thing for thing in reversed(files) if was[thing]['state'] == 'absent']
    folders = [thing for thing in gone if _is_folder(thing, node)]
    for thing, what in made.steps:
        if kind_of(thing) == 'service':
            _try(left, thing, _unit, name_of(thing), what, ('disable', 'stop'), node)
    for thing in gone:
        if thing not in folders:
            _try(left, thing, put_back, node.path(name_of(thing)), was[thing])
    packages = [thing for thing, _what in made.steps if kind_of(thing) == 'package']
    left += _erase([thing for thing in packages if was[thing]['state'] == 'absent'], node)
    for thing in packages:
        if was[thing]['state'] != 'absent':
            _try(left, thing, _version_back, name_of(thing), was[thing].get('version') or [], node)
    for thing in folders:
        _try(left, thing, put_back, node.path(name_of(thing)), was[thing])
    for thing in files:
        if thing not in gone:
            _try(left, thing, _path_back, name_of(thing), entries[thing], node)
    for thing in made.due:
        if was[thing].get('type') == 'directory' and _is_folder(thing, node):
            set_times(node.path(name_of(thing)), was[thing])
    for thing, _what in made.steps:
        if kind_of(thing) in ('sysctl', 'hostname', 'selinux'):
            _try(left, thing, _value_back, kind_of(thing), name_of(thing), was[thing], node)
    if any(kind_of(thing) == 'service' or '/systemd/' in thing for thing, _what in made.steps):
        _run(['systemctl', 'daemon-reload'], node)
    for thing, what in made.steps:
        if kind_of(thing) == 'service':
            _try(left, thing, _unit, name_of(thing), what, ('unmask', 'mask', 'enable', 'start', 'restart'), node)
    return left + _otherwise(made, entries, {thing for thing, _why in left}, node)


def _otherwise(made, entries, told, node):
    # type: (Plan, dict[str, Any], Container[str], Any) -> list[tuple[str, str]]
    """Return [(thing, why)] of what is not what it was, whatever the programs said."""
    asked = {thing: entries[thing] for thing, _what in made.steps if thing in entries and thing not in told}
    seen = seen_now(asked, node)
    for thing in made.held:
        if isinstance(seen.get(thing), dict):  # it runs until the node is booted, as was said
            seen[thing] = dict(seen[thing], state=asked[thing]['was'].get('state'))
    return [(thing, 'it is still not as it was') for thing, now in sorted(seen.items())
            if isinstance(now, Unreadable) or not is_back(thing, asked[thing], now)]


def _try(left, thing, do, *words):
    # type: (list[tuple[str, str]], str, Callable[..., object], *Any) -> None
    try:
        do(*words)
    except EnvironmentError as error:
        not_empty = error.errno in (errno.ENOTEMPTY, errno.EEXIST)
        left.append((thing, NOT_EMPTY if not_empty else os.strerror(error.errno) if error.errno else '%s' % error))
    except (Unreadable, OriginalsError) as error:
        left.append((thing, getattr(error, 'reason', None) or '%s' % error))


def _is_folder(thing, node):
    # type: (str, Any) -> bool
    path = node.path(name_of(thing))
    return os.path.isdir(path) and not os.path.islink(path)


def _path_back(path, entry, node):
    # type: (str, dict[str, Any], Any) -> None
    was = entry['was']
    stored = node.state('%s/%s' % (CONTENT, was['sha256'])) if was.get('sha256') else None
    put_back(node.path(path), was, stored, entry['content'])


def _run(argv, node, seconds=SECONDS):
    # type: (list[str], Any, float) -> None
    status, out, err = node.run(argv, seconds)
    if status != 0:
        said = [line for line in (err or out).splitlines() if line.strip()]
        raise OriginalsError('%s: %s' % (' '.join(argv), shown_name(said[-1]) if said else 'status %d' % status))


def _unit(unit, what, wanted, node):
    # type: (str, str, Iterable[str], Any) -> None
    for word in wanted:
        if word in what.split(', '):
            _run(['systemctl', word, unit], node)


def _erase(things, node):
    # type: (list[str], Any) -> list[tuple[str, str]]
    """Erase packages, those first that no other needs; return [(thing, why)] of those that stay.

    What a package outside of these needs stays: rpm refuses to erase it.
    """
    left = []  # type: list[tuple[str, str]]
    while things:
        left = []
        for thing in things:
            _try(left, thing, _erase_one, name_of(thing), node)
        if len(left) == len(things):
            break
        things = [thing for thing, _why in left]
    return left


def _erase_one(name, node):
    # type: (str, Any) -> None
    status, out, err = node.run(['rpm', '--erase', name], SECONDS)
    if status != 0:
        said = [line.strip() for line in (err or out).splitlines() if line.strip()]
        needs = [line.partition(' is needed by ')[2] for line in said if ' is needed by ' in line]
        raise OriginalsError(NEEDED + shown_name(', '.join(sorted(set(needs)))) if needs else 'rpm --erase %s: %s' % (
            name, shown_name(said[-1]) if said else 'status %d' % status))


def _version_back(name, versions, node):
    # type: (str, list[str], Any) -> None
    installed = read_installed(node).named(name)
    wanted = ['%s-%s' % (name, version) for version in versions if version not in installed]
    if not wanted:  # more are there than there were: kernels
        raise OriginalsError('another version came beside it: remove that by hand')
    _run(['yum', '--assumeyes', 'downgrade' if installed else 'install'] + wanted, node)
    if not set(versions) <= set(read_installed(node).named(name)):
        _run(['yum', '--assumeyes', 'install'] + wanted, node)
    if not set(versions) <= set(read_installed(node).named(name)):
        raise OriginalsError('no repository gave %s' % ' '.join(wanted))


def _value_back(kind, name, was, node):
    # type: (str, str, dict[str, Any], Any) -> None
    if kind == 'sysctl' and 'value' in was:
        with open(node.path('/proc/sys/' + sysctl_path(name)), 'wb') as stream:
            stream.write(as_bytes(was['value'] + '\n'))
    elif kind == 'hostname' and was.get('name'):
        _run(['hostname', was['name']], node)
    elif kind == 'selinux' and was.get('live') in ('enforcing', 'permissive'):
        _run(['setenforce', was['live'].capitalize()], node)


# ---------------------------------------------------------------- the record
def forget(role, record, request, began, node):
    # type: (str, dict[str, Any], dict[str, Any], Any, Any) -> dict[str, Any]
    """Write a record that has nothing of a role; return {serial, digest, record}. What came back is not a finding."""
    now, key = node.now(), read_key(node)
    gone = [entry for entry in record['entries'] if entry.get('role') == role]
    run = {'started': began, 'now': now, 'changes': [[began, now]]}
    told = {'run': run, 'entries': [], 'roles': {role: {}}, 'windows': [[began, now]]}
    tree, _problems = keep_for(record.get('tree'), told, node, key, now, gone) if key else (record.get('tree'), [])
    new = dict(record, serial=int(record['serial']) + 1, sealed_at=iso(now),
               roles={name: details for name, details in record['roles'].items() if name != role},
               entries=[entry for entry in record['entries'] if entry.get('role') != role])
    if tree:
        new['tree'] = tree
    content = records.to_bytes(new)
    wanted = {(entry.get('observed') or {}).get('sha256') or '' for entry in new['entries'] if not entry.get('secret')}
    records.write(node, content, {}, wanted)
    return {'serial': new['serial'], 'digest': records.digest(content), 'record': records.pack(content)}
