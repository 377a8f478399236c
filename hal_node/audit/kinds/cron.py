# -*- coding: utf-8 -*-
"""Jobs of cron in the tables of users, by the marks of Ansible.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from ..node import everybody_reads
from ..secrets import keyed

__metaclass__ = type

CRON_FOLDERS = ('/var/spool/cron/', '/var/spool/cron/crontabs/')  # of CentOS, of Debian
MARK = '#Ansible: '


def observe_cron(user, name, secret, node, key):
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
