# -*- coding: utf-8 -*-
"""Observe resources: each kind in one pass.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kinds.account import Accounts
from .kinds.kind import kind_of, name_of
from .kinds.registry import kind_named
from .kinds.service import read_units
from .packages import read_installed
from ..expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Any, Callable, Collection, TypeVar  # noqa: F401  in comments
    from .kinds.kind import Attributes  # noqa: F401
    from .node import Node  # noqa: F401
    Read = TypeVar('Read')

__metaclass__ = type


class Once:
    """Calls a function at the first question; a reason why it cannot be asked is given to everybody."""

    def __init__(self, make, *arguments):
        # type: (Callable[..., Any], *Any) -> None
        self._make = make
        self._arguments = arguments
        self._value = None  # type: Any

    def get(self):
        # type: () -> Any
        if self._value is None:
            try:
                self._value = self._make(*self._arguments)
            except Unreadable as error:
                self._value = error
        if isinstance(self._value, Unreadable):
            raise self._value
        return self._value


class Survey:
    """Everything that is asked of a node in one pass."""

    def __init__(self, node, key):
        # type: (Node, bytes) -> None
        self.node = node
        self.key = key
        self.installed = Once(read_installed, node)
        self.accounts = Once(Accounts, node)
        self.keep = None  # type: bytes | None
        self.units = {}  # type: dict[str, dict[str, str] | Unreadable]
        self.problems = []  # type: list[str]
        self._read = {}  # type: dict[Any, Once]

    def once(self, read):
        # type: (Callable[[Node], Read]) -> Read
        """Return read(node). Each is called once; a reason why it cannot be asked is given to everybody."""
        once = self._read.setdefault(read, Once(read, self.node))
        return once.get()  # type: ignore[no-any-return]  # what it reads

    def observe(self, entries, keep=None, more_units=()):
        # type: (list[dict[str, Any]], bytes | None, Collection[str]) -> dict[str, dict[str, Any] | Unreadable]
        """Return {resource: {attributes} or Unreadable} of record entries.

        keep        folder of stored contents: while sealing, small readable texts come as `content`
        more_units  units whose start matters; `units` then has their properties
        """
        by_kind = {}  # type: dict[str, list[Attributes]]
        for entry in entries:
            by_kind.setdefault(kind_of(entry['resource']), []).append(entry)
        wanted = {name_of(entry['resource']) for entry in by_kind.get('service', [])}
        self.keep = keep
        self.units = read_units(wanted | set(more_units), self.node)
        results = {}
        for kind, group in sorted(by_kind.items()):
            try:
                answers = kind_named(kind).observe(group, self)
            except Unreadable as error:
                answers = {entry['resource']: error for entry in group}
            except Exception as error:  # noqa: B902 - a kind's own fault must not take the others' results away
                fault = Unreadable('the audit of this kind failed: %s' % type(error).__name__)
                answers = {entry['resource']: fault for entry in group}
            results.update(answers)
        return results
