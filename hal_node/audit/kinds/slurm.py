# -*- coding: utf-8 -*-
"""Accounting and reservations of Slurm: each asked once.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import time

from .kind import Kind
from ..node import output
from ...expect.values import Unreadable
from ...slurm.accounting import (
    ACCOUNT, ASSOCIATION, AccountingError, COORDINATORS, QOS, USER, columns, coordinators, coordinators_query, normal,
    table)
from ...slurm.conf import SlurmConfError, expand
from ...slurm.reservations import OWN_FLAGS, read as read_reservations

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .kind import Attributes, Difference  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

#: declared key -> key of scontrol
RESERVATION = {'nodes': 'Nodes', 'node_count': 'NodeCnt', 'partition': 'PartitionName', 'users': 'Users',
               'accounts': 'Accounts', 'flags': 'Flags', 'end': 'EndTime'}
RECURRING = {'DAILY', 'WEEKLY', 'WEEKDAY', 'WEEKEND', 'HOURLY'}
KINDS = {key: kind for key, _option, _column, kind in QOS + ASSOCIATION + ACCOUNT + USER}


class Slurm:
    """What sacctmgr and scontrol say; each is asked at most once."""

    def __init__(self, node):
        # type: (Node) -> None
        self.node = node
        self._tables = {}  # type: dict[str, Any]

    def _show(self, what, names):
        # type: (str, list[str]) -> list[dict[str, str]]
        if what not in self._tables:
            try:
                argv = ['sacctmgr', '--noheader', '--parsable2', 'show', what, 'format=' + ','.join(names)]
                self._tables[what] = table(output(argv, self.node), names)
            except AccountingError as error:
                self._tables[what] = Unreadable('%s' % error)
            except Unreadable as error:
                self._tables[what] = error
        rows = self._tables[what]  # type: list[dict[str, str]] | Unreadable
        if isinstance(rows, Unreadable):
            raise rows
        return rows

    def _associations(self):
        # type: () -> list[dict[str, str]]
        return self._show('assoc', columns(ASSOCIATION, ['Account', 'User']))

    def _coordinators(self):
        # type: () -> dict[str, list[str]]
        """Return {account: [names]} of those who coordinate it themselves."""
        if COORDINATORS not in self._tables:
            try:
                self._tables[COORDINATORS] = coordinators(
                    output(coordinators_query(), self.node), self._associations())
            except AccountingError as error:
                self._tables[COORDINATORS] = Unreadable('%s' % error)
            except Unreadable as error:
                self._tables[COORDINATORS] = error
        names = self._tables[COORDINATORS]  # type: dict[str, list[str]] | Unreadable
        if isinstance(names, Unreadable):
            raise names
        return names

    def qos(self, name, _declared=None):
        # type: (str, Attributes | None) -> Attributes
        rows = [row for row in self._show('qos', columns(QOS, ['Name'])) if row['Name'] == name]
        return _attributes(rows[0], QOS) if rows else {'state': 'absent'}

    def account(self, name, declared=None):
        # type: (str, Attributes | None) -> Attributes
        rows = [row for row in self._show('account', columns(ACCOUNT, ['Account'])) if row['Account'] == name]
        if not rows:
            return {'state': 'absent'}
        out = _attributes(rows[0], ACCOUNT)
        for row in self._associations():
            if row['Account'] == name and not row['User']:
                out.update(_attributes(row, ASSOCIATION))
        if COORDINATORS in (declared or {}) and self._coordinators().get(name):
            out[COORDINATORS] = self._coordinators()[name]
        return out

    def user(self, name, declared=None):
        # type: (str, Attributes | None) -> Attributes
        """A user has limits in each account: where one is not as declared, that one counts."""
        rows = [row for row in self._show('user', columns(USER, ['User'])) if row['User'] == name]
        if not rows:
            return {'state': 'absent'}
        out = _attributes(rows[0], USER)
        mine = [row for row in self._associations() if row['User'] == name]
        for key, _option, column, _kind in ASSOCIATION:
            values = [row.get(column) or None for row in mine]
            other = [limit for limit in values if not _is_so(key, declared or {}, limit)]
            value = other[0] if other else next((limit for limit in values if limit), None)
            if value and key != 'parent':
                out[key] = value
        out['accounts'] = sorted(row['Account'] for row in mine)
        return out

    def reservation(self, name, _declared=None):
        # type: (str, Attributes | None) -> Attributes
        if 'reservation' not in self._tables:
            try:
                text = output(['scontrol', 'show', 'reservation', '--oneliner'], self.node)
                self._tables['reservation'] = read_reservations(text)
            except Unreadable as error:
                self._tables['reservation'] = error
        rows = self._tables['reservation']
        if isinstance(rows, Unreadable):
            raise rows
        row = rows.get(name)
        if row is None:
            return {'state': 'absent'}
        out = {'state': 'present'}  # type: Attributes
        flags = sorted(set(row.get('Flags', '').split(',')) - OWN_FLAGS - {''})
        for key, column in RESERVATION.items():
            value = row.get(column, '')  # type: Any
            if key == 'end' and RECURRING & set(flags):
                continue
            if value and key in ('users', 'accounts'):
                value = sorted(value.split(','))
            if value:
                out[key] = flags if key == 'flags' else value
        return out


def _is_so(key, declared, value):
    # type: (str, Attributes, Any) -> bool
    """Say whether a value of one association is what is declared, or nothing is."""
    try:
        return key not in declared or bool(normal(declared[key], KINDS[key]) == normal(value, KINDS[key]))
    except ValueError:  # a declaration that cannot be read: compared, and named, once
        return True


def _attributes(row, fields):
    # type: (dict[str, str], list[tuple[str, str, str, str]]) -> Attributes
    """Return {declared key: text} of a row of sacctmgr; what is empty is left out."""
    out = {'state': 'present'}
    for key, _option, column, _kind in fields:
        if row.get(column):
            out[key] = row[column]
    return out


def same_field(kind, key, wanted, seen):
    # type: (str, str, Any, Any) -> bool
    """Say whether a declared field is what Slurm has, in any of its spellings. Raises ValueError. Pure."""
    if kind == 'slurm-reservation':
        if key == 'nodes':
            try:
                return set(expand(wanted)) == set(expand(seen or ''))
            except SlurmConfError:
                return bool(wanted == seen)
        if key in ('users', 'accounts', 'flags'):
            return _words(wanted) == _words(seen)
        if key == 'end':
            return bool(('%s' % wanted).replace(' ', 'T') == seen)
        return '%s' % wanted == '%s' % seen
    if key in ('accounts', COORDINATORS):
        return _words(wanted) == _words(seen)
    return bool(normal(wanted, KINDS[key]) == normal(seen, KINDS[key]))


def _words(value):
    # type: (Any) -> set[str]
    return {'%s' % word for word in (value if isinstance(value, (list, tuple)) else ('%s' % (value or '')).split(','))
            if '%s' % word}


def compared(kind):
    # type: (str) -> set[str]
    """Return the declared keys that can be compared."""
    return set(RESERVATION) if kind == 'slurm-reservation' else set(KINDS) | {'accounts', COORDINATORS}


def is_over(attributes, now):
    # type: (Attributes, float) -> bool
    """Say whether a reservation has come to its end; then Slurm forgets it."""
    try:
        end = time.mktime(time.strptime(attributes.get('end', '').replace(' ', 'T'), '%Y-%m-%dT%H:%M:%S'))
    except ValueError:
        return False
    return end <= now


class Accounting(Kind):
    """slurm-qos:NAME, slurm-account:NAME, slurm-user:NAME."""

    as_seen = True
    of_the_node = False

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        read = getattr(survey.once(Slurm), self.name.partition('-')[2])
        return read(name, entry.get('declared') or {})  # type: ignore[no-any-return]  # of Slurm, as its methods say

    def differing(self, recorded, declared, seen):
        # type: (Attributes, Attributes, Attributes) -> list[Difference]
        out = []  # type: list[Difference]
        for key in sorted(set(declared) & compared(self.name)):
            try:
                equal = same_field(self.name, key, declared[key], seen.get(key))
            except ValueError as error:
                out.append(('unreadable', key, None, None, '%s' % error))
                continue
            if not equal:
                out.append(('changed', key, declared[key], seen.get(key), ''))
        return out


class Reservation(Accounting):
    """slurm-reservation:NAME."""

    def compare(self, recorded, declared, seen, epoch):
        # type: (Attributes, Attributes, Attributes, float) -> list[Difference]
        if seen.get('state') == 'absent' and (is_over(recorded, epoch) or is_over(declared, epoch)):
            return []
        return Accounting.compare(self, recorded, declared, seen, epoch)
