# -*- coding: utf-8 -*-
"""Installed packages and rpm's keys, from one `rpm -qa` for everything.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import re

from ..expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Collection, Iterable  # noqa: F401  in comments
    from .node import Node  # noqa: F401

__metaclass__ = type

MARK = 'hal-package'
QUERY = MARK + r'\t%{NAME}\t%{EPOCH}\t%{VERSION}\t%{RELEASE}\t%{ARCH}\t%{INSTALLTIME}\n'
TIMEOUT_SECONDS = 60
MOST_ASKED = 30  # paths of several packages; each is a call
KEYS = 'gpg-pubkey'


class Installed:
    """{name: {"evr.arch": install time}}, and the ids of imported keys."""

    def __init__(self, packages, keys):
        # type: (dict[str, dict[str, int]], set[str]) -> None
        self.packages = packages
        self.keys = keys

    def named(self, name):
        # type: (str) -> dict[str, int]
        """Return {"evr.arch": time} of a name or name.arch."""
        if name in self.packages:
            return self.packages[name]
        base, _dot, arch = name.rpartition('.')
        return {version: when for version, when in self.packages.get(base, {}).items() if version.endswith('.' + arch)}

    def explained(self):
        # type: () -> dict[str, str]
        """Return {name: "evr.arch"}; several installed versions are one text, sorted."""
        return {name: ' '.join(sorted(versions)) for name, versions in self.packages.items()}


def read_installed(node):
    # type: (Node) -> Installed
    """Return the Installed. Raises Unreadable."""
    status, out, err = node.run(['rpm', '-qa', '--qf', QUERY], TIMEOUT_SECONDS)
    if status != 0:
        raise Unreadable('rpm -qa ended with status %d' % status, ' '.join(err.split())[:200])
    return parse(out)


def parse(out):
    # type: (str) -> Installed
    """Return the Installed of rpm's output. Raises Unreadable if it has no package at all."""
    packages, keys = {}, set()  # type: tuple[dict[str, dict[str, int]], set[str]]
    for line in out.splitlines():
        fields = line.split('\t')
        if fields[0] != MARK or len(fields) != 7:
            continue
        _mark, name, epoch, version, release, arch, when = fields
        if name == KEYS:
            keys.add(version.lower()[-8:])
            continue
        evr = '%s%s-%s.%s' % ('' if epoch in ('(none)', '0') else epoch + ':', version, release, arch)
        packages.setdefault(name, {})[evr] = int(when) if when.isdigit() else 0
    if not packages:
        raise Unreadable('rpm does not know a single package: is its database there?')
    return Installed(packages, keys)


def explain(old, installed, windows, named):
    # type: (dict[str, str] | None, Installed, list[tuple[float, float]], Collection[str]) -> dict[str, str]
    """Return the explained packages {name: "evr.arch"} after a run. Pure.

    old      those before, None at the first seal: then everything is explained, it came with the installation
    windows  [(begin, end)] by the node's clock
    named    names that are resources of the record
    """
    now = installed.explained()
    if old is None:
        return now
    out = {}
    for name, versions in now.items():
        if old.get(name) == versions or name in named:
            out[name] = versions
            continue
        known = set(old.get(name, '').split(' '))
        new = [when for version, when in installed.packages[name].items() if version not in known]
        if all(any(begin <= when <= end for begin, end in windows) for when in new):
            out[name] = versions  # also when versions only went away: nothing new is there
        elif name in old:
            out[name] = old[name]
    return out


def unexplained(explained, installed, named):
    # type: (dict[str, str], Installed, Collection[str]) -> list[str]
    """Return ["name-evr.arch"] that no run installed. Pure."""
    extra = []  # type: list[str]
    for name, versions in installed.packages.items():
        if name in named:
            continue
        known = set(explained.get(name, '').split(' '))
        extra.extend('%s-%s' % (name, version) for version in versions if version not in known)
    return sorted(extra)


def owned(paths, node):
    # type: (Iterable[bytes], Node) -> set[bytes]
    """Return the set of paths, as bytes, that belong to packages: one rpm -qf for all. Raises Unreadable."""
    asked = sorted(path for path in paths if _askable(path))
    if not asked:
        return set()
    argv = ['rpm', '-qf', '--qf', MARK + r'\n']  # type: list[str | bytes]
    _status, out, err = node.run(argv + list(asked), TIMEOUT_SECONDS)
    strange = set()
    for line in (out + '\n' + err).splitlines():
        hit = re.match(r'file (.*) is not owned by any package\Z', line) or re.match(
            r'error: file (.*): No such file or directory\Z', line)
        if hit:
            strange.add(hit.group(1).encode('utf-8'))
    if MARK not in out and not strange:
        raise Unreadable('rpm did not say whose files these are', ' '.join(err.split())[:200])
    return set(asked) - strange


def owners(paths, node):
    # type: (Collection[bytes], Node) -> dict[bytes, str]
    """Return {path: name of the package that has it, '' for none} of paths as bytes; they need not be there any more.

    One rpm -qf for all; where a path is of several packages one each, for the first ones. Raises Unreadable.
    """
    asked = sorted(path for path in set(paths) if _askable(path))
    out = dict.fromkeys(paths, '')
    if not asked:
        return out
    mine = sorted(owned(asked, node))
    names = _names(mine, node) if mine else []
    if len(names) != len(mine):
        names = [(_names([path], node) + [''])[0] for path in mine[:MOST_ASKED]]
    out.update(zip(mine, names))
    return out


def _names(paths, node):
    # type: (list[bytes], Node) -> list[str]
    argv = ['rpm', '-qf', '--qf', MARK + r'\t%{NAME}\n']  # type: list[str | bytes]
    _status, out, _err = node.run(argv + list(paths), TIMEOUT_SECONDS)
    return [line.partition('\t')[2] for line in out.splitlines() if line.startswith(MARK + '\t')]


def _askable(path):
    # type: (bytes) -> bool
    try:
        return '\n' not in path.decode('utf-8')
    except UnicodeDecodeError:
        return False  # no package has such names
