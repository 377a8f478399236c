#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Find what a rollout of Slurm would lose on this node."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_slurm_found
short_description: Find what a rollout of Slurm would lose on this node
description:
  - Looks at the node before anything is written, and returns a line for each thing that would be lost. On a new node it
    finds nothing.
  - Changes nothing, and refuses nothing itself. Role slurm refuses, for all nodes.
  - Finds an installed release other than I(version), a user slurm with another number who owns something here, a
    declared number that somebody else has, a MariaDB that would not start with its log files, and an
    AccountingStorageEnforce that shuts out users who have jobs.
  - What it could not find out is a line, too.
options:
  version:
    description: The declared release, as year.month.patch.
    type: str
    required: true
  uid:
    description: The declared number of the user slurm.
    type: int
    required: true
  gid:
    description: The declared number of the user's group slurm.
    type: int
    required: true
  places:
    description: Files and directories that the user owns where Slurm has run, beside those of C(slurm.conf).
    type: list
    elements: path
    default: []
  log_file_mb:
    description: On the node of the database, the declared innodb_log_file_size in MB.
    type: int
  enforce:
    description: On the node of slurmctld, the declared AccountingStorageEnforce. Empty for none.
    type: str
    default: ''
  users:
    description: Names of the users whom the policy declares, with an account or without.
    type: list
    elements: str
    default: []
  enforce_ok:
    description: Permission to shut out users who have jobs and no account.
    type: bool
    default: false
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Does the same. It changes nothing in any mode.}
  diff_mode: {support: none, description: Nothing is changed.}
"""

EXAMPLES = r"""
- name: Find what would be lost
  hal_slurm_found:
    version: 20.02.7
    uid: 450
    gid: 450
    places: [/var/spool/slurmctld, /var/log/slurm]
  register: __slurm_found
"""

RETURN = r"""
lost:
  description: One line for each thing that would be lost, with the way on.
  type: list
  elements: str
  returned: always
foreign_user:
  description: Whether there is a user slurm whom role slurm has not made, judging by home and comment.
  type: bool
  returned: always
