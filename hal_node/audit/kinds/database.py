# -*- coding: utf-8 -*-
"""Databases and their users: asked once a socket and kind.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind
from ..node import output
from ...expect.values import Unreadable

MYPY = False
if MYPY:
    from .kind import Attributes  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type


class Databases:
    """What root sees of MariaDB through its socket; asked once a socket and kind."""

    QUERIES = {'database': 'SHOW DATABASES', 'database-user': "SELECT CONCAT(User, '@', Host) FROM mysql.user"}

    def __init__(self, node):
        # type: (Node) -> None
        self.node = node
        self._known = {}  # type: dict[tuple[str, str], set[str] | Unreadable]

    def observe(self, kind, name, declared):
        # type: (str, str, Attributes) -> Attributes
        asked = (kind, declared.get('socket') or '')
        if asked not in self._known:
            argv = ['mysql', '--batch', '--skip-column-names', '--connect-timeout=10']
            argv += ['--socket=' + asked[1]] if asked[1] else []
            try:
                self._known[asked] = set(output(argv + ['--execute=' + self.QUERIES[kind]], self.node).splitlines())
            except Unreadable as error:
                self._known[asked] = error
        known = self._known[asked]
        if isinstance(known, Unreadable):
            raise known
        return {'state': 'present' if name in known else 'absent'}


class Database(Kind):
    """database:NAME and database-user:NAME@HOST."""

    of_the_node = False

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        return survey.once(Databases).observe(self.name, name, entry.get('declared') or {})
