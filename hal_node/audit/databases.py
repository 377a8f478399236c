# -*- coding: utf-8 -*-
"""The user databases by their entries: what each says, never a password or its hash.

passwd(5), group(5), shadow(5), gshadow(5). Standard library only, Python 2.7 and 3.6 or later: this file is shipped to
nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from .kinds.account import ID
from .secrets import keyed

MYPY = False
if MYPY:
    from .node import Node  # noqa: F401

__metaclass__ = type

PASSWD, GROUP, SHADOW, GSHADOW = '/etc/passwd', '/etc/group', '/etc/shadow', '/etc/gshadow'
WIDTHS = {PASSWD: 7, GROUP: 4, SHADOW: 9, GSHADOW: 4}
#: Whose users are people: SYS_UID_MAX of login.defs and above. A person's password is that person's to change.
FIRST_PERSON = 1000
DIGITS = 16
ANOTHER = 'another password'
SET, LOCKED = 'password set', 'no password fits'
#: What a package's script makes: an id of the system's, a password that nobody can give, nobody as a member. Not in the
#: groups root, disk (6) and wheel (10), who become root.
OF_PACKAGES = re.compile(
    r'(?:uid [1-9]\d{0,2}, gid (?!(?:6|10),)[1-9]\d{0,2}, home \S*, shell \S*|gid [1-9]\d{0,2}, members none|'
    r'no password fits(?:, administrators none, members none)?)\Z')


def read_databases(node, key):
    # type: (Node, bytes) -> dict[str, dict[str, str]]
    """Return {path: {name: words}} of the databases that are there. Raises Unreadable."""
    texts = {path: node.text(path) for path in WIDTHS}
    people = {fields[0] for fields in _rows(texts[PASSWD] or '', 7)
              if len(fields) == 7 and ID.match(fields[2]) and int(fields[2]) >= FIRST_PERSON}
    return {path: entries(path, text, key, people) for path, text in texts.items() if text is not None}


def entries(path, text, key, people):
    # type: (str, str, bytes, set[str]) -> dict[str, str]
    """Return {name: words} of a database. Pure. A name that is there again is `name (2)`: who reads takes the first."""
    out, seen = {}, {}  # type: tuple[dict[str, str], dict[str, int]]
    for fields in _rows(text, WIDTHS[path]):
        seen[fields[0]] = seen.get(fields[0], 0) + 1
        name = fields[0] if seen[fields[0]] == 1 else '%s (%d)' % (fields[0], seen[fields[0]])
        out[name] = _words(path, fields, key, people) if len(fields) == WIDTHS[path] else 'not an entry'
    return out


def _rows(text, width):
    # type: (str, int) -> list[list[str]]
    return [line.split(':', width) for line in text.split('\n') if line.strip() and not line.startswith('#')]


def _words(path, fields, key, people):
    # type: (str, list[str], bytes, set[str]) -> str
    if path == PASSWD:
        state = '' if fields[1] == 'x' else ', ' + _password(fields[1])
        return 'uid %s, gid %s, home %s, shell %s%s' % (fields[2], fields[3], fields[5], fields[6], state)
    if path == GROUP:
        state = '' if fields[1] in ('x', '*', '!') else ', ' + _password(fields[1])
        return 'gid %s, members %s%s' % (fields[2], _names(fields[3]), state)
    words = _password(fields[1])
    if words == SET and fields[0] not in people:
        words += ' ' + (keyed(key, fields[1])[:DIGITS] if key else '?')
    if path == SHADOW:
        return words + (', expires on day %s' % fields[7] if fields[7] else '')
    return '%s, administrators %s, members %s' % (words, _names(fields[2]), _names(fields[3]))


def _password(field):
    # type: (str) -> str
    return 'no password is asked' if not field else LOCKED if field[0] in '!*' else SET


def _names(field):
    # type: (str) -> str
    return ' '.join(sorted(name for name in field.split(',') if name)) or 'none'


def differing(kept, seen, hashes=True):
    # type: (dict[str, str], dict[str, str], bool) -> tuple[list[str], list[str]]
    """Return ([what was kept], [what is there]) as lines for people, of entries that are not the same. Pure.

    hashes  whether those of passwords are of the same key
    """
    should, are = [], []
    for name in sorted(set(kept) | set(seen)):
        then, is_now = kept.get(name), seen.get(name)
        if then == is_now or (not hashes and then and is_now and _shown(then) == _shown(is_now)):
            continue
        if then is not None:
            should.append('%s: %s' % (name, _shown(then)))
        if is_now is not None:
            same = then is not None and _shown(then) == _shown(is_now)
            are.append('%s: %s' % (name, ANOTHER if same else _shown(is_now)))
    return should, are


def _shown(words):
    # type: (str) -> str
    """Return the words of an entry without the hash that is in them."""
    head, had, rest = words.partition(SET + ' ')
    _hash, comma, more = rest.partition(',')
    return head + SET + comma + more if had else words


def taken_over(kept, seen, users, groups, packages):
    # type: (dict[str, str], dict[str, str], set[str], set[str], bool) -> dict[str, str]
    """Return what to keep of a database after a run that made or changed these users and groups. Pure.

    Their own entries are as the run left them, and so are entries in which only they came or went as members.

    packages  whether packages came, and the run made the last change: then new entries as packages make them are theirs
    """
    out = dict(kept)
    for name in set(kept) | set(seen):
        then, is_now = kept.get(name), seen.get(name)
        if name in users or name in groups or (
                packages and then is None and OF_PACKAGES.match(is_now or '')) or (
                then and is_now and _without_members(then) == _without_members(is_now)
                and _members(then) ^ _members(is_now) <= set(users)):
            out.pop(name, None)
            if is_now is not None:
                out[name] = is_now
    return out


def _members(words):
    # type: (str) -> set[str]
    return set(words.partition('members ')[2].partition(',')[0].split()) - {'none'}


def _without_members(words):
    # type: (str) -> str
    head, members, rest = words.partition('members ')
    return head + members + rest.partition(',')[2]
