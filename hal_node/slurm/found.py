# -*- coding: utf-8 -*-
"""What a rollout of Slurm would lose of what it finds on a node, as lines that refuse it.

Pure functions. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

MYPY = False
if MYPY:
    from typing import Iterable  # noqa: F401  in comments

# From here on MariaDB, and MySQL, make new logs when they start (MariaDB KB, innodb_log_file_size; MySQL 5.6.8).
RESIZES = (5, 6)
MB = 1024 * 1024
# Each of these has slurmctld refuse who has no association (slurm.conf(5), AccountingStorageEnforce).
ASSOCIATED = frozenset(["associations", "limits", "qos", "safe", "wckeys", "all"])
MOST_NAMES = 8


def other_release(program, said, version):
    # type: (str, str, str) -> str
    """Return why an installed release is refused, or "". said: what `program -V` printed ("slurm 20.02.7")."""
    match = re.match(r"slurm\S* (\S+)", said)
    if not match:
        return "%s -V does not say its release, and slurm_version is %s" % (program, version)
    if match.group(1) == version:
        return ""
    return ("%s %s is installed, and slurm_version is %s: a rollout does not upgrade Slurm. Upgrade by hand, slurmdbd"
            " first (docs/slurm.md, Upgrade), or set slurm_version: %s" % (
                program, match.group(1), version, match.group(1)))


def other_number(kind, name, number, declared, owner, used):
    # type: (str, str, int | None, int, str | None, list[str]) -> str
    """Return why a number of the user or group slurm is refused, or "".

    kind: user or group. number: the one it has here, None when it is not there. declared: slurm_uid or slurm_gid.
    owner: who has the declared number here, None for nobody. used: what belongs to the user's present number, in words;
    a number that nothing has is changed.
    """
    setting = {"user": "slurm_uid", "group": "slurm_gid"}[kind]
    if number is not None and number != declared and used:
        return "%s %s has number %d here and %s is %d; %s. It is not changed under them: set %s: %d, for all nodes" % (
            kind, name, number, setting, declared, "; ".join(used), setting, number)
    if owner is not None and owner != name:
        return "number %d (%s) belongs to %s %s here: set another, for all nodes" % (declared, setting, kind, owner)
    return ""


def other_log_size(path, size, declared_mb, said):
    # type: (str, int | None, int, str) -> str
    """Return why MariaDB would not start with its log files, or "".

    size: of the file at `path` in bytes, None when there is none. said: what `mysqld --version` printed.
    """
    if size is None or size == declared_mb * MB:
        return ""
    release = re.search(r"Ver (\d+)\.(\d+)(\S*)", said)
    if release and (int(release.group(1)), int(release.group(2))) >= RESIZES:
        return ""
    name = "%s.%s%s" % release.groups() if release else "of an unknown release"
    return ("MariaDB %s has a log of %g MB (%s), and slurm_database_log_file_mb is %d: it would not start again. Set"
            " slurm_database_log_file_mb: %g; or make room for new logs first (docs/slurm.md, MariaDB)" % (
                name, size / float(MB), path, declared_mb, size / float(MB)))


def associates(enforce):
    # type: (str) -> bool
    """Whether a value of AccountingStorageEnforce has slurmctld refuse who has no association."""
    return bool(ASSOCIATED & set(re.split(r"[\s,]+", enforce.lower())))


def shut_out(users, associated, enforce):
    # type: (Iterable[str], Iterable[str], str) -> str
    """Return why AccountingStorageEnforce is refused, or "". users: who has jobs. associated: who has an account."""
    names = sorted(set(users) - set(associated))
    if not names:
        return ""
    told = ", ".join(names[:MOST_NAMES]) + (" and %d more" % (len(names) - MOST_NAMES) if names[MOST_NAMES:] else "")
    return ("AccountingStorageEnforce=%s is new here, and %s with jobs now or in the last 30 days would be refused:"
            " no account (%s). Declare them in slurm_users, or let slurm_enforce_ok=true shut them out" % (
                enforce, "1 user" if len(names) == 1 else "%d users" % len(names), told))
