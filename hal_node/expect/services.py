# -*- coding: utf-8 -*-
"""Reader `service`: the state of systemd units, one `systemctl show` for all.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from .process import run
from .values import Unreadable, missing, present
from .vocabulary import SERVICE_READS

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .values import Reading  # noqa: F401  in comments

__metaclass__ = type

STATES = {'active': 'ActiveState', 'substate': 'SubState', 'load': 'LoadState', 'unit_file': 'UnitFileState'}
BASE = ('Id', 'LoadState', 'ActiveState', 'SubState', 'UnitFileState')
#: Unit files in these states start at boot. "static" and "indirect" ones only if something else asks for them, and
#: what is enabled "-runtime" is forgotten at the next boot.
ENABLED = ('enabled', 'alias', 'generated')
UNIT = re.compile(r'[A-Za-z0-9:_.@\\-]+\Z')
SUFFIX = re.compile(r'.*\.(service|socket|target|timer|mount|automount|path|slice|scope|device|swap)\Z')
PROPERTY = re.compile(r'[A-Z][A-Za-z0-9]*\Z')
TIMEOUT_SECONDS = 30


def read_services(requests):
    # type: (list[dict[str, Any]]) -> list[Reading | Unreadable]
    """Return a Reading or Unreadable for each request, in order."""
    results = [None] * len(requests)  # type: list[Any]
    units, properties = [], set(BASE)
    for position, request in enumerate(requests):
        what = request.get('read') or 'running'
        if not UNIT.match(request['name']) or request['name'].startswith('-'):
            results[position] = Unreadable('not a unit name: "%s"' % request['name'])
        elif what not in SERVICE_READS and not PROPERTY.match(what):
            results[position] = Unreadable('a service has no "%s" to read; use one of %s, or a systemd property' % (
                what, ', '.join(SERVICE_READS)))
        else:
            units.append(unit_name(request['name']))
            if what not in SERVICE_READS:
                properties.add(what)
    units = sorted(set(units))
    shown = _show(units, sorted(properties)) if units else {}
    for position, request in enumerate(requests):
        if results[position] is None:
            state = shown if isinstance(shown, Unreadable) else shown[unit_name(request['name'])]
            try:
                results[position] = reading_of(request['name'], request.get('read') or 'running', state)
            except Unreadable as error:
                results[position] = error
    return results


def unit_name(name):
    # type: (str) -> str
    """Return the name with its suffix, as systemctl completes it."""
    return name if SUFFIX.match(name) else name + '.service'


def _show(units, properties):
    # type: (list[str], list[str]) -> dict[str, dict[str, str]] | Unreadable
    """Return {unit: {property: text}}, or the reason why there is none."""
    try:
        status, out, err = run(['systemctl', 'show', '--property', ','.join(properties), '--'] + units, TIMEOUT_SECONDS)
    except Unreadable as error:
        return error
    blocks = parse(out)
    if len(blocks) != len(units):
        words = ' '.join(err.split())
        return Unreadable('systemctl shows no units (status %d)' % status, words[:200])
    return dict(zip(units, blocks))


def parse(out):
    # type: (str) -> list[dict[str, str]]
    """Return [{property: text}] in the order asked: by order, since the Id of an alias is another name."""
    return [dict(line.split('=', 1) for line in block.splitlines() if '=' in line)
            for block in out.strip('\n').split('\n\n') if block.strip()]


def reading_of(name, what, state):
    # type: (str, str, dict[str, str] | Unreadable) -> Reading
    """Return the Reading of one unit from its {property: text}. Raises Unreadable."""
    if isinstance(state, Unreadable):
        raise state
    load = state.get('LoadState', '')
    if not load:
        raise Unreadable('systemctl did not tell the state of %s' % name)
    if load == 'not-found' and state.get('ActiveState') == 'inactive':
        note = 'there is no unit %s' % name
        if what in ('running', 'enabled', 'masked'):
            return missing(note, False)
        return missing(note)
    if what == 'running':
        running = state.get('ActiveState') == 'active'
        return present(running, note='' if running else '%s is %s (%s)' % (
            name, state.get('ActiveState'), state.get('SubState')))
    if what == 'enabled':
        enabled = state.get('UnitFileState', '') in ENABLED
        return present(enabled, note='' if enabled else 'the unit file of %s is %s' % (
            name, state.get('UnitFileState') or 'not of a kind that can be enabled'))
    if what == 'masked':
        return present(load == 'masked')
    key = STATES.get(what, what)
    if key not in state:
        raise Unreadable('systemd has no property %s for %s' % (key, name))
    return present(state[key])
