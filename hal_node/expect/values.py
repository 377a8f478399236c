# -*- coding: utf-8 -*-
"""What was read from a node, and when two values are the same.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re
from decimal import Decimal

MYPY = False
if MYPY:
    from typing import Any, Iterable  # noqa: F401  in comments

__metaclass__ = type

try:
    TEXT_TYPES = (unicode, bytes)  # type: ignore[name-defined]  # Python 2 has both
    INTEGERS = (int, long)  # type: ignore[name-defined]
except NameError:
    TEXT_TYPES = (str, bytes)
    INTEGERS = (int,)  # type: ignore[assignment]

TRUE_WORDS = frozenset(('true', 'yes', 'on'))
FALSE_WORDS = frozenset(('false', 'no', 'off'))
PLAIN_NUMBER = re.compile(r'[+-]?[0-9]+(\.[0-9]+)?\Z')
MOST_TEXT = 400  # characters of an observed value that a report shows
MOST_ITEMS = 20


class Unreadable(Exception):
    """The value could not be read, so nothing is known. `detail` may quote content: it is not shown of a secret."""

    def __init__(self, reason, detail=''):
        # type: (str, str) -> None
        Exception.__init__(self, reason)
        self.reason = reason
        self.detail = detail


class Reading:
    """One thing as it is on the node.

    exists      whether the thing is there
    value       what `equal` compares: text, number, boolean, list or dict; only meaningful if has_value
    has_value   false when a value was asked of something that is not there
    items       what `contain`, `match` and `count` look at, or None when the thing cannot have any
    also        other spellings of the value (a uid beside the user's name)
    scale       'number', 'version' or 'mode': how values compare beyond being equal
    note        a few words for the report: why there is no value, or what is behind a value that differs
    """

    FIELDS = ('exists', 'value', 'has_value', 'items', 'also', 'scale', 'note')

    def __init__(self, exists=True, value=None, has_value=True, items=None, also=(), scale='number', note=''):
        # type: (bool, Any, bool, list[Any] | None, Iterable[Any], str, str) -> None
        self.exists = exists
        self.value = value
        self.has_value = has_value
        self.items = items  # type: Any  # judge() asks first whether there are any
        self.also = list(also)
        self.scale = scale
        self.note = note

    def as_dict(self):
        # type: () -> dict[str, Any]
        return {name: getattr(self, name) for name in self.FIELDS}


def present(value, items=None, **more):
    # type: (Any, list[Any] | None, **Any) -> Reading
    """Reading of something that is there. Without `items` a list has its own and anything else is its only item."""
    if items is None:
        items = value if isinstance(value, list) else [value]
    return Reading(value=value, items=items, **more)


def missing(note, value=None):
    # type: (str, Any) -> Reading
    """Reading of something that is not there; with `value` (a state such as "not installed") it still has one."""
    if value is None:
        return Reading(exists=False, has_value=False, note=note)
    return Reading(exists=False, value=value, items=[value], note=note)


def to_text(value):
    # type: (Any) -> Any
    """Return `value` with every byte string in it decoded; bytes that are not UTF-8 become U+FFFD."""
    if isinstance(value, bytes):
        return value.decode('utf-8', 'replace')
    if isinstance(value, dict):
        return {to_text(key): to_text(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_text(item) for item in value]
    return value


def to_bytes(text):
    # type: (str | bytes) -> bytes
    """Return a path or an argument in UTF-8: Python before 3.7 would encode it as the locale says, and fail in C."""
    return text if isinstance(text, bytes) else text.encode('utf-8')


def is_text(value):
    # type: (object) -> bool
    return isinstance(value, TEXT_TYPES)


def squeeze(text):
    # type: (str | bytes) -> str
    """Return text with runs of blanks as one, none at line ends, no blank lines at either end."""
    lines = [' '.join(line.split()) for line in to_text(text).splitlines()]
    return '\n'.join(lines).strip('\n')


def lines_of(text):
    # type: (str | bytes) -> list[str]
    """Return the lines of `text` that are not blank, without blanks at their ends."""
    return [line.rstrip() for line in to_text(text).splitlines() if line.strip()]


def as_flag(value):
    # type: (object) -> bool | None
    """Return True or False for a boolean or a word for one, else None. 1 and 0 are numbers, not booleans."""
    if isinstance(value, bool):
        return value
    if is_text(value):
        word = to_text(value).strip().lower()
        if word in TRUE_WORDS:
            return True
        if word in FALSE_WORDS:
            return False
    return None


def as_number(value):
    # type: (object) -> Decimal | None
    """Return a Decimal for a number or a plain decimal text, else None. "0x10", "1e3", "1_000", True: None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, INTEGERS):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value))
    if is_text(value) and PLAIN_NUMBER.match(to_text(value).strip()):
        return Decimal(to_text(value).strip())
    return None


