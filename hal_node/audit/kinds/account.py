# -*- coding: utf-8 -*-
"""Users and groups: lines of two tables, each read once.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import grp
import pwd
import re

from .kind import Kind
from ...expect.process import read_guarded
from ...expect.values import Unreadable, is_text, present, to_text

MYPY = False
if MYPY:
    from typing import Any, Callable  # noqa: F401  in comments
    from .kind import Attributes  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

ID = re.compile(r'[0-9]{1,10}\Z')  # isdigit() takes what int() does not
ZERO = re.compile(r'\s*[+-]?0+\Z')  # as strtoul(3) reads it, by which the C library reads /etc/passwd


class Accounts:
    """/etc/passwd and /etc/group. Whom they do not have the system is asked for: LDAP may."""

    def __init__(self, node):
        # type: (Node) -> None
        self.node = node
        self.passwd = _there(node, '/etc/passwd')
        self.users = {fields[0]: fields for fields in table(self.passwd, 7)}
        self.groups = {fields[0]: fields for fields in table(_there(node, '/etc/group'), 4)}
        self.names = {}  # type: dict[str, str]
        for fields in self.groups.values():
            self.names.setdefault(fields[2], fields[0])

    def user(self, name):
        # type: (str) -> Attributes
        fields = self.users.get(name) or self._ask(_user_of, name)
        if not fields:
            return {'state': 'absent'}
        groups = sorted(group for group, line in self.groups.items() if name in line[3].split(','))
        return {'state': 'present', 'uid': int(fields[2]), 'group': self.names.get(fields[3], fields[3]),
                'home': fields[5], 'shell': fields[6], 'groups': groups}

    def group(self, name):
        # type: (str) -> Attributes
        fields = self.groups.get(name) or self._ask(_group_of, name)
        return {'state': 'present', 'gid': int(fields[2])} if fields else {'state': 'absent'}

    def _ask(self, read, name):
        # type: (Callable[[str], list[str] | None], str) -> list[str] | None
        if self.node.root != '/':
            return None
        answer = read_guarded(lambda key: present(read(key)), [name])[0]
        if isinstance(answer, Unreadable):
            raise answer
        return answer.value  # type: ignore[no-any-return]  # what it reads

    def with_uid_0(self):
        # type: () -> list[str]
        """Return the names of lines that the C library takes for root's: of those with four fields or more."""
        lines = [line.lstrip().split(':') for line in self.passwd.split('\n')]
        return sorted({fields[0] for fields in lines
                       if len(fields) > 3 and ZERO.match(fields[2]) and not fields[0].startswith('#')})


def _there(node, path):
    # type: (Node, str) -> str
    text = node.text(path)
    if text is None:
        raise Unreadable('there is no %s' % path)
    return text


def table(text, width):
    # type: (str, int) -> list[list[str]]
    """Return the lines of a table like /etc/passwd that are whole; the first of a name counts. Pure."""
    rows, seen = [], set()
    for line in text.split('\n'):  # splitlines() ends a line where the C library does not
        fields = line.split(':')
        if len(fields) == width and ID.match(fields[2]) and fields[0] not in seen:
            seen.add(fields[0])
            rows.append(fields)
    return rows


def _user_of(name):
    # type: (str) -> list[str] | None
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return [to_text(field) for field in (entry[0], '', '%d' % entry[2], '%d' % entry[3], '', entry[5], entry[6])]


def _group_of(name):
    # type: (str) -> list[str] | None
    try:
        entry = grp.getgrnam(name)
    except KeyError:
        return None
    return [to_text(field) for field in (entry[0], '', '%d' % entry[2], '')]


class User(Kind):
    """user:NAME."""

    words = {'group': 'owner'}
    only_declared = ('groups',)

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        accounts = survey.accounts.get()  # type: Accounts
        return accounts.user(name)

    def as_declared(self, name, wanted, is_now):
        # type: (str, Any, Any) -> bool
        if name == 'groups':
            return sorted(wanted) == sorted(is_now or [])
        if name == 'group' and is_text(wanted) and wanted.isdigit():
            return True  # by number: what was recorded is compared
        return Kind.as_declared(self, name, wanted, is_now)


class Group(Kind):
    """group:NAME."""

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        accounts = survey.accounts.get()  # type: Accounts
        return accounts.group(name)
