# -*- coding: utf-8 -*-
"""Whether a reading is what was expected. Pure functions; what cannot be decided raises Unreadable.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from .values import (
    Unreadable, as_flag, as_number, compare_versions, is_text, same, squeeze, to_text)

MYPY = False
if MYPY:
    from decimal import Decimal  # noqa: F401  in comments
    from typing import Any, Pattern  # noqa: F401  in comments
    from .values import Reading  # noqa: F401  in comments

__metaclass__ = type


def judge(reading, matcher, wanted):
    # type: (Reading, str, Any) -> str
    """Return '' when the reading is what was expected, else a sentence that says in what it differs.

    Raises Unreadable when the matcher cannot decide: a wanted value of the wrong kind, a broken regular expression.
    """
    if matcher not in JUDGES:
        raise Unreadable('there is no matcher "%s"; use one of %s' % (matcher, ', '.join(sorted(JUDGES))))
    if wanted is None:
        raise Unreadable('%s is empty: the variable behind it has no value' % matcher)
    wanted = to_text(wanted)
    if matcher != 'absent':
        if matcher == 'count':
            if reading.items is None:
                return reading.note
        elif not reading.has_value:
            return reading.note
    complaint = JUDGES[matcher](reading, wanted)
    return complaint and (reading.note or complaint)


def regex(pattern):
    # type: (Any) -> Pattern[str]
    """Return a compiled pattern that has to match a whole line."""
    if not is_text(pattern):
        raise Unreadable('a regular expression has to be a text')
    flags = ''.join(re.findall(r'\A\(\?[imsux]+\)', pattern))  # (?i) has to stay in front
    try:
        return re.compile(flags + '(?:' + pattern[len(flags):] + r')\Z', re.UNICODE)
    except (re.error, OverflowError, RuntimeError) as error:
        raise Unreadable('not a regular expression: %s' % error)


def _equals(reading, wanted):
    # type: (Reading, Any) -> bool
    if reading.scale == 'mode':
        return _same_mode(wanted, reading.value)
    if isinstance(wanted, list) and not isinstance(reading.value, list):
        seen = reading.items
    elif isinstance(reading.value, list) and not isinstance(wanted, (list, dict)) and len(reading.value) == 1:
        seen = reading.value[0]
    else:
        seen = reading.value
    return same(wanted, seen) or any(same(wanted, other) for other in reading.also)


def _same_mode(wanted, seen):
    # type: (Any, Any) -> bool
    """Compare file modes. A bare YAML number is refused: 0644 without quotes is 420, and nobody can tell."""
    if not is_text(wanted) or not re.match(r'[0-7]{3,5}\Z', wanted):
        raise Unreadable('a file mode is three or four octal digits in quotes: "0644"')
    return int(wanted, 8) == int(seen, 8)


def _as_list(wanted):
    # type: (Any) -> list[Any]
    return wanted if isinstance(wanted, list) else [wanted]


def _number_wanted(wanted, matcher):
    # type: (object, str) -> Decimal
    number = as_number(wanted)
    if number is None:
        raise Unreadable('%s has to be a number' % matcher)
    return number


def equal(reading, wanted):
    # type: (Reading, Any) -> str
    return '' if _equals(reading, wanted) else 'differs'


def one_of(reading, wanted):
    # type: (Reading, Any) -> str
    if not isinstance(wanted, list) or not wanted:
        raise Unreadable('one_of has to be a list that is not empty')
    return '' if any(_equals(reading, choice) for choice in wanted) else 'is not one of them'


def contain(reading, wanted):
    # type: (Reading, Any) -> str
    """Every wanted item is, whole, one of the items."""
    wanted = _as_list(wanted)
    if not wanted:
        raise Unreadable('contain is an empty list: nothing would be checked')
    lacking = [item for item in wanted if not any(same(item, seen) for seen in reading.items)]
    return 'lacks %s' % _quoted(lacking) if lacking else ''


def match(reading, wanted):
    # type: (Reading, Any) -> str
    """Every wanted pattern matches at least one whole item."""
    wanted = _as_list(wanted)
    if not wanted:
        raise Unreadable('match is an empty list: nothing would be checked')
    texts = [_line(item) for item in reading.items]
    lacking = []
    for pattern in wanted:
        compiled = regex(pattern)
        if not any(compiled.match(text) for text in texts):
            lacking.append(pattern)
    return 'nothing matches %s' % _quoted(lacking) if lacking else ''


def count(reading, wanted):
    # type: (Reading, Any) -> str
    seen = len(reading.items)
    if isinstance(wanted, dict):
        if not wanted or set(wanted) - {'at_least', 'at_most'}:
            raise Unreadable('count is a number, or {at_least: n, at_most: m}')
        low = _number_wanted(wanted.get('at_least', 0), 'count: at_least')
        high = _number_wanted(wanted.get('at_most', seen), 'count: at_most')
        return '' if low <= seen <= high else 'there are %d' % seen
    return '' if _number_wanted(wanted, 'count') == seen else 'there are %d' % seen


def at_least(reading, wanted):
    # type: (Reading, Any) -> str
    return _ordered(reading, wanted, 'at_least', 1, 'is less')


def at_most(reading, wanted):
    # type: (Reading, Any) -> str
    return _ordered(reading, wanted, 'at_most', -1, 'is more')


def absent(reading, wanted):
    # type: (Reading, Any) -> str
    flag = as_flag(wanted)
    if flag is None:
        raise Unreadable('absent has to be true or false')
    if reading.exists:
        return 'is there' if flag else ''
    return '' if flag else (reading.note or 'is not there')


def _ordered(reading, wanted, matcher, sign, complaint):
    # type: (Reading, Any, str, int, str) -> str
    """Compare by size. Of a list (several installed versions) each has to hold."""
    values = reading.value if isinstance(reading.value, list) else [reading.value]
    if not values:
        return 'there is nothing to compare'
    if reading.scale == 'version':
        if not is_text(wanted):
            raise Unreadable('%s compares versions here: write it in quotes (without them 22.10 is 22.1)' % matcher)
        ways = [_version_order(seen, wanted) for seen in values]
    else:
        goal = _number_wanted(wanted, matcher)
        numbers = [number for number in map(as_number, values) if number is not None]
        if len(numbers) < len(values):
            return 'is not a number'
        ways = [(number > goal) - (number < goal) for number in numbers]
    return '' if all(way == 0 or way == sign for way in ways) else complaint


def _version_order(seen, wanted):
    # type: (str, str) -> int
    """Compare version first, then release if the wanted one has any."""
    parts, goal = squeeze(seen).split('-', 1), squeeze(wanted).split('-', 1)
    for left, right in zip(parts, goal):
        order = compare_versions(left, right)
        if order:
            return order
    return len(parts) - len(goal) if len(goal) > len(parts) else 0


def _line(item):
    # type: (object) -> str
    """Return the text that a pattern looks at. Booleans are true and false, as in YAML."""
    if isinstance(item, bool):
        return 'true' if item else 'false'
    return '%s' % (to_text(item).strip() if is_text(item) else item,)


def _quoted(items):
    # type: (list[Any]) -> str
    names = ', '.join('"%s"' % _line(item) for item in items[:5])
    return names + (' and %d more' % (len(items) - 5) if len(items) > 5 else '')


JUDGES = {
    'equal': equal, 'contain': contain, 'match': match, 'count': count,
    'at_least': at_least, 'at_most': at_most, 'one_of': one_of, 'absent': absent,
}
