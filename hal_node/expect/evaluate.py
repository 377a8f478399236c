# -*- coding: utf-8 -*-
"""Evaluate expectations: read everything in one pass, then judge each entry.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .commands import read_commands
from .files import read_files
from .kernel import read_modules, read_sysctls
from .matchers import judge
from .mounts import read_mounts
from .packages import read_packages
from .ports import read_ports
from .services import read_services
from .values import Unreadable, as_flag, is_text, shown, to_text
from .vocabulary import FLAG, MATCHERS, READERS, TEXT

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .values import Reading  # noqa: F401  in comments

__metaclass__ = type

READ = {
    'file': read_files, 'command': read_commands, 'package': read_packages, 'service': read_services,
    'sysctl': read_sysctls, 'mount': read_mounts, 'kernel-module': read_modules, 'port': read_ports,
}
SECRET = '(secret)'


def evaluate(entries):
    # type: (list[dict[str, Any]]) -> list[dict[str, Any]]
    """Return [{status, observed, reason}] for [{reader: {...}, matcher: wanted, secret: bool}], in the same order.

    status is pass, fail or unknown. Never raises for what an entry says: such an entry is unknown.
    """
    entries = to_text(entries)
    readings = _read_all(entries)
    return [_result(entry, reading) for entry, reading in zip(entries, readings)]


def _read_all(entries):
    # type: (list[dict[str, Any]]) -> list[Reading | Unreadable]
    readings = [None] * len(entries)  # type: list[Any]
    by_reader = {}  # type: dict[str, list[int]]
    for position, entry in enumerate(entries):
        try:
            by_reader.setdefault(_reader_of(entry), []).append(position)
        except Unreadable as error:
            readings[position] = error
    for reader, positions in sorted(by_reader.items()):
        requests = [entries[position][reader] for position in positions]
        try:
            answers = READ[reader](requests)
        except Exception as error:  # noqa: B902 - a reader's own fault must not take the others' results away
            fault = Unreadable('the reader "%s" failed: %s: %s' % (reader, type(error).__name__, error))
            answers = [fault] * len(requests)
        for position, answer in zip(positions, answers):
            readings[position] = answer
    return readings


def _reader_of(entry):
    # type: (dict[str, Any]) -> str
    """Return the name of the entry's reader after checking that it can be asked. Raises Unreadable."""
    known = [name for name in entry if name in READERS]
    if len(known) != 1:
        raise Unreadable('an entry has exactly one reader (%s), this one has %s' % (
            ', '.join(sorted(READERS)), ' and '.join(sorted(known)) or 'none'))
    request, fields = entry[known[0]], READERS[known[0]]
    if not isinstance(request, dict):
        raise Unreadable('%s has to be a mapping' % known[0])
    for name in sorted(set(request) - set(fields)):
        raise Unreadable('%s has no field "%s"; it has %s' % (known[0], name, ', '.join(sorted(fields))))
    for name, (kind, allowed, required) in sorted(fields.items()):
        value = request.get(name)
        if value is None or value == '':
            if required or name in request:
                raise Unreadable('%s needs %s' % (known[0], name))
            continue
        if kind == TEXT and not is_text(value):
            raise Unreadable('%s: %s has to be a text' % (known[0], name))
        if kind == FLAG and as_flag(value) is None:
            raise Unreadable('%s: %s has to be true or false' % (known[0], name))
        if allowed and value not in allowed:
            raise Unreadable('%s: %s has to be one of %s' % (known[0], name, ', '.join(allowed)))
    return known[0]


def _result(entry, reading):
    # type: (dict[str, Any], Reading | Unreadable) -> dict[str, Any]
    secret = as_flag(entry.get('secret', False)) is not False
    observed, reason, status = None, '', 'unknown'
    try:
        if isinstance(reading, Unreadable):
            raise reading
        matchers = [name for name in entry if name in MATCHERS]
        if len(matchers) != 1:
            raise Unreadable('an entry has exactly one matcher (%s), this one has %s' % (
                ', '.join(sorted(MATCHERS)), ' and '.join(sorted(matchers)) or 'none'))
        observed = _observed(reading)
        reason = judge(reading, matchers[0], entry[matchers[0]])
        status = 'fail' if reason else 'pass'
        if secret and reading.has_value:
            reason = 'differs' if reason else ''
    except Unreadable as error:
        reason = error.reason if secret or not error.detail else '%s: %s' % (error.reason, error.detail)
    except Exception as error:  # noqa: B902 - one entry is unknown, the others keep their results
        reason = 'cannot be judged: %s' % (type(error).__name__ if secret else error)
    return {'status': status, 'observed': SECRET if secret else observed, 'reason': reason}


def _observed(reading):
    # type: (Reading) -> Any
    return shown(reading.value) if reading.has_value else (shown(reading.items) or None)
