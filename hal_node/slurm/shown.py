# -*- coding: utf-8 -*-
"""What the running slurmctld shows of its configuration, over a slurm.conf that may have been edited since it started.

Pure functions. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections
import re

from .conf import Conf

# Parameters by which jobs are lost when they change, each shown as it is written (scontrol show config).
COMPARED = ("authtype", "clustername", "credtype", "jobacctgathertype", "proctracktype", "selecttype", "slurmctldhost",
            "slurmctldport", "slurmdport", "slurmdspooldir", "statesavelocation", "switchtype")
# Former names of what is shown as SlurmctldHost (slurm.conf(5) of 17.11).
FORMER = ("controlmachine", "controladdr", "backupcontroller", "backupaddr")
# Sizes of a node, each with the key that "scontrol show node" has for it; other spellings of the same have none.
SIZES = {"cpus": "CPUTot", "realmemory": "RealMemory", "gres": "Gres", "sockets": "Sockets",
         "corespersocket": "CoresPerSocket", "threadspercore": "ThreadsPerCore", "procs": None, "boards": None,
         "socketsperboard": None}  # type: dict[str, str | None]
NONE = "(null)"

# parameters: {lower case name: value}. nodes: {name: {key as shown: value}}. partitions: [name].
Shown = collections.namedtuple("Shown", "parameters nodes partitions")


def read(config, nodes, partitions):
    # type: (str, str, str) -> Shown | None
    """Return the Shown of what "scontrol --oneliner show" says of all three; None if one of them is empty."""
    shown = Shown(
        {match.group(1).lower(): match.group(2)
         for match in re.finditer(r"(?m)^(\w+)(?:\[0\])? *= (.*?) *$", config)},
        {match.group(1): dict(re.findall(r"(\w+)=(\S+)", match.group(0)))
         for match in re.finditer(r"(?m)^NodeName=(\S+).*$", nodes)},
        re.findall(r"(?m)^PartitionName=(\S+)", partitions))
    return shown if all(shown) else None


def running(conf, after, shown):
    # type: (Conf, Conf, Shown) -> Conf
    """Return the Conf that slurmctld runs with: `conf`, its file, with what it shows of what `after` names.

    What neither file names is left out: it has Slurm's default before and after.
    """
    parameters = dict(conf.parameters)
    for name in COMPARED:
        if name in shown.parameters and (name in after.parameters or name in parameters):
            parameters.pop(name, None)
            value, wanted = shown.parameters[name], after.parameters.get(name, (name, ""))
            if value != NONE:
                parameters[name] = wanted if wanted[1].lower() == value.lower() else (wanted[0], value)
    if "slurmctldhost" in parameters:
        parameters = {name: value for name, value in parameters.items() if name not in FORMER}
    nodes = {name: _node(conf.nodes.get(name, {}), after.nodes.get(name, {}), sizes)
             for name, sizes in shown.nodes.items()}
    partitions = {name: conf.partitions.get(name, {}) for name in shown.partitions}
    return Conf(parameters, nodes, partitions, conf.others)


def _node(line, after, shown):
    # type: (dict[str, str], dict[str, str], dict[str, str]) -> dict[str, str]
    """Return a node's line with the sizes that slurmctld has of it."""
    sizes = {key: re.sub(r"\(.*?\)", "", shown[column]) for key, column in SIZES.items()
             if column and key in after and shown.get(column, NONE) != NONE}
    return dict({key: value for key, value in line.items() if key not in SIZES}, **sizes)
