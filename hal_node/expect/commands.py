# -*- coding: utf-8 -*-
"""Reader `command`: what a program prints, or its exit status.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import json

from .files import text_reading
from .process import run
from .values import Reading, Unreadable, as_flag, as_number, present, to_text

MYPY = False
if MYPY:
    from decimal import Decimal  # noqa: F401  in comments
    from typing import Any  # noqa: F401  in comments

__metaclass__ = type

DEFAULT_TIMEOUT_SECONDS = 20


def read_commands(requests):
    # type: (list[dict[str, Any]]) -> list[Reading | Unreadable]
    """Return a Reading or Unreadable for each request, in order. Equal commands run once."""
    outcomes = {}  # type: dict[tuple[tuple[str, ...], Decimal], tuple[int, str, str] | Unreadable]
    results = []  # type: list[Reading | Unreadable]
    for request in requests:
        try:
            results.append(_read(request, outcomes))
        except Unreadable as error:
            results.append(error)
    return results


def _read(request, outcomes):
    # type: (dict[str, Any], dict[tuple[tuple[str, ...], Decimal], tuple[int, str, str] | Unreadable]) -> Reading
    argv = request['argv']
    if not isinstance(argv, list) or not argv:
        raise Unreadable('argv has to be a list that is not empty: program, then arguments')
    argv = ['%s' % (word,) for word in argv]
    timeout = as_number(request.get('timeout_seconds', DEFAULT_TIMEOUT_SECONDS))
    if timeout is None or timeout <= 0:
        raise Unreadable('timeout_seconds has to be a number above 0')
    key = (tuple(argv), timeout)
    if key not in outcomes:
        try:
            outcomes[key] = run(argv, float(timeout))
        except Unreadable as error:
            outcomes[key] = error
    outcome = outcomes[key]
    if isinstance(outcome, Unreadable):
        raise outcome
    return interpret(request, argv[0], *outcome)


def interpret(request, name, status, out, err):
    # type: (dict[str, Any], str, int, str, str) -> Reading
    """Return the Reading of a finished command. Pure."""
    if _flag(request, 'exit'):
        return present(status)
    accepted = request.get('accept_exit', [0])
    accepted = accepted if isinstance(accepted, list) else [accepted]
    if not any(as_number(code) == status for code in accepted):
        words = ' '.join((err.strip() or out.strip()).split())
        raise Unreadable('%s ended with status %d' % (name, status), words[:200])
    text = out.rstrip('\n')
    if _flag(request, 'json') or request.get('key'):
        return _json_reading(text, request.get('key'), name)
    reading = text_reading(text, request.get('select'), 'the output of ' + name, _flag(request, 'lines'))
    if reading.exists and not text.strip():
        return Reading(exists=False, value=reading.value, items=[], note='%s printed nothing' % name)
    return reading


def _json_reading(text, key, name):
    # type: (str, str | None, str) -> Reading
    try:
        value = to_text(json.loads(text))
    except ValueError as error:
        raise Unreadable('%s did not print JSON' % name, '%s' % error)
    for step in (key or '').split('.') if key else ():
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return Reading(exists=False, has_value=False, note='the output of %s has no "%s"' % (name, key))
    if value is None:
        return Reading(exists=False, has_value=False, note='"%s" in the output of %s is null' % (key or '.', name))
    if isinstance(value, dict):
        return present(value, sorted(value))
    return present(value)


def _flag(request, name):
    # type: (dict[str, Any], str) -> bool
    value = as_flag(request.get(name, False))
    if value is None:
        raise Unreadable('%s has to be true or false' % name)
    return value
