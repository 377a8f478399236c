# -*- coding: utf-8 -*-
"""Units as they are, from one `systemctl show` for all.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import hashlib
import time

from .kind import Kind, name_of
from ..node import shown_name, small_file
from ...expect.process import read_guarded
from ...expect.services import ENABLED, UNIT, parse, unit_name
from ...expect.values import Unreadable, is_text, present

MYPY = False
if MYPY:
    from typing import Any, Collection  # noqa: F401  in comments
    from .kind import Attributes, Difference  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

PROPERTIES = ('Id', 'LoadState', 'ActiveState', 'SubState', 'UnitFileState', 'FragmentPath', 'DropInPaths',
              'ExecMainStartTimestampMonotonic')
RUNNING = ('active', 'reloading', 'refreshing')
DISABLED = ('disabled', 'masked', 'masked-runtime', 'linked', 'linked-runtime', 'enabled-runtime', 'bad', 'invalid', '')
TIMEOUT_SECONDS = 30
MOST_DROP_IN = 1024 * 1024
VENDOR = ('/usr/lib/systemd/', '/lib/systemd/')


def read_units(names, node):
    # type: (Collection[str], Node) -> dict[str, dict[str, str] | Unreadable]
    """Return {name: {property: text} or Unreadable}."""
    good = sorted({unit_name(name) for name in names if UNIT.match(name) and not name.startswith('-')})
    results = {}  # type: dict[str, dict[str, str] | Unreadable]
    results.update((name, Unreadable('not a unit name: "%s"' % name)) for name in names)
    if not good:
        return results
    shown = {}  # type: dict[str, dict[str, str] | Unreadable]
    try:
        status, out, err = node.run(['systemctl', 'show', '--property', ','.join(PROPERTIES), '--'] + good,
                                    TIMEOUT_SECONDS)
        blocks = parse(out)
        if len(blocks) != len(good):
            raise Unreadable('systemctl shows no units (status %d)' % status, ' '.join(err.split())[:200])
        shown.update(zip(good, blocks))
    except Unreadable as error:
        shown.update((name, error) for name in good)
    for name in names:
        if unit_name(name) in shown:
            results[name] = shown[unit_name(name)]
    return results


def observe_units(units, node):
    # type: (dict[str, dict[str, str] | Unreadable], Node) -> dict[str, Attributes | Unreadable]
    """Return {name: {attributes} or Unreadable} of read_units()'s answer."""
    paths = sorted({path for state in units.values() if isinstance(state, dict)
                    for path in state.get('DropInPaths', '').split()})
    answers = read_guarded(lambda path: present(_digest(path, node)), paths)
    digests = {path: answer.reason if isinstance(answer, Unreadable) else answer.value
               for path, answer in zip(paths, answers)}
    return {name: state if isinstance(state, Unreadable) else attributes_of(state, digests)
            for name, state in units.items()}


def _digest(path, node):
    # type: (str, Node) -> str
    content = small_file(node.path(path), MOST_DROP_IN)
    if content is None:
        raise Unreadable('not a regular file')
    return hashlib.sha256(content).hexdigest()[:16]


def attributes_of(state, digests):
    # type: (dict[str, str], dict[str, str]) -> Attributes | Unreadable
    """Return a unit's attributes, from its properties and the digests of drop-ins. Pure."""
    load = state.get('LoadState', '')
    if not load:
        return Unreadable('systemctl did not tell its state')
    if load == 'not-found' and state.get('ActiveState') == 'inactive':
        return {'state': 'absent'}
    file_state = state.get('UnitFileState', '')
    enabled = True if file_state in ENABLED else False if file_state in DISABLED else file_state
    return {
        'state': 'started' if state.get('ActiveState') in RUNNING else 'stopped',
        'enabled': enabled,
        'masked': load == 'masked',
        'fragment': shown_name(state.get('FragmentPath', '')),
        'drop_ins': ['%s %s' % (shown_name(path), digests.get(path, 'cannot be read'))
                     for path in sorted(state.get('DropInPaths', '').split())],
    }


def started_at(state, now):
    # type: (dict[str, str] | Unreadable | None, float) -> float | None
    """Return since when (epoch) the unit's main process runs; None if none does. `state` is of read_units()."""
    if not isinstance(state, dict) or state.get('ActiveState') not in RUNNING:
        return None
    text = state.get('ExecMainStartTimestampMonotonic', '0')
    if not text.isdigit() or int(text) == 0:
        return None
    return now - (monotonic_seconds() - int(text) / 1e6)


def monotonic_seconds():
    # type: () -> float
    """Return the clock of systemd's ...Monotonic properties. Python 2.7 has no clock_gettime."""
    if hasattr(time, 'clock_gettime'):
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    with open('/proc/uptime', 'rb') as stream:
        return float(stream.read().split()[0])


class Service(Kind):
    """service:UNIT."""

    words = {'enabled': 'enabled', 'masked': 'masked', 'drop_ins': 'drop_ins'}
    only_declared = ('state', 'enabled')
    in_passing = ('masked', 'drop_ins')
    state_is_presence = False
    comes_back = True

    def observe(self, entries, survey):
        # type: (list[Attributes], Survey) -> dict[str, Attributes | Unreadable]
        names = {name_of(entry['resource']) for entry in entries}
        answers = observe_units({name: state for name, state in survey.units.items() if name in names}, survey.node)
        return {'service:' + name: answer for name, answer in answers.items()}

    def differing(self, recorded, declared, seen):
        # type: (Attributes, Attributes, Attributes) -> list[Difference]
        as_masked = seen.get('masked') == declared.get('masked', recorded.get('masked', seen.get('masked')))
        out = self.attributes(recorded, declared, seen, () if as_masked else ('enabled', 'fragment'))
        if 'state' in declared and declared['state'] in ('started', 'stopped') and seen['state'] != declared['state']:
            out.append(('state', 'state', declared['state'], seen['state'], ''))
        return out

    def as_declared(self, name, wanted, is_now):
        # type: (str, Any, Any) -> bool
        if name == 'enabled' and is_text(is_now):
            return True  # static and the like: nobody can enable it
        return Kind.as_declared(self, name, wanted, is_now)

    def older(self, name, then, is_now, changed, managed):
        # type: (str, Any, Any, bool, Collection[str]) -> Any
        if name == 'drop_ins' and is_now is not None:
            mine = [drop_in for drop_in in is_now if _path_of(drop_in) in managed]  # files with entries of their own
            return sorted(mine + [drop_in for drop_in in then if _path_of(drop_in) not in managed])
        if name == 'fragment' and is_now is not None:
            files = {'file:' + then, 'file:' + is_now}
            if files & set(managed) or (then.startswith(VENDOR) and is_now.startswith(VENDOR)):
                return is_now
        return then


def _path_of(drop_in):
    # type: (str) -> str
    return 'file:' + drop_in.partition(' ')[0]
