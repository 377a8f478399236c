# -*- coding: utf-8 -*-
"""Jobs of cron in the tables of users, by the marks of Ansible.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind
from ..node import everybody_reads
from ..secrets import keyed

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .kind import Attributes  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

CRON_FOLDERS = ('/var/spool/cron/', '/var/spool/cron/crontabs/')  # of CentOS, of Debian
MARK = '#Ansible: '


def observe_cron(user, name, secret, node, key):
    # type: (str, str, bool, Node, bytes) -> Attributes
    text, public = None, False
    for folder in CRON_FOLDERS:
        if text is None:
            text = node.text(folder + user)
            public = text is not None and everybody_reads(folder + user, node)
    out = job(text or '', name)
    if 'job' in out:
        out['public'] = public
    if secret and 'job' in out:
        out['job_keyed'] = keyed(key, out.pop('job'))
    return out


def job(text, name):
    # type: (str, str) -> Attributes
    """Return a job that Ansible's marker names in a user's table. Pure."""
    lines = text.splitlines()
    for number, line in enumerate(lines[:-1]):
        if line.strip() != MARK + name:
            continue
        words = lines[number + 1].strip()
        if words.startswith('#'):
            return {'state': 'absent'}
        parts = words.split(None, 1 if words.startswith('@') else 5)
        if len(parts) in (2, 6):
            return {'state': 'present', 'schedule': ' '.join(parts[:-1]), 'job': parts[-1]}
        return {'state': 'present', 'schedule': '', 'job': words}
    return {'state': 'absent'}


class Cron(Kind):
    """cron:USER#TITLE."""

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        user, _hash, title = name.partition('#')
        keyed_before = 'job_keyed' in (entry.get('declared') or {}) or 'job_keyed' in (entry.get('observed') or {})
        return observe_cron(user, title, entry.get('secret') or keyed_before, survey.node, survey.key)

    def as_declared(self, name, wanted, is_now):
        # type: (str, Any, Any) -> bool
        if name == 'job':
            return bool(wanted.strip() == (is_now or '').strip())
        return Kind.as_declared(self, name, wanted, is_now)

    def path(self, name, declared):
        # type: (str, Attributes) -> str
        return CRON_FOLDERS[0] + name.partition('#')[0]
