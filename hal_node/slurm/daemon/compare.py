# -*- coding: utf-8 -*-
"""What differs between the configuration that a daemon runs with and the new one.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ansible.module_utils.common.text.converters import to_text

from ..change import classify, unread
from ..placed import text_of
from .daemon import Daemon  # noqa: F401  in comments

MYPY = False
if MYPY:
    from typing import Iterable  # noqa: F401  in comments

    from ..change import Change  # noqa: F401  in comments


def compare(daemon):
    # type: (Daemon) -> tuple[list[Change], list[str]]
    """Return (changes, causes): what differs from the running configuration, and other reasons to restart."""
    if not daemon.unit.running:
        return [], []
    causes = []
    program = daemon.module.get_bin_path(daemon.name)
    # The time of the change of the inode: packages keep the time at which a file was built. /proc/PID/exe would say
    # it too, but cannot be read of a daemon that changed its user where root lacks CAP_SYS_PTRACE.
    if program and os.stat(program).st_ctime > daemon.unit.started:
        causes.append("%s was replaced after the daemon started" % program)
    causes += [_newness(daemon, path) for path in _newer(daemon, daemon.unit_files)]
    if daemon.name == "slurmd" and daemon.phase == "apply":
        causes += daemon.slurmctld.unregistered(daemon.node)
    if not daemon.record.folder:
        return [], causes + ["%s, and what it read is not recorded" % _newness(daemon, path)
                             for path in _newer(daemon, daemon.files)]
    return _changes(daemon), causes


def _changes(daemon):
    # type: (Daemon) -> list[Change]
    now, before = daemon.new_texts(), daemon.recorded()
    if before is not None:
        return classify(before, now, daemon.version, daemon.node)
    before, newer = daemon.texts(), _newer(daemon, daemon.files)
    if not newer:
        return classify(before, now, daemon.version, daemon.node)
    if daemon.name == "slurmd":
        return [unread(newer[0], "slurmd does not show it")] + classify(before, now, daemon.version, daemon.node)
    shown = daemon.slurmctld.shown()
    if shown is None:
        return [unread(newer[0], "slurmctld does not show it")] + classify(before, now, daemon.version, daemon.node)
    return classify(before, now, daemon.version, daemon.node, shown)


def _newer(daemon, paths):
    # type: (Daemon, Iterable[str]) -> list[str]
    """Return those of the files that were (or would be) written after the daemon started."""
    return [path for path in paths if _would_be_written(daemon, path)
            or (os.path.exists(path) and os.path.getmtime(path) > daemon.unit.started)]


def _newness(daemon, path):
    # type: (Daemon, str) -> str
    """Say of a file of _newer() that it is newer."""
    written = _would_be_written(daemon, path)
    return "%s %s" % (path, "would be written anew" if written else "is newer than the daemon")


def _would_be_written(daemon, path):
    # type: (Daemon, str) -> bool
    """Return whether check mode leaves a file as it is that would be another."""
    planned = daemon.planned.get(path)
    return path in daemon.planned and (planned is None or to_text(planned) != text_of(path))
