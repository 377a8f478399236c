# -*- coding: utf-8 -*-
"""Texts of Slurm's configuration for an instance that touches nothing of the running one.

Pure functions, no Slurm needed. Runs on nodes: Python 2.7 and 3.6 and later, standard library only. Every line keeps
its number, so that what a daemon says of a line is true of the rendered text, too.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from .conf import OBJECTS, SlurmConfError, expand

MYPY = False
if MYPY:
    from typing import Match  # noqa: F401  in comments

PAIR = re.compile(r'([A-Za-z0-9_.]+)[ \t]*[-+*/]?=[ \t]*("[^"]*"|[^\s#]+)')

# Who else is asked or told: controllers, the database, other authentication (its key is in StateSaveLocation).
ELSEWHERE = frozenset([
    "slurmctldhost", "controlmachine", "controladdr", "slurmctldaddr", "backupcontroller", "backupaddr",
    "federationparameters", "accountingstoragehost", "accountingstoragebackuphost", "accountingstorageexternalhost",
    "accountingstorageport", "accountingstoragepass", "accountingstorageuser", "accountingstorageparameters",
    "accountingstoragetype", "authalttypes", "authaltparameters", "jobcomptype", "jobcomphost", "jobcomploc",
    "jobcomppass", "jobcompport", "jobcompuser", "jobcompparams",
])
# Only slurmdbd knows TRES such as gres/gpu: without it Slurm ends at each name of one ("slurmdbd is required").
TRES = frozenset(["accountingstoragetres", "priorityweighttres", "tresbillingweights"])
# What would be run, and what belongs to that.
PROGRAMS = frozenset([
    "prolog", "epilog", "prologslurmctld", "epilogslurmctld", "resvprolog", "resvepilog", "healthcheckprogram",
    "healthcheckinterval", "healthchecknodestate", "rebootprogram", "suspendprogram", "resumeprogram",
    "resumefailprogram", "suspendtime", "mailprog", "slurmctldprimaryonprog", "slurmctldprimaryoffprog",
    "slurmctldplugstack", "unkillablestepprogram",
])
# Places of this instance's own, ports, and what its messages look like.
PLACES = frozenset([
    "slurmctldport", "slurmdport", "statesavelocation", "slurmdspooldir", "slurmctldpidfile", "slurmdpidfile",
    "slurmctldlogfile", "slurmdlogfile", "slurmschedlogfile", "slurmschedloglevel", "slurmctldsyslogdebug",
    "slurmdsyslogdebug", "logtimeformat",
])
NOT_HERE = ELSEWHERE | TRES | PROGRAMS | PLACES
# slurmctld would ask nodes how they are: all of them are at a closed port of this machine.
OF_NODES = frozenset(["port", "bcastaddr"])
LEVELS = frozenset([
    "quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5", "0", "1", "2", "3",
    "4", "5", "6", "7", "8", "9",
])


def setting(text, name):
    # type: (str, str) -> str
    """Return the value that a slurm.conf text gives a parameter, "" where it gives none. The last one counts."""
    value = ""
    for line in text.splitlines():
        pairs = _pairs(line)
        if pairs and pairs[0].group(1).lower() == name.lower():
            value = pairs[0].group(2).strip('"')
    return value


def slurm_conf(text, host, folder, ports):
    # type: (str, str, str, tuple[int, int]) -> str
    """Return the text for an instance of `host` alone, with all that it writes in `folder`; ports are its two."""
    lines = [_own_line(line) for line in text.splitlines()]
    talk = setting(text, "CommunicationParameters")
    lines += [
        "SlurmctldHost=%s(127.0.0.1)" % host,
        "SlurmctldPort=%d" % ports[0],
        "SlurmdPort=%d" % ports[1],
        "CommunicationParameters=%s" % ",".join(([talk] if talk else []) + ["NoCtldInAddrAny"]),
        "StateSaveLocation=%s/state" % folder,
        "SlurmdSpoolDir=%s/spool" % folder,
        "SlurmctldPidFile=%s/slurmctld.pid" % folder,
        "SlurmdPidFile=%s/slurmd.pid" % folder,
        "SlurmctldLogFile=%s/slurmctld.log" % folder,
        "SlurmdLogFile=%s/slurmd.log" % folder,
        "SlurmctldSyslogDebug=quiet",
        "SlurmdSyslogDebug=quiet",
        "AccountingStorageType=accounting_storage/none",
        "JobCompType=jobcomp/none",
        "MailProg=/bin/true",
    ]
    return "\n".join(lines) + "\n"


def cgroup_conf(text, release):
    # type: (str, tuple[int, int]) -> str
    """Return the text with a plugin that makes no cgroups when it is loaded; release is (year, month).

    From 21.08 slurmd loads it before -G ends it, and that of v2 asks systemd for a scope (cgroup_v2.c, init).
    """
    if release < (21, 8):
        return text
    lines = [_without(line, frozenset(["cgroupplugin"])) for line in text.splitlines()]
    return "\n".join(lines + ["CgroupPlugin=cgroup/v1"]) + "\n"


def _pairs(line):
    # type: (str) -> list[Match[str]]
    """Return the matches of a line's parameters, () for a comment."""
    return list(PAIR.finditer(re.sub(r"(^|[^\\])#.*$", r"\1", line)))


def _without(line, names):
    # type: (str, frozenset[str]) -> str
    for match in reversed(_pairs(line)):
        if match.group(1).lower() in names:
            line = line[:match.start()] + line[match.end():]
    return line


def _own_line(line):
    # type: (str) -> str
    pairs = _pairs(line)
    if not pairs:
        return line
    first = pairs[0].group(1).lower()
    if OBJECTS.get(first) in ("node", "frontend"):
        return re.sub(r"(?i)\b(NodeAddr|FrontendAddr)([ \t]*=[ \t]*)(\S+)", _own_addresses, _without(line, OF_NODES))
    if first in OBJECTS:
        return _without(line, TRES)
    if first == "communicationparameters":
        return ""
    if first in ("slurmctlddebug", "slurmddebug") and pairs[0].group(2).lower() in LEVELS:
        return "%s=info" % pairs[0].group(1)
    return _without(line, NOT_HERE)


def _own_addresses(match):
    # type: (Match[str]) -> str
    """Return as many addresses of this machine as there were: Slurm counts them (20.02 wants one for each name)."""
    try:
        count = len(expand(match.group(3)))
    except SlurmConfError:
        return match.group(0)  # for Slurm to refuse
    full, rest = divmod(count, 254)
    nets = ["127.0.%d.[1-254]" % net for net in range(full)]
    if rest:
        nets.append("127.0.%d.%s" % (full, "1" if rest == 1 else "[1-%d]" % rest))
    return match.group(1) + match.group(2) + ",".join(nets)
