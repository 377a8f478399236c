# -*- coding: utf-8 -*-
"""Standing checks: what has to hold on every node, whoever manages it.

Standard library only, Python 2.7 and 3.6 or later: this file is shipped to nodes.
"""
from __future__ import absolute_import, division, print_function

import functools
import os

from .node import from_iso, iso
from ..expect.values import Unreadable, compare_versions, shown

MYPY = False
if MYPY:
    from typing import Any, Tuple  # noqa: F401  in comments
    from .node import Node  # noqa: F401
    from .observe import Survey  # noqa: F401
    Result = Tuple[str, Any, Any, str]

__metaclass__ = type

KERNELS = ('kernel', 'kernel-core')
CLOCK_SECONDS = 300


def make_checks(names, survey, record, extra, unknown):
    # type: (list[str], Survey, dict[str, Any] | None, list[str], str) -> list[dict[str, Any]]
    """Return [{check, status, observed, expected, reason}] in the order of the names.

    record is the one that is compared with, or None; extra and unknown are what is known of packages without owner.
    """
    results = []
    for name in names:
        try:
            if name == 'uid_0':
                result = uid_0(survey.accounts.get().with_uid_0())
            elif name == 'kernel':
                result = kernel(survey.installed.get().packages, _release(survey.node))
            elif name == 'packages':
                if unknown:
                    raise Unreadable(unknown)
                result = ('fail' if extra else 'pass', shown(extra), [], 'no run installed them' if extra else '')
            elif name == 'clock':
                result = clock(survey.node.now(), record, _last_install(survey))
            else:
                raise Unreadable('there is no check "%s"' % name)
        except Unreadable as error:
            result = ('unknown', None, None, error.reason)
        results.append(dict(zip(('status', 'observed', 'expected', 'reason'), result), check=name))
    return results


def uid_0(users):
    # type: (list[str]) -> Result
    good = users == ['root']
    return 'pass' if good else 'fail', users, ['root'], '' if good else 'users with uid 0'


def _release(node):
    # type: (Node) -> str
    text = node.text('/proc/sys/kernel/osrelease')
    return text.strip() if text else os.uname()[2]


def kernel(packages, running):
    # type: (dict[str, dict[str, int]], str) -> Result
    """Compare the running kernel with the newest installed one, which the next boot takes. Pure."""
    installed = sorted({version.partition(':')[2] or version for name in KERNELS for version in packages.get(name, {})},
                       key=functools.cmp_to_key(compare_versions))
    if not installed:
        return 'pass', running, None, 'no kernel is installed as a package: there is none newer to boot'
    if running == installed[-1]:
        return 'pass', running, installed[-1], ''
    return 'fail', running, installed[-1], 'another kernel is installed than runs: it takes a reboot'


def _last_install(survey):
    # type: (Survey) -> int | None
    try:
        packages = survey.installed.get().packages  # type: dict[str, dict[str, int]]
    except Unreadable:
        return None
    return max(when for versions in packages.values() for when in versions.values())


def clock(now, record, last_install):
    # type: (float, dict[str, Any] | None, int | None) -> Result
    """Say whether the clock is behind something that certainly happened. Pure."""
    sealed = from_iso(record['sealed_at']) if record else None
    for when, what in ((sealed, 'the record was sealed'), (last_install, 'a package was installed')):
        if when is not None and when > now + CLOCK_SECONDS:
            return 'fail', iso(now), 'after %s' % iso(when), 'the clock went back: %s at %s' % (what, iso(when))
    if sealed is None and last_install is None:
        raise Unreadable('there is neither a record nor a package to compare the clock with')
    return 'pass', iso(now), None, ''
