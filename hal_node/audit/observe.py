# -*- coding: utf-8 -*-
"""Observe resources: each kind in one pass.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import os

from .files import NOT_THERE, observe_files, read_acls
from .kinds.account import Accounts
from .kinds.cron import observe_cron
from .kinds.database import Databases
from .kinds.hostname import observe_hostname
from .kinds.kernel_module import observe_kernel_module
from .kinds.line import observe_line
from .kinds.mount import Mounts
from .kinds.package import observe_packages
from .kinds.repository import observe_repository
from .kinds.selinux import observe_selinux
from .kinds.service import observe_units, read_units
from .kinds.slurm import Slurm
from .kinds.sysctl import observe_sysctl
from .node import folders_open, small_file
from .packages import read_installed
from ..expect.process import read_guarded
from ..expect.values import Unreadable, found, to_text

__metaclass__ = type

MOST_LINES_FILE = 16 * 1024 * 1024
#: What an observation says beside attributes: never part of a record.
ASIDE = ('since', 'content', 'unhashed', 'near', 'sha1', 'sha1_keyed', 'public', 'plain')


def kind_of(resource):
    return resource.partition(':')[0]


def name_of(resource):
    return resource.partition(':')[2]


class Once:
    """Calls a function at the first question; a reason why it cannot be asked is given to everybody."""

    def __init__(self, make, *arguments):
        self._make = make
        self._arguments = arguments
        self._value = None

    def get(self):
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
        self.node = node
        self.key = key
        self.installed = Once(read_installed, node)
        self.accounts = Once(Accounts, node)
        self.mounts = Once(Mounts, node)
        self.slurm = Slurm(node)
        self.databases = Databases(node)
        self.units = {}
        self.problems = []

    def observe(self, entries, keep=None, more_units=()):
        """Return {resource: {attributes} or Unreadable} of record entries.

        keep        folder of stored contents: while sealing, small readable texts come as `content`
        more_units  units whose start matters; `units` then has their properties
        """
        by_kind = {}
        for entry in entries:
            by_kind.setdefault(kind_of(entry['resource']), []).append(entry)
        wanted = {name_of(entry['resource']) for entry in by_kind.get('service', [])}
        self.units = read_units(wanted | set(more_units), self.node)
        results = {}
        for kind, group in sorted(by_kind.items()):
            try:
                answers = self._kind(kind, group, keep)
            except Unreadable as error:
                answers = {entry['resource']: error for entry in group}
            except Exception as error:  # noqa: B902 - a kind's own fault must not take the others' results away
                fault = Unreadable('the audit of this kind failed: %s' % type(error).__name__)
                answers = {entry['resource']: fault for entry in group}
            results.update(answers)
        return results

    def _kind(self, kind, entries, keep):
        if kind == 'file':
            return self._files(entries, keep)
        if kind == 'line':
            return self._lines(entries)
        if kind == 'package':
            answers = observe_packages([name_of(entry['resource']) for entry in entries],
                                       self.installed.get(), self.node)
            return {'package:' + name: answer if isinstance(answer, Unreadable) else dict(answer[0], since=answer[1])
                    for name, answer in answers.items()}
        if kind == 'service':
            names = {name_of(entry['resource']) for entry in entries}
            answers = observe_units({name: state for name, state in self.units.items() if name in names}, self.node)
            return {'service:' + name: answer for name, answer in answers.items()}
        return {entry['resource']: self._caught(kind, entry) for entry in entries}

    def _caught(self, kind, entry):
        try:
            return self._single(kind, name_of(entry['resource']), entry)
        except Unreadable as error:
            return error

    def _single(self, kind, name, entry):
        declared = entry.get('declared') or {}
        if kind == 'sysctl':
            return observe_sysctl(name, declared, self.node)
        if kind == 'mount':
            return self.mounts.get().observe(name)
        if kind == 'user':
            return self.accounts.get().user(name)
        if kind == 'group':
            return self.accounts.get().group(name)
        if kind == 'cron':
            user, _hash, title = name.partition('#')
            secret = entry.get('secret') or 'job_keyed' in declared or 'job_keyed' in (entry.get('observed') or {})
            return observe_cron(user, title, secret, self.node, self.key)
        if kind == 'kernel-module':
            return observe_kernel_module(name, self.node)
        if kind == 'repository':
            return observe_repository(name, self.node, self.key)
        if kind == 'rpm-key':
            return {'state': 'present' if name.lower()[-8:] in self.installed.get().keys else 'absent'}
        if kind == 'hostname':
            return observe_hostname(self.node)
        if kind == 'selinux':
            return observe_selinux(self.node)
        if kind in ('database', 'database-user'):
            return self.databases.observe(kind, name, declared)
        if kind.startswith('slurm-') and kind[6:] in ('qos', 'account', 'user', 'reservation'):
            return getattr(self.slurm, kind[6:])(name, declared)
        raise Unreadable('this version cannot look at resources of kind "%s"' % kind)

    def _files(self, entries, keep):
        requests = []
        for entry in entries:
            recorded = (entry.get('observed') or {}) if keep is None else {}
            requests.append({
                'path': name_of(entry['resource']), 'secret': entry.get('secret'), 'keep': keep,
                'hash': 'keyed' if 'keyed' in recorded else 'sha256' if 'sha256' in recorded else None,
                'size': recorded.get('size'),
                'sha1': bool({'sha1', 'sha1_keyed'} & set(entry.get('declared') or {})),
            })
        answers = observe_files(requests, self.node, self.key)
        results = {'file:' + request['path']: answer if isinstance(answer, Unreadable) else answer.value
                   for request, answer in zip(requests, answers)}
        self._acls(results, entries, sealing=keep is not None)
        return results

    def _acls(self, results, entries, sealing):
        paths = [name_of(resource) for resource, one in results.items()
                 if isinstance(one, dict) and one.get('type') in ('file', 'directory')]
        if not paths:
            return
        try:
            acls = read_acls(paths, self.node)
        except Unreadable as error:
            if sealing:
                self.problems.append('ACLs of %d files are not recorded: %s' % (len(paths), error.reason))
                return
            known = sum(1 for entry in entries if 'acl' in (entry.get('observed') or {}))
            if known:
                self.problems.append('ACLs of %d files cannot be compared: %s' % (known, error.reason))
            return
        for path in paths:
            results['file:' + path]['acl'] = acls.get(path, [])

    def _lines(self, entries):
        by_path = {}
        for entry in entries:
            by_path.setdefault(name_of(entry['resource']).rpartition('#')[0], []).append(entry)
        paths = sorted(by_path)

        def read(path):
            return found(self._lines_of(path, by_path[path]))

        results = {}
        for path, answer in zip(paths, read_guarded(read, paths, most_hangs=3)):
            for position, entry in enumerate(by_path[path]):
                results[entry['resource']] = answer if isinstance(answer, Unreadable) else answer.value[position]
        return results

    def _lines_of(self, path, entries):
        text, public, since = None, False, 0
        try:
            status = os.stat(self.node.path(path))
            content = small_file(self.node.path(path), MOST_LINES_FILE)
            if content is None:
                raise Unreadable('%s is not a regular file of at most %d MiB' % (path, MOST_LINES_FILE // 1024 // 1024))
            text, since = to_text(content), status.st_mtime
            public = bool(status.st_mode & 0o004) and folders_open(path, self.node)
        except EnvironmentError as error:
            if error.errno not in NOT_THERE:
                raise Unreadable('%s: %s' % (path, os.strerror(error.errno) if error.errno else error))
        return [dict(observe_line(entry.get('declared') or {}, text, self.key,
                                  public and not entry.get('secret')), since=since, public=public)
                for entry in entries]
