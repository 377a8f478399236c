# -*- coding: utf-8 -*-
"""Readers `sysctl` and `kernel-module`: the live values, from /proc/sys and /sys/module.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import errno
import os
import re

from .values import Reading, Unreadable, missing, present

MYPY = False
if MYPY:
    from typing import Any, Callable  # noqa: F401  in comments

__metaclass__ = type

SYSCTL_FOLDER = '/proc/sys'
MODULE_FOLDER = '/sys/module'


def read_sysctls(requests, folder=SYSCTL_FOLDER):
    # type: (list[dict[str, Any]], str) -> list[Reading | Unreadable]
    return [_caught(_sysctl, request, folder) for request in requests]


def read_modules(requests, folder=MODULE_FOLDER):
    # type: (list[dict[str, Any]], str) -> list[Reading | Unreadable]
    return [_caught(_module, request, folder) for request in requests]


def _caught(read, request, folder):
    # type: (Callable[[dict[str, Any], str], Reading], dict[str, Any], str) -> Reading | Unreadable
    try:
        return read(request, folder)
    except Unreadable as error:
        return error


def sysctl_path(name):
    # type: (str) -> str
    """Return the path below /proc/sys. As in sysctl.d: if the first separator is a slash, dots are part of names."""
    first, path = re.search(r'[./]', name), name
    if first and first.group() == '.':
        path = name.replace('.', '\0').replace('/', '.').replace('\0', '/')
    if not re.match(r'[A-Za-z0-9_][A-Za-z0-9_./:@-]*\Z', path) or '..' in path.split('/'):
        raise Unreadable('not a sysctl name: "%s"' % name)
    return path


def _sysctl(request, folder):
    # type: (dict[str, Any], str) -> Reading
    name = request['name']
    text = _line(os.path.join(folder, sysctl_path(name)))
    if text is None:
        return missing('there is no sysctl %s' % name)
    return present(' '.join(text.split()), text.split())


def _module(request, folder):
    # type: (dict[str, Any], str) -> Reading
    name = request['name']
    if not re.match(r'[A-Za-z0-9_-]+\Z', name):
        raise Unreadable('not a module name: "%s"' % name)
    base = os.path.join(folder, name.replace('-', '_'))
    parameter, what = request.get('parameter'), request.get('read') or 'loaded'
    if parameter and request.get('read'):
        raise Unreadable('a module entry reads one thing: take "read" or "parameter"')
    state = _line(os.path.join(base, 'initstate'))  # built-in modules have none
    if not os.path.isdir(base) or state not in (None, 'live'):
        note = 'module %s is not loaded' % name
        return missing(note, False) if what == 'loaded' and not parameter else missing(note)
    if parameter:
        if not re.match(r'[A-Za-z0-9_-]+\Z', parameter):
            raise Unreadable('not a parameter name: "%s"' % parameter)
        text = _line(os.path.join(base, 'parameters', parameter))
        if text is None:
            return missing('module %s shows no parameter %s' % (name, parameter))
        return present(text, text.split(','))
    if what == 'loaded':
        return present(True)
    if what not in ('version', 'srcversion'):
        raise Unreadable('a kernel module has no "%s" to read' % what)
    text = _line(os.path.join(base, what))
    if text is None:
        return Reading(has_value=False, note='module %s does not tell its %s' % (name, what))
    return present(text, scale='version' if what == 'version' else 'number')


def _line(path):
    # type: (str) -> str | None
    """Return the text of a small kernel file, or None if there is none. Raises Unreadable."""
    try:
        with open(path, 'rb') as stream:
            return stream.read().decode('utf-8', 'replace').strip()
    except (IOError, OSError) as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise Unreadable('%s: %s' % (path, error.strerror))
