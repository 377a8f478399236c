# -*- coding: utf-8 -*-
"""The host name that is saved.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind

MYPY = False
if MYPY:
    from .kind import Attributes  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type


def observe_hostname(node):
    # type: (Node) -> Attributes
    text = node.text('/etc/hostname')
    lines = [line.strip() for line in (text or '').splitlines() if line.strip() and not line.startswith('#')]
    return {'name': lines[0]} if lines else {'state': 'absent'}


class Hostname(Kind):
    """hostname:static, the name that is saved."""

    in_force = comes_back = True

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        return observe_hostname(survey.node)

    def path(self, name, declared):
        # type: (str, Attributes) -> str
        return '/etc/hostname'