def same(wanted, seen):
    # type: (Any, Any) -> bool
    """Say whether two values are the same whole value.

    Words for booleans equal each other and booleans; a number equals a text that is that number; two texts are equal
    after runs of blanks became one ("1.10" is not "1.1": as texts they may be versions); lists in order; dicts by key.
    """
    if isinstance(wanted, dict) or isinstance(seen, dict):
        return (isinstance(wanted, dict) and isinstance(seen, dict) and set(wanted) == set(seen)
                and all(same(wanted[key], seen[key]) for key in wanted))
    if isinstance(wanted, list) or isinstance(seen, list):
        return (isinstance(wanted, list) and isinstance(seen, list) and len(wanted) == len(seen)
                and all(same(*pair) for pair in zip(wanted, seen)))
    if wanted is None or seen is None:
        return wanted is seen
    flags = as_flag(wanted), as_flag(seen)
    if flags[0] is not None or flags[1] is not None:
        return flags[0] is flags[1]
    if not (is_text(wanted) and is_text(seen)):
        numbers = as_number(wanted), as_number(seen)
        return numbers[0] is not None and numbers[0] == numbers[1]
    return squeeze(wanted) == squeeze(seen)


def compare_versions(version, other):
    # type: (str | bytes, str | bytes) -> int
    """Return -1, 0 or 1 in rpm's order of versions (rpmvercmp: `~` sorts before the end, `^` after it)."""
    part = re.compile(r'[0-9]+|[a-zA-Z]+|~|\^')
    left, right = part.findall(to_text(version)), part.findall(to_text(other))
    for position in range(max(len(left), len(right))):
        a = left[position] if position < len(left) else ''
        b = right[position] if position < len(right) else ''
        if a == b:
            continue
        if '~' in (a, b):
            return -1 if a == '~' else 1
        if '^' in (a, b):
            caret, rest = (-1, b) if a == '^' else (1, a)
            return caret if rest else -caret
        if not a or not b:
            return -1 if not a else 1
        if a.isdigit() != b.isdigit():
            return 1 if a.isdigit() else -1
        if a.isdigit() and int(a) != int(b):
            return -1 if int(a) < int(b) else 1
        if not a.isdigit():
            return -1 if a < b else 1
    return 0


def shown(value):
    # type: (Any) -> Any
    """Return `value` cut to what a report can carry; what was cut is said."""
    if isinstance(value, list):
        short = [shown(item) for item in value[:MOST_ITEMS]]
        if len(value) > MOST_ITEMS:
            short.append('... %d more' % (len(value) - MOST_ITEMS))
        return short
    if isinstance(value, dict):
        keys = sorted(value)
        kept = {key: shown(value[key]) for key in keys[:MOST_ITEMS]}
        if len(keys) > MOST_ITEMS:
            kept['...'] = '%d more' % (len(keys) - MOST_ITEMS)
        return kept
    if is_text(value):
        value = to_text(value)
        if len(value) > MOST_TEXT:
            return value[:MOST_TEXT] + '... %d characters more' % (len(value) - MOST_TEXT)
    return value
