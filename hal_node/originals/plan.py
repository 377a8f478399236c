# -*- coding: utf-8 -*-
"""What giving back a role would do on this node: nothing is changed here.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import hashlib
import json

from ..audit.compare import Now, compare
from ..audit.kinds.kind import kind_of, name_of
from ..audit.kinds.registry import kind_for
from ..audit.node import shown_name
from ..audit.observe import Survey
from ..audit.secrets import id_of, read_key
from ..audit.unmanaged import look_at
from ..expect.services import parse
from ..expect.values import Unreadable
from ..slurm.process import job_steps
from .listing import is_same, roles_of, seen_now, summary
from .store import things_of

MYPY = False
if MYPY:
    from typing import Any, Iterator  # noqa: F401  in comments

__metaclass__ = type

#: A stop or restart of these is felt by jobs on the node.
OF_JOBS = ('slurmd', 'slurmctld', 'slurmdbd', 'munge', 'gpfs', 'nvidia-persistenced', 'openibd', 'opensm', 'opensmd',
           'rdma', 'sssd', 'nslcd', 'autofs', 'nfs-server', 'network', 'NetworkManager')
#: Jobs on other nodes feel it when these stop.
OF_CLUSTER = ('slurmctld', 'slurmdbd', 'mariadb', 'munge', 'opensm', 'opensmd', 'nfs-server', 'gpfs')
#: Findings that nobody caused by a change: a daemon that has not read its file, an orphan.
NOBODYS = ('not-effective', 'orphaned')
SECONDS = 300
NOTHING = 'nothing to do'
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


def is_back(thing, entry, now):
    # type: (str, dict[str, Any], dict[str, Any]) -> bool
    """Say whether giving back has nothing to do. A unit whose package stays is there, and does nothing. Pure."""
    return is_same(thing, entry, now) or (kind_of(thing) == 'service' and words(thing, entry, now) == NOTHING)


def is_lost(entry, now):
    # type: (dict[str, Any], dict[str, Any]) -> bool
    """Say whether a file is gone of which only the mode was managed, so that nobody has its content. Pure."""
    return entry['was'].get('type') == 'file' and not entry['content'] and now.get('type') != 'file'


def _plain(unit):
    # type: (str) -> str
    return unit.partition('.')[0]


def held(units, node):
    # type: (list[str], Any) -> frozenset[str]
    """Return the units, as things, whose unit file has RefuseManualStop= (systemd.unit(5))."""
    if not units:
        return frozenset()
    names = ['systemctl', 'show', '--property', 'Id,RefuseManualStop', '--'] + [name_of(thing) for thing in units]
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
    entries = [entry for entry in record['entries']
               if things.intersection(things_of(entry['resource'], entry.get('declared') or {}))]
    survey = Survey(node, read_key(node))
    seen = survey.observe(entries)
    now = Now(node.now(), survey.units, record['effective'], id_of(survey.key))
    for entry in entries:
        for difference in compare(entry, seen[entry['resource']], now):
            if difference['kind'] not in NOBODYS:
                yield '%s: %s %s since role %s rolled it out' % (
                    shown_name(entry['resource'].partition('#')[0]), difference['attribute'] or 'it',
                    'cannot be read' if difference['kind'] == 'unreadable' else 'changed', entry.get('role', role))
    whole = {entry['resource'] for entry in entries if entry['resource'].startswith('file:')
             and (entry.get('declared') or {}).get('content') is not False}
    paths = {name_of(thing) for thing in things if kind_of(thing) == 'file' and thing not in whole}
    looked = look_at(record, node, survey.key, ())
    for finding in looked['findings']:
        if finding['path'] in paths and finding['kind'] != 'extra':
            yield 'file:%s: changed since the last rollout' % shown_name(finding['path'])
    for path in sorted(paths):
        lines = [entry for entry in entries
                 if 'file:' + path in things_of(entry['resource'], entry.get('declared') or {})]
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
