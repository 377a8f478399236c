# -*- coding: utf-8 -*-
"""Give back what a role replaced on a node: the plan, and doing it.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import errno
import hashlib
import json
import os

from ..audit import record as records
from ..audit.compare import Now, compare
from ..audit.kinds.kind import kind_of, name_of
from ..audit.kinds.registry import kind_for
from ..audit.node import as_bytes, iso, shown_name
from ..audit.observe import Survey
from ..audit.packages import read_installed
from ..audit.secrets import id_of, read_key
from ..audit.unmanaged import keep_for, look_at
from ..expect.kernel import sysctl_path
from ..expect.services import parse
from ..expect.values import Unreadable
from .paths import put_back, set_times
from ..slurm.process import job_steps
from .store import (
    CONTENT, OriginalsError, is_same, read_index, roles_of, seen_now, summary, things_of, write_index)

MYPY = False
if MYPY:
    from typing import Any, Callable, Container, Iterable, Iterator  # noqa: F401  in comments

__metaclass__ = type

#: A stop or restart of these is felt by jobs on the node.
OF_JOBS = ('slurmd', 'slurmctld', 'slurmdbd', 'munge', 'gpfs', 'nvidia-persistenced', 'openibd', 'opensm', 'opensmd',
           'rdma', 'sssd', 'nslcd', 'autofs', 'nfs-server', 'network', 'NetworkManager')
#: Jobs on other nodes feel it when these stop.
OF_CLUSTER = ('slurmctld', 'slurmdbd', 'mariadb', 'munge', 'opensm', 'opensmd', 'nfs-server', 'gpfs')
#: What an audit tells and nobody did: a daemon that has not read its file, an orphan.
NOBODYS = ('not-effective', 'orphaned')
SECONDS = 300
NOTHING = 'nothing to do'
#: Why something stays, and is tried again with the next role: no failure.
NOT_EMPTY = 'it is not empty, and stays'
NEEDED = 'others need it, and it stays: '
#: Below these the record keeps what a whole file is, whoever has lines in it.
KEPT_WHOLE = ('/etc/', '/boot/')


class Plan:
    """What giving back a role means on this node now.

    steps     [(thing, what is done, in words)]
    stays     [line]: what is not put back, and why
    changed   [line]: what somebody else changed since; it would be lost
    jobs      [unit] that would stop or restart while jobs run here
    serving   [unit] that would stop, and that jobs of the whole cluster need
    held      units that systemd does not stop: they run until the node is booted
    due       things that the store forgets when it is done
    """

    def __init__(self):
        # type: () -> None
        self.steps = []  # type: list[tuple[str, str]]
        self.stays, self.changed, self.due = [], [], []  # type: list[str], list[str], list[str]
        self.jobs, self.serving = [], []  # type: list[str], list[str]
        self.held = frozenset()  # type: frozenset[str]


# ---------------------------------------------------------------- plan
def plan(role, index, record, node):
    # type: (str, dict[str, Any], dict[str, Any] | None, Any) -> tuple[Plan, dict[str, Any]]
    """Return (the Plan of giving back a role, {thing: what is there now})."""
    out, entries = Plan(), index['entries']
    out.due = due(role, index, record)
    seen = seen_now({thing: entries[thing] for thing in out.due}, node)
    out.held = held([thing for thing in out.due if kind_of(thing) == 'service'], node)
    for thing in out.due:
        now = seen[thing]
        if isinstance(now, Unreadable):
            out.changed.append('%s: what is there now could not be read: %s' % (shown_name(thing), now.reason))
            continue
        if thing in out.held and now.get('state') == 'started' and entries[thing]['was'].get('state') != 'started':
            out.stays.append('%s: systemd does not stop it by hand: it runs until the node is booted' % (
                shown_name(thing)))
            now = seen[thing] = dict(now, state='stopped')
        if is_back(thing, entries[thing], now):
            continue
        if now.get('type') == 'file' and entries[thing]['was']['state'] == 'absent' and not entries[thing]['content']:
            out.stays.append('%s: it was not there, and what is in it is not of the role: remove it by hand' % (
                shown_name(thing)))
        elif is_lost(entries[thing], now):
            out.stays.append('%s: the file is gone, and its content was not kept: put it back by hand' % (
                shown_name(thing)))
        elif kind_for(thing).comes_back:
            out.steps.append((thing, words(thing, entries[thing], now)))
        else:
            out.stays.append('%s: it was %s; put that back by hand' % (
                shown_name(thing), summary(thing, entries[thing]['was'])))
    for thing, holders in sorted(others(role, index, record).items()):
        out.stays.append('%s: role %s still has it' % (shown_name(thing), ', '.join(holders)))
    stepped = {thing for thing, _words in out.steps}
    out.changed += sorted(changed_since(role, stepped, record, node))
    out.steps += [(unit, 'restart') for unit in readers(record, role, stepped) if started(unit, entries, seen, node)]
    stops = [(name_of(thing), what) for thing, what in out.steps if what.startswith(('stop', 'restart'))]
    out.jobs = sorted(unit for unit, _what in stops if _plain(unit) in OF_JOBS) if job_steps(node.path('/proc')) else []
    out.serving = sorted(unit for unit, what in stops if what.startswith('stop') and _plain(unit) in OF_CLUSTER)
    return out, seen


def is_lost(entry, now):
    # type: (dict[str, Any], dict[str, Any]) -> bool
    """Say whether a file is gone of which only the mode was managed, so that nobody has its content. Pure."""
    return entry['was'].get('type') == 'file' and not entry['content'] and now.get('type') != 'file'


def _plain(unit):
    # type: (str) -> str
    return unit.partition('.')[0]


def held(units, node):
    # type: (list[str], Any) -> frozenset[str]
    """Return those of some units, as things, whose unit file has RefuseManualStop= (systemd.unit(5))."""
    if not units:
        return frozenset()
    names = ['systemctl', 'show', '--property', 'Id,RefuseManualStop', '--'] + [name_of(one) for one in units]
    _status, out, _err = node.run(names, SECONDS)
    return frozenset(thing for thing, shown in zip(units, parse(out)) if shown.get('RefuseManualStop') == 'yes')


def due(role, index, record):
    # type: (str, dict[str, Any], dict[str, Any] | None) -> list[str]
    """Return the things that no other role has, sorted. Pure.

    What an earlier giveback of this role could not put back is due again, and what stayed because others needed it
    with each role.
    """
    every = roles_of(index, record)
    return sorted(thing for thing, roles in every.items()
                  if roles == {role} or (not roles and index['entries'][thing].get('left') in (role, True)))


def others(role, index, record):
    # type: (str, dict[str, Any], dict[str, Any] | None) -> dict[str, list[str]]
    """Return {thing: the other roles that have it} of things of a role. Pure."""
    every = roles_of(index, record)
    return {thing: sorted(roles - {role}) for thing, roles in every.items() if role in roles and roles != {role}}


def words(thing, entry, now):
    # type: (str, dict[str, Any], dict[str, Any]) -> str
    """Return what giving back does with a thing. Pure."""
    was, kind = entry['was'], kind_of(thing)
    if kind == 'service':
        done = []
        if now.get('state') == 'started' and was.get('state') != 'started':
            done.append('stop')
        if bool(was.get('masked')) != bool(now.get('masked')):
            done.append('mask' if was.get('masked') else 'unmask')
        if was.get('enabled') is True and now.get('enabled') is not True:
            done.append('enable')
        if was.get('enabled') is not True and now.get('enabled') is True:
            done.append('disable')
        if was.get('state') == 'started' and now.get('state') != 'started':
            done.append('start')
        return ', '.join(done) or NOTHING
    if was.get('state') == 'absent':
        return 'remove'
    return 'back to %s' % summary(thing, was)


def changed_since(role, things, record, node):
    # type: (str, set[str], dict[str, Any] | None, Any) -> Iterator[str]
    """Yield a line for each thing that is not as the last rollout left it: whoever changed it would lose that."""
    if record is None:
        for thing in things:
            yield '%s: the record of this node cannot be used, so who changed it last is not known' % shown_name(thing)
        return
    entries = [one for one in record['entries']
               if things.intersection(things_of(one['resource'], one.get('declared') or {}))]
    survey = Survey(node, read_key(node))
    seen = survey.observe(entries)
    now = Now(node.now(), survey.units, record['effective'], id_of(survey.key))
    for entry in entries:
        for one in compare(entry, seen[entry['resource']], now):
            if one['kind'] not in NOBODYS:
                yield '%s: %s %s since role %s rolled it out' % (
                    shown_name(entry['resource'].partition('#')[0]), one['attribute'] or 'it',
                    'cannot be read' if one['kind'] == 'unreadable' else 'changed', entry.get('role', role))
    whole = {entry['resource'] for entry in entries if entry['resource'].startswith('file:')
             and (entry.get('declared') or {}).get('content') is not False}
    paths = {name_of(thing) for thing in things if kind_of(thing) == 'file' and thing not in whole}
    looked = look_at(record, node, survey.key, ())
    for one in looked['findings']:
        if one['path'] in paths and one['kind'] != 'extra':
            yield 'file:%s: changed since the last rollout' % shown_name(one['path'])
    for path in sorted(paths):
        lines = [one for one in entries if 'file:' + path in things_of(one['resource'], one.get('declared') or {})]
        if lines and not (path.startswith(KEPT_WHOLE) and record.get('tree')):
            yield 'file:%s: whether others wrote into it since is not known' % shown_name(path)


def readers(record, role, things):
    # type: (dict[str, Any] | None, str, set[str]) -> list[str]
    """Return the units that read files which are given back, as things. Pure."""
    return sorted({'service:' + unit for entry in (record or {}).get('entries') or [] if entry.get('role') == role
                   and things.intersection(things_of(entry['resource'], entry.get('declared') or {}))
                   for unit in entry.get('units') or []})


def started(unit, entries, seen, node):
    # type: (str, dict[str, Any], dict[str, Any], Any) -> bool
    """Say whether a unit runs, and ran before."""
    now = seen[unit] if unit in seen else seen_now({unit: None}, node)[unit]
    ran = unit not in seen or entries[unit]['was'].get('state') == 'started'
    return ran and isinstance(now, dict) and now.get('state') == 'started'


def fingerprint(node, role, made, seen, index):
    # type: (Any, str, Plan, dict[str, Any], dict[str, Any]) -> str
    """Return a digest of what would be done, and to what. Pure but for the node's id."""
    about = [node.machine_id(), role, made.steps, made.stays, made.changed, made.jobs, made.serving,
             [[thing, index['entries'][thing]['was'], _known(seen.get(thing))] for thing in made.due]]
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode('ascii')).hexdigest()


