# -*- coding: utf-8 -*-
"""Reader `package`: installed versions from the rpm database, one query for all.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from .process import run
from .values import Unreadable, missing, present

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .values import Reading  # noqa: F401  in comments

__metaclass__ = type

MARK = 'hal-package'  # tells our lines from rpm's messages
QUERY = MARK + r'\t%{NAME}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\n'
NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9._+-]*\Z')
TIMEOUT_SECONDS = 60  # the database may be locked by a running transaction


def read_packages(requests):
    # type: (list[dict[str, Any]]) -> list[Reading | Unreadable]
    """Return a Reading or Unreadable for each request, in order."""
    names = sorted({request['name'] for request in requests if NAME.match(request['name'])})
    try:
        status, out, err = run(['rpm', '-q', '--qf', QUERY] + names, TIMEOUT_SECONDS) if names else (0, '', '')
    except Unreadable as error:
        return [error for _request in requests]
    installed, absent = parse(out)
    results = []  # type: list[Reading | Unreadable]
    for request in requests:
        try:
            results.append(_reading(request, installed, absent, err))
        except Unreadable as error:
            results.append(error)
    return results


def parse(out):
    # type: (str) -> tuple[dict[str, list[dict[str, str]]], set[str]]
    """Return ({name: [{version, release, arch}]}, set of names that rpm says are not installed)."""
    installed, absent = {}, set()  # type: dict[str, list[dict[str, str]]], set[str]
    for line in out.splitlines():
        fields = line.split('\t')
        if fields[0] == MARK and len(fields) == 5:
            _mark, name, version, release, arch = fields
            package = {'version': version, 'release': release, 'arch': arch}
            for known_as in (name, name + '.' + arch):
                installed.setdefault(known_as, []).append(package)
            continue
        message = re.match(r'package (\S+) is not installed\Z', line)
        if message:
            absent.add(message.group(1))
    return installed, absent


def _reading(request, installed, absent, err):
    # type: (dict[str, Any], dict[str, list[dict[str, str]]], set[str], str) -> Reading
    name, what = request['name'], request.get('read') or 'version-release'
    if not NAME.match(name):
        raise Unreadable('not a package name: "%s"' % name)
    packages = installed.get(name, [])
    if not packages:
        if name not in absent:
            raise Unreadable('rpm said nothing about %s' % name, err.strip()[:200])
        return missing('package %s is not installed' % name, False if what == 'installed' else None)
    if what == 'installed':
        return present(True)
    values = [_property(package, what) for package in packages]
    return present(values[0] if len(values) == 1 else values, values,
                 scale='version' if what in ('version', 'version-release') else 'number')


def _property(package, what):
    # type: (dict[str, str], str) -> str
    if what == 'version-release':
        return package['version'] + '-' + package['release']
    if what not in package:
        raise Unreadable('a package has no "%s" to read' % what)
    return package[what]
