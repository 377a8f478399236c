# -*- coding: utf-8 -*-
"""Sections of repository files.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind
from ..secrets import PASSWORD_IN_URL, REPOSITORY, is_keyed, keyed
from ...expect.values import as_flag

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .kind import Attributes  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type


def observe_repository(name, node, key):
    # type: (str, Node, bytes) -> Attributes
    path, _hash, section = name.partition('#')
    settings = sections(node.text(path) or '').get(section)
    if settings is None:
        return {'state': 'absent'}
    out = {'state': 'present'}
    for setting, value in settings.items():
        secret = setting in REPOSITORY or PASSWORD_IN_URL.search(value)
        out[setting] = 'keyed ' + keyed(key, value) if secret and value else value
    return out


def sections(text):
    # type: (str) -> dict[str, dict[str, str]]
    """Return {section: {key: value}} of a repository file. Lines that go on are one value with line breaks. Pure."""
    found_sections = {}  # type: dict[str, dict[str, str]]
    current, last = None, None  # type: tuple[dict[str, str] | None, str | None]
    for line in text.splitlines():
        if not line.strip() or line.lstrip()[0] in '#;':
            continue
        if line.startswith('[') and ']' in line:
            current, last = found_sections.setdefault(line[1:line.index(']')], {}), None
        elif current is not None and line[0] in ' \t' and last:
            current[last] = (current[last] + '\n' + line.strip()).strip('\n')
        elif current is not None and '=' in line:
            key, _equals, value = line.partition('=')
            last = key.strip().lower()
            current[last] = value.strip()
    return found_sections


class Repository(Kind):
    """repository:FILE#SECTION. Each key of the section is an attribute."""

    words = {'enabled': 'enabled'}

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        return observe_repository(name, survey.node, survey.key)

    def as_declared(self, name, wanted, is_now):
        # type: (str, Any, Any) -> bool
        return _words(wanted) == _words(is_now) or Kind.as_declared(self, name, wanted, is_now)

    def may_lack(self, name):
        # type: (str) -> bool
        return True

    def lacked(self, name):
        # type: (str) -> bool
        return True

    def merged(self, out, seen, before, declared, changed, plain):
        # type: (Attributes, Attributes, Attributes, Attributes, bool, str | None) -> Attributes
        """A secret of another key, or of none, is as it is seen."""
        keyed_now = {name: value for name, value in seen.items() if is_keyed(name, value) and name not in before}
        return dict(out, **keyed_now)

    def path(self, name, declared):
        # type: (str, Attributes) -> str
        return name.partition('#')[0]


def _words(value):
    # type: (Any) -> list[str]
    flag = as_flag(value)
    if flag is not None:
        return ['%d' % flag]
    return ('\n'.join(value) if isinstance(value, list) else '%s' % (value,)).replace(',', ' ').split()
