# -*- coding: utf-8 -*-
"""Packages: installed, and in which versions.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

from .kind import Kind, name_of
from ..packages import MARK, TIMEOUT_SECONDS
from ...expect.packages import NAME
from ...expect.values import Unreadable

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments
    from .kind import Attributes  # noqa: F401
    from ..node import Node  # noqa: F401
    from ..packages import Installed  # noqa: F401
    from ..observe import Survey  # noqa: F401

__metaclass__ = type

MOST_PROVIDED = 30  # names that are not those of packages; each is a call


def observe_packages(names, installed, node):
    # type: (list[str], Installed, Node) -> dict[str, tuple[Attributes, int] | Unreadable]
    """Return {name: (attributes, install time) or Unreadable}."""
    results, asked = {}, 0  # type: tuple[dict[str, tuple[Attributes, int] | Unreadable], int]
    for name in names:
        versions = installed.named(name)
        if not versions and NAME.match(name) is None and not name.startswith('/'):
            results[name] = Unreadable('not a package name: "%s"' % name)
            continue
        attributes = {'state': 'present' if versions else 'absent', 'version': sorted(versions)}  # type: Attributes
        if not versions:
            asked += 1
            provider = _provider(name, node) if asked <= MOST_PROVIDED else []
            if provider:
                attributes = {'state': 'present', 'version': provider}
            else:
                del attributes['version']
        results[name] = (attributes, max(versions.values()) if versions else 0)
    return results


def _provider(name, node):
    # type: (str, Node) -> list[str]
    """Return ["name-evr.arch"] of packages that provide what no package is called."""
    query = MARK + r'\t%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}\n'
    try:
        _status, out, _err = node.run(['rpm', '-q', '--whatprovides', '--qf', query, name], TIMEOUT_SECONDS)
    except Unreadable:
        return []
    return sorted(line.split('\t')[1] for line in out.splitlines() if line.startswith(MARK + '\t'))


def pinned(wanted, versions):
    # type: (str, list[str]) -> bool
    """Say whether an installed "evr.arch" is the pinned version, which may leave out epoch, release or arch."""
    for version in versions:
        forms = {version, version.partition(':')[2] or version}
        for form in list(forms):
            no_arch = form.rpartition('.')[0]
            forms.update((no_arch, no_arch.rpartition('-')[0]))
        if wanted in forms:
            return True
    return False


class Package(Kind):
    """package:NAME, by one query of rpm for all."""

    words = {'version': 'version'}
    as_seen = True
    comes_back = True

    def observe(self, entries, survey):
        # type: (list[Attributes], Survey) -> dict[str, Attributes | Unreadable]
        names = [name_of(entry['resource']) for entry in entries]
        answers = observe_packages(names, survey.installed.get(), survey.node)
        return {'package:' + name: answer if isinstance(answer, Unreadable) else dict(answer[0], since=answer[1])
                for name, answer in answers.items()}

    def as_declared(self, name, wanted, is_now):
        # type: (str, Any, Any) -> bool
        if name == 'version':
            return all(pinned(version, is_now or []) for version in wanted)
        return Kind.as_declared(self, name, wanted, is_now)


class RpmKey(Kind):
    """rpm-key:DIGITS, a key that rpm trusts, by the last eight digits of its fingerprint."""

    def read(self, name, entry, survey):
        # type: (str, Attributes, Survey) -> Attributes
        return {'state': 'present' if name.lower()[-8:] in survey.installed.get().keys else 'absent'}