"""

import grp
import os
import pwd
import re

from ansible.module_utils.common.text.converters import to_bytes, to_native
from ansible.module_utils.hal_node.printable import shown
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.conf import SlurmConfError, parse
from ansible.module_utils.hal_node.slurm.found import associates, other_log_size, other_number, other_release, shut_out
from ansible.module_utils.hal_node.slurm.placed import text_of
from ansible.module_utils.hal_node.slurm.process import NoAnswer, unit_properties

MYPY = False
if MYPY:
    from typing import Any, Callable  # noqa: F401  in comments

USER = "slurm"
MADE = ("/var/spool/slurmctld", "Slurm")  # home and comment that the role gives it
CONF = "/etc/slurm/slurm.conf"
RECORD = "/var/lib/hal/slurm/slurmctld/slurm.conf"  # what slurmctld read when it started last
LEAST = "ClusterName=none\nSlurmctldHost=localhost\n"
PROGRAMS = ("slurmdbd", "slurmctld", "slurmd", "sinfo")
MYSQLD = "/usr/libexec/mysqld"  # where CentOS has it
DATA = "/var/lib/mysql"
PROC = "/proc"
SECONDS = 30
MOST = 3  # processes that are named
SINCE = "now-30days"


class Unknown(Exception):
    """What has to be known could not be found out; the message says what."""


class Present(object):
    """What there is on this node."""

    def __init__(self, module):
        # type: (Any) -> None
        self.module = module
        self.params = module.params
        self.entry = _known(pwd.getpwnam, USER)
        self.group = _known(grp.getgrnam, USER)

    def said(self, argv, what=None, **environ):
        # type: (list[str], str | None, **str) -> str
        """Return what a program printed. Raises Unknown where it fails and `what` says that it may not."""
        argv = ["timeout", str(SECONDS)] + argv
        status, out, err = self.module.run_command(argv, environ_update=dict(environ, LC_ALL="C"))
        if status != 0 and what:
            last = ((err or out).strip().splitlines() or ["exit status %d" % status])[-1]
            raise Unknown("%s: %s" % (what, last))
        return out if status == 0 else ""

    # --- what is installed
    def releases(self):
        # type: () -> list[str]
        """Return a line for each program of another release; none where packages alone are there, as in an image."""
        if not os.path.exists(CONF) and not os.path.isdir(os.path.dirname(RECORD)):
            return []
        programs = [(name, self.module.get_bin_path(name)) for name in PROGRAMS]
        environ = {} if os.path.exists(CONF) else {"SLURM_CONF": self.least()}
        return [other_release(name, self.said([path, "-V"], **environ), self.params["version"])
                for name, path in programs if path]

    def least(self):
        # type: () -> str
        """Return the path of a slurm.conf of this run's own: commands of 20.11 and later say nothing without one."""
        path = os.path.join(self.module.tmpdir, "slurm.conf")
        with open(path, "w") as file:
            file.write(LEAST)
        return path

    # --- whose numbers they are
    def numbers(self):
        # type: () -> list[str]
        """Return a line for each number that would be changed under something, or is another's."""
        uid, gid = self.params["uid"], self.params["gid"]
        owner, group_owner = _known(pwd.getpwuid, uid), _known(grp.getgrgid, gid)
        primary = self.entry.pw_gid if self.entry else self.group.gr_gid if self.group else None
        as_declared = self.entry is None or (self.entry.pw_uid, primary) == (uid, gid)
        used = [] if as_declared else self.used()
        return [
            other_number("user", USER, self.entry and self.entry.pw_uid, uid, owner and owner.pw_name, used),
            other_number("group", USER, primary, gid, group_owner and group_owner.gr_name, used),
        ]

    def used(self):
        # type: () -> list[str]
        """Return what belongs to the user's present number, in words."""
        uid = self.entry.pw_uid
        running = sorted(int(name) for name in os.listdir(PROC) if name.isdigit() and _owner(name) == uid)
        lines = ["process %d (%s) runs as it" % (number, text_of("%s/%d/comm" % (PROC, number)).strip())
                 for number in running[:MOST]]
        return lines + ["%s is its own" % path for path in self.places()
                        if os.path.exists(path) and os.stat(path).st_uid == uid]

    def places(self):
        # type: () -> list[str]
        """Return the declared places and those that slurm.conf names."""
        try:
            own = parse(text_of(CONF)).parameters
        except SlurmConfError:
            own = {}
        named = [own[key][1] for key in ("statesavelocation", "slurmctldlogfile") if key in own]
        return sorted(set(self.params["places"] + named))

    # --- the database
    def logs(self):
        # type: () -> str
        """Return why MariaDB would not start with its log files, or ""."""
        if self.params["log_file_mb"] is None:
            return ""
        options = self.module.get_bin_path("my_print_defaults")
        said = self.said([options, "mysqld", "server", "mariadb"]) if options else ""
        given = {name.replace("_", "-"): value for name, value in re.findall(r"(?m)^--([\w-]+)=(.*?) *$", said)}
        folder = os.path.join(given.get("datadir", DATA), given.get("innodb-log-group-home-dir", ""))
        path = os.path.join(folder, "ib_logfile0")
        size = os.stat(path).st_size if os.path.exists(path) else None
        program = MYSQLD if os.path.exists(MYSQLD) else (
            self.module.get_bin_path("mysqld") or self.module.get_bin_path("mariadbd"))
        return other_log_size(path, size, self.params["log_file_mb"],
                              self.said([program, "--version"]) if program else "")

    # --- who would be shut out
    def enforced(self):
        # type: () -> str
        """Return why AccountingStorageEnforce would shut users out, or "". Raises Unknown, and NoAnswer."""
        enforce = self.params["enforce"]
        if not associates(enforce) or self.params["enforce_ok"] or not self.module.get_bin_path("slurmctld"):
            return ""
        if unit_properties(self.module, "slurmctld.service", ("ActiveState",))["ActiveState"] in (
                "inactive", "failed", "activating"):
            return ""
        if associates(parse(text_of(RECORD)).parameters.get("accountingstorageenforce", ("", ""))[1]):
            return ""  # an earlier rollout has set it
        config = self.said(["scontrol", "show", "config"], "slurmctld does not say what it enforces")
        own = dict(re.findall(r"(?m)^(\w+) *= (.*?) *$", config))
        if associates(own.get("AccountingStorageEnforce", "")):
            return ""
        queue = self.said(["squeue", "--noheader", "--all", "--states", "all", "--format", "%u"],
                          "slurmctld does not say who has jobs")
        users, associated = queue.split(), list(self.params["users"])
        if own.get("AccountingStorageType", "").endswith("/slurmdbd"):
            users += self.said(["sacct", "--allusers", "--allocations", "--noheader", "--parsable2", "--format", "User",
                                "--starttime", SINCE], "slurmdbd does not say who had jobs").split()
            associated += self.said(["sacctmgr", "--noheader", "--parsable2", "show", "associations", "format=User",
                                     "cluster=%s" % own.get("ClusterName", "")],
                                    "slurmdbd does not say who has an account").split()
        return shut_out(users, associated, enforce)

    def lines(self):
        # type: () -> list[str]
        """Return all that would be lost, a line each."""
        lines = self.releases() + self.numbers()
        for look in (self.logs, self.enforced):
            try:
                lines.append(look())
            except (Unknown, NoAnswer) as error:
                lines.append("%s; what is not known is not safe: repeat when it answers" % error)
        return [to_native(shown(to_bytes(line), kept=u"\\")) for line in lines if line]


def _known(ask, what):
    # type: (Callable[[Any], Any], Any) -> Any
    """Return the entry of a name or number, None for none."""
    try:
        return ask(what)
    except KeyError:
        return None


def _owner(process):
    # type: (str) -> int | None
    """Return the effective user of a process, None when it has ended (proc(5))."""
    matched = re.search(r"(?m)^Uid:\s*\d+\s+(\d+)", text_of(os.path.join(PROC, process, "status")))
    return int(matched.group(1)) if matched else None


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "version": {"type": "str", "required": True},
            "uid": {"type": "int", "required": True},
            "gid": {"type": "int", "required": True},
            "places": {"type": "list", "elements": "path", "default": []},
            "log_file_mb": {"type": "int"},
            "enforce": {"type": "str", "default": ""},
            "users": {"type": "list", "elements": "str", "default": []},
            "enforce_ok": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    present = Present(module)
    entry = present.entry
    module.exit_json(changed=False, lost=present.lines(),
                     foreign_user=entry is not None and (entry.pw_dir, entry.pw_gecos) != MADE)


if __name__ == "__main__":
    main()