def _known(now):
    # type: (Any) -> Any
    """Return what is there without what changes by looking at it."""
    if isinstance(now, Unreadable):
        return now.reason
    return {name: value for name, value in (now or {}).items() if name != 'atime_ns'}


# ---------------------------------------------------------------- do it
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
    """Say whether this is no failure: it stays until nobody needs it. Pure."""
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


def is_back(thing, entry, now):
    # type: (str, dict[str, Any], dict[str, Any]) -> bool
    """Say whether giving back has nothing to do. A unit whose package stays is there, and does nothing. Pure."""
    return is_same(thing, entry, now) or (kind_of(thing) == 'service' and words(thing, entry, now) == NOTHING)


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
    """Write a record that has nothing of a role; return {serial, digest, record}. What came back is no finding."""
    now, key = node.now(), read_key(node)
    gone = [entry for entry in record['entries'] if entry.get('role') == role]
    run = {'started': began, 'now': now, 'changes': [[began, now]]}
    told = {'run': run, 'entries': [], 'roles': {role: {}}, 'windows': [[began, now]]}
    tree, _problems = keep_for(record.get('tree'), told, node, key, now, gone) if key else (record.get('tree'), [])
    new = dict(record, serial=int(record['serial']) + 1, sealed_at=iso(now),
               roles={name: one for name, one in record['roles'].items() if name != role},
               entries=[entry for entry in record['entries'] if entry.get('role') != role])
    if tree:
        new['tree'] = tree
    content = records.to_bytes(new)
    wanted = {(entry.get('observed') or {}).get('sha256') for entry in new['entries'] if not entry.get('secret')}
    records.write(node, content, {}, wanted)
    return {'serial': new['serial'], 'digest': records.digest(content), 'record': records.pack(content)}
