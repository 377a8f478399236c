# -*- coding: utf-8 -*-
"""What a daemon needs, and what of it is done now.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import re

from ..change import NOTHING, RESTART, START, Plan, classify, decide, stops_first
from ..conf import expand, parse
from ..placed import at_stake, text_of
from .compare import compare
from .daemon import Daemon  # noqa: F401  in comments

MYPY = False
if MYPY:
    from typing import Sequence  # noqa: F401  in comments

    from ..change import Change  # noqa: F401  in comments

WAITING = "PENDING"
# scontrol's name for a node's value, by the key in slurm.conf.
SHOWN = {"cpus": "CPUTot", "realmemory": "RealMemory", "gres": "Gres", "sockets": "Sockets",
         "corespersocket": "CoresPerSocket", "threadspercore": "ThreadsPerCore"}


def plan_of(daemon):
    # type: (Daemon) -> tuple[Plan, list[Change], list[str]]
    """Return (Plan, changes, causes) for what is there now."""
    if daemon.record.folder and not daemon.unit.running:
        return _of_stopped(daemon)
    changes, causes = compare(daemon)
    if daemon.name == "slurmdbd":
        # slurmctld keeps what it cannot deliver, so a restart of slurmdbd hurts no job.
        if not daemon.unit.running:
            return Plan(START, NOTHING, "", ["slurmdbd does not run"]), [], []
        return Plan(RESTART if causes else NOTHING, NOTHING, "", causes), [], causes
    if not (changes or causes):
        return decide(daemon.name, True, [], [], daemon.restart_ok), [], []
    on_node = daemon.slurmctld.jobs(daemon.node) if daemon.name == "slurmd" else None
    announced, order = daemon.announced, ""
    if daemon.name == "slurmd" and daemon.phase == "apply":
        # Only check mode says here what was announced: by now slurmctld would have its new lines, and a slurmd that
        # stops first would be down.
        ahead = daemon.module.check_mode and announced in (START, RESTART)
        order = "" if ahead else _out_of_order(daemon, changes)
        announced = announced if ahead and stops_first(changes) else ""
    queued = daemon.slurmctld.jobs(states=WAITING) if any(change.queued for change in changes) else None
    return decide(daemon.name, True, changes, causes, daemon.restart_ok, on_node, daemon.slurmctld.jobs(), order,
                  announced, queued, recorded=daemon.recorded() is not None), changes, causes


def stops_now(daemon, plan, changes):
    # type: (Daemon, Plan, Sequence[Change]) -> bool
    """Return whether slurmd has to be down because slurmctld is about to learn another line for its node."""
    return (daemon.unit.running and daemon.announced in (START, RESTART) and plan.action == RESTART
            and stops_first(changes))


def _of_stopped(daemon):
    # type: (Daemon) -> tuple[Plan, list[Change], list[str]]
    """Return (Plan, changes, causes) for a daemon that does not run; what it would start with is compared."""
    if not daemon.new_files.differing() or not os.path.exists(daemon.files[0]):
        return decide(daemon.name, False, [], [], daemon.restart_ok), [], []
    changes = classify(daemon.texts(), daemon.new_texts(), daemon.version, daemon.node)
    # Whom it would ask is in the record of an earlier rollout.
    order = _out_of_order(daemon, changes) if daemon.name == "slurmd" and daemon.record.conf else ""
    stake = at_stake(daemon.name, text_of(daemon.files[0]))
    return decide(daemon.name, False, changes, [], daemon.restart_ok, out_of_order=order, stake=stake), changes, []


def _out_of_order(daemon, changes):
    # type: (Daemon, Sequence[Change]) -> str
    """Return why slurmd has to wait for slurmctld, or "".

    slurmctld learns a new node line first: a slurmd that registers with another line gets its node drained.
    """
    if not changes or not any(change.slurmd == RESTART for change in changes):
        return ""
    nodes = parse(daemon.new_text(daemon.files[0])).nodes
    for change in changes:
        if change.subject == "nodes added" and daemon.slurmctld.node(expand(change.new)[0]) == {}:
            return "slurmctld does not know %s yet: it has to restart first" % change.new
    seen, declared = daemon.slurmctld.node(daemon.node), nodes.get(daemon.node, {})
    if not seen or not stops_first(changes):
        return ""
    for key, shown in sorted(SHOWN.items()):
        if key in declared and shown in seen and re.sub(r"\(.*?\)", "", seen[shown]) != declared[key]:
            return "slurmctld runs with %s=%s for this node, the file says %s: slurmctld has to restart first" % (
                shown, seen[shown], declared[key])
    return ""
