# -*- coding: utf-8 -*-
"""Say what a change of Slurm's configuration needs to take effect, and what it would do to running jobs.

Slurm takes some changes by "scontrol reconfigure", some only by a restart of slurmctld, of slurmd or of both, and a
few make it lose jobs if any runs. Which is which is in slurm.conf(5), gres.conf(5) and scontrol(1) of each release;
what the pages leave out was read in the source. Every rule carries its source. Read for 19.05, 20.02 and 22.05;
a rule that differs names the release from which it holds.

Pure functions, no Slurm needed. Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import collections
import re

from .conf import SlurmConfError, fold, logical_lines, pairs, parse, parse_flat, parse_gres
from .shown import running

MYPY = False
if MYPY:
    from typing import Any, Callable, Iterable, Sequence  # noqa: F401  in comments
    from .shown import Shown  # noqa: F401  in comments

NOTHING, RECONFIGURE, RESTART, START = "nothing", "reconfigure", "restart", "start"
DAEMONS = ("slurmctld", "slurmd")
_ORDER = {NOTHING: 0, RECONFIGURE: 1, RESTART: 2}
# For people: what a daemon does, and what it has to do.
_DOES = {RECONFIGURE: "is reconfigured", RESTART: "restarts"}
_TO_DO = {RECONFIGURE: "be reconfigured", RESTART: "restart"}

# One difference between two configurations.
#
# file, subject: where and what ("slurm.conf", "SlurmctldTimeout" or "node hal[01-02] gres").
# old, new: the values as text, None for "not there".
# slurmctld, slurmd: what that daemon needs: nothing, reconfigure or restart.
# unsafe: daemons whose reconfigure or restart with this change loses or strands running jobs.
# stop_first: slurmd has to be down while slurmctld restarts, or the node is drained or INVALID for what it registers.
# reason, source: why, and where Slurm says so.
# queued: whether jobs that wait are lost like those that run.
Change = collections.namedtuple("Change",
                                "file subject old new slurmctld slurmd unsafe stop_first reason source queued")


Rule = collections.namedtuple("Rule", "slurmctld slurmd unsafe reason source queued")


def _conf5(section):
    # type: (str) -> str
    return "slurm.conf(5) %s" % section


def _both(reason, source, unsafe=(), queued=False):
    # type: (str, str, Sequence[str], bool) -> Rule
    return Rule(RESTART, RESTART, unsafe, reason, source, queued)


def _controller(reason, source, unsafe=(), queued=False):
    # type: (str, str, Sequence[str], bool) -> Rule
    return Rule(RESTART, NOTHING, unsafe, reason, source, queued)


def _node(reason, source, unsafe=()):
    # type: (str, str, Sequence[str]) -> Rule
    return Rule(RECONFIGURE, RESTART, unsafe, reason, source, False)


_NEEDS_CTLD = "read by slurmctld only when it starts"
_NEEDS_SLURMD = "read by slurmd only when it starts"
_NEEDS_BOTH = "read by both daemons only when they start"

# Lower case parameter -> [(first release it holds for, Rule)], newest last.
RULES = {
    "accountingstorageenforce": [((0,), _controller(_NEEDS_CTLD, _conf5("AccountingStorageEnforce")))],
    "accountingstoragetres": [((0,), _controller(
        "resources to account for are registered with slurmdbd when slurmctld starts",
        "source slurmctld/controller.c _init_tres()"))],
    "authtype": [((0,), _both("all daemons and commands must be down while it changes", _conf5("AuthType"), DAEMONS))],
    "clustername": [((0,), _both(
        "slurmctld refuses to start on the saved state of a cluster with another name",
        "source slurmctld/controller.c _create_clustername_file()", DAEMONS, queued=True))],
    "corespecplugin": [((0,), _node(_NEEDS_SLURMD, _conf5("CoreSpecPlugin")))],
    "credtype": [((0,), _both("credentials of one kind are refused by a daemon of the other", _conf5("CredType"),
                              DAEMONS))],
    "grestypes": [((0,), _controller(_NEEDS_CTLD, _conf5("GresTypes"))),
                  ((22, 5), _both(_NEEDS_BOTH, _conf5("GresTypes")))],
    "jobacctgathertype": [((0,), _both(
        "steps that run keep the old message format: change it only when no job step runs",
        _conf5("JobAcctGatherType"), DAEMONS))],
    "jobcontainertype": [((0,), _node(_NEEDS_SLURMD, _conf5("JobContainerType"))),
                         ((22, 5), _both(_NEEDS_BOTH, _conf5("JobContainerType")))],
    "maxjobcount": [((0,), _controller(_NEEDS_CTLD, _conf5("MaxJobCount")))],
    "maxnodecount": [((0,), _controller(_NEEDS_CTLD, _conf5("MaxNodeCount")))],
    "plugindir": [((0,), _both(_NEEDS_BOTH, _conf5("PluginDir")))],
    "powerplugin": [((0,), _both(_NEEDS_BOTH, _conf5("PowerPlugin")))],
    "proctracktype": [((0,), Rule(RESTART, RESTART, ("slurmd",),
                                  "running steps were started under the other tracker and cannot be followed or killed",
                                  _conf5("ProctrackType"), False))],
    "schedulertype": [((0,), _controller(_NEEDS_CTLD, _conf5("SchedulerType")))],
    "selecttype": [((0,), _both("all job information, running and pending, is lost", _conf5("SelectType"), DAEMONS,
                               queued=True))],
    "selecttypeparameters": [((0,), _controller(
        "a reconfigure keeps the old value", "source slurmctld/read_config.c _preserve_select_type_param()"))],
    "slurmctldhost": [((0,), _both("steps report to the old address", _conf5("SlurmctldHost"), ("slurmctld",)))],
    "slurmctldport": [((0,), _both("steps report to the old port", _conf5("SlurmctldPort"), ("slurmctld",)))],
    "slurmctldpidfile": [((0,), _controller(_NEEDS_CTLD, "source slurmctld/controller.c main()"))],
    "slurmdport": [((0,), _both("slurmctld and running steps look for slurmd at the old port", _conf5("SlurmdPort"),
                                DAEMONS))],
    "slurmdpidfile": [((0,), _node(_NEEDS_SLURMD, "source slurmd/slurmd.c main()"))],
    "slurmdspooldir": [((0,), _node(
        "running steps are found by their sockets in the old directory: they are lost to slurmd",
        _conf5("SlurmdSpoolDir"), DAEMONS))],
    "slurmduser": [((0,), _both(_NEEDS_BOTH, _conf5("SlurmdUser")))],
    "slurmuser": [((0,), _both("saved state and logs belong to the old user", _conf5("SlurmUser")))],
    "statesavelocation": [((0,), _controller(
        "slurmctld starts from an empty directory: no job is known", _conf5("StateSaveLocation"), ("slurmctld",),
        queued=True))],
    "switchtype": [((0,), _both("records of all jobs in any state may be lost", _conf5("SwitchType"), DAEMONS,
                               queued=True))],
}  # type: dict[str, list[tuple[tuple[int, ...], Rule]]]
# A plugin that the pages say nothing about is loaded when its daemon starts.
_PLUGIN = re.compile(r"(type|plugin|plugins)$")
_PLUGIN_RULE = _both("plugins are loaded when a daemon starts", "source common/plugin.c, common/plugrack.c")
_DEFAULT_RULE = Rule(RECONFIGURE, RECONFIGURE, (), "taken at a reconfigure", "scontrol(1) reconfigure", False)

_NODE_SOURCE = _conf5("NODE CONFIGURATION")
_SHAPE = ("boards", "cpus", "procs", "sockets", "socketsperboard", "corespersocket", "threadspercore")
_ADDRESS = ("nodeaddr", "nodehostname", "port")


def release(version):
    # type: (object) -> tuple[int, int]
    """Return (year, month) of "22.05.8", as numbers. Raises ValueError for anything else."""
    match = re.match(r"^(\d+)\.(\d+)", str(version))
    if match is None:
        raise ValueError("Slurm version '%s' is not year.month.patch, such as 22.05.8" % (version,))
    return (int(match.group(1)), int(match.group(2)))


def rule_for(parameter, version):
    # type: (str, str) -> Rule
    """Return the Rule that holds for a slurm.conf parameter in a release."""
    low = parameter.lower()
    latest = None
    for first, rule in RULES.get(low, []):
        if first <= release(version):
            latest = rule
    return latest or (_PLUGIN_RULE if _PLUGIN.search(low) else _DEFAULT_RULE)


def _same(old, new):
    # type: (str, str) -> bool
    """Whether two values mean the same: upper and lower case do not matter, "yes"/"no" have other spellings."""
    def plain(value):
        # type: (str) -> str
        low = value.lower()
        return {"yes": "1", "true": "1", "up": "1", "no": "0", "false": "0", "down": "0"}.get(low, value)
    return plain(old) == plain(new)


def _parameters(name, old, new, version, rule=rule_for):
    # type: (str, dict[str, tuple[str, str]], dict[str, tuple[str, str]], str, Callable[..., Rule]) -> list[Change]
    changes = []
    for low in sorted(set(old) | set(new)):
        before, after = old.get(low), new.get(low)
        if before is not None and after is not None and _same(before[1], after[1]):
            continue
        subject = (after or old[low])[0]
        effect = rule(subject, version)
        changes.append(Change(name, subject, before and before[1], after and after[1], effect.slurmctld, effect.slurmd,
                              tuple(effect.unsafe), False, effect.reason, effect.source, effect.queued))
    return changes


def _fold_nodes(differences):
    # type: (list[tuple[str, Any]]) -> list[tuple[list[str], Any]]
    """Return [(names, key)] with equal keys joined; differences: [(name, key)]."""
    by_key = collections.OrderedDict()  # type: dict[Any, list[str]]
    for name, key in differences:
        by_key.setdefault(key, []).append(name)
    return [(names, key) for key, names in by_key.items()]


def _nodes(old, new, node):
    # type: (dict[str, dict[str, str]], dict[str, dict[str, str]], str | None) -> list[Change]
    changes = []
    gone, come = sorted(set(old) - set(new)), sorted(set(new) - set(old))
    if gone:
        changes.append(Change("slurm.conf", "nodes removed", fold(gone), None, RESTART, RESTART, ("slurmctld",), False,
                              "daemons must restart; jobs on a removed node are killed",
                              "scontrol(1) reconfigure; %s" % _NODE_SOURCE, False))
    if come:
        changes.append(Change("slurm.conf", "nodes added", None, fold(come), RESTART, RESTART, (), False,
                              "daemons must restart: each slurmd forwards messages to every node",
                              "scontrol(1) reconfigure; %s" % _NODE_SOURCE, False))
    differences = []
    for name in sorted(set(old) & set(new)):
        for key in sorted(set(old[name]) | set(new[name])):
            before, after = old[name].get(key), new[name].get(key)
            if before != after:
                shown = (None, None) if key in _ADDRESS else (before, after)
                differences.append((name, (key,) + shown))
    for names, (key, before, after) in _fold_nodes(differences):
        # An address concerns every slurmd, which forward messages; a size only the slurmd that registers with it.
        concerns_me = node is None or key in _ADDRESS or node in names
        unsafe = ()  # type: tuple[str, ...]
        why = "slurmctld and slurmd must agree on the node's line"
        if key in _SHAPE:
            unsafe, why = ("slurmctld",), "slurmctld aborts jobs on a node whose sockets or cores changed"
        elif key == "gres" and before is not None:
            unsafe, why = ("slurmctld",), "slurmctld aborts jobs whose GPUs no longer fit"
        elif key == "port":
            unsafe, why = DAEMONS, "running steps look for slurmd at the old port"
        if key in ("feature", "features", "weight", "state", "reason"):
            changes.append(Change("slurm.conf", "node %s %s" % (fold(names), key), before, after, RECONFIGURE,
                                  RECONFIGURE, (), False, "taken at a reconfigure", "scontrol(1) reconfigure", False))
            continue
        source = _NODE_SOURCE
        if unsafe and key != "port":
            source += "; source slurmctld/read_config.c _restore_job_dependencies(), valid_job_resources()"
        changes.append(Change("slurm.conf", "node %s %s" % (fold(names), key), before, after, RESTART,
                              RESTART if concerns_me else RECONFIGURE, unsafe, concerns_me and key not in _ADDRESS,
                              why, source, False))
    return changes


def _partitions(old, new):
    # type: (dict[str, dict[str, str]], dict[str, dict[str, str]]) -> list[Change]
    changes = []
    for name in sorted(set(old) | set(new)):
        if name not in new:
            changes.append(Change("slurm.conf", "partition %s" % name, "there", None, RECONFIGURE, NOTHING,
                                  ("slurmctld",), False, "jobs that use a deleted partition are cancelled",
                                  _conf5("PARTITION CONFIGURATION"), True))
        elif name not in old:
            changes.append(Change("slurm.conf", "partition %s" % name, None, "there", RECONFIGURE, NOTHING, (), False,
                                  "taken at a reconfigure", _conf5("PARTITION CONFIGURATION"), False))
        else:
            for key in sorted(set(old[name]) | set(new[name])):
                before, after = old[name].get(key), new[name].get(key)
                if before is None or after is None or not _same(before, after):
                    changes.append(Change("slurm.conf", "partition %s %s" % (name, key), before, after, RECONFIGURE,
                                          NOTHING, (), False, "taken at a reconfigure",
                                          _conf5("PARTITION CONFIGURATION"), False))
    return changes


def _slurm_conf(old, new, version, node, shown):
    # type: (str, str, str, str | None, Shown | None) -> list[Change]
    before, after = parse(old), parse(new)
    if shown is not None:
        before = running(before, after, shown)
    changes = _parameters("slurm.conf", before.parameters, after.parameters, version)
    changes += _nodes(before.nodes, after.nodes, node)
    changes += _partitions(before.partitions, after.partitions)
    if before.others != after.others:
        changes.append(Change("slurm.conf", "other lines", "; ".join(before.others) or None,
                              "; ".join(after.others) or None, RESTART, RESTART, DAEMONS, False,
                              "lines not understood here (DownNodes, NodeSet, Include, FrontEnd): taken to need the"
                              " most", _NODE_SOURCE, True))
    return changes


def _gres_conf(old, new, node):
    # type: (str, str, str | None) -> list[Change]
    before, after = parse_gres(old), parse_gres(new)
    changed = [name for name in sorted(set(before) | set(after)) if before.get(name) != after.get(name)]
    if not changed:
        return []
    mine = node is None or "" in changed or node in changed
    def shown(devices):
        # type: (dict[str, list[tuple[tuple[str, str], ...]]]) -> str | None
        rows = ["; ".join(" ".join("%s=%s" % pair for pair in device) for device in devices.get(name, []))
                for name in changed]
        return " | ".join(sorted(set(rows))) or None
    def without_cores(devices):
        # type: (dict[str, list[tuple[tuple[str, str], ...]]]) -> dict[str, list[tuple[tuple[str, str], ...]]]
        return {name: [tuple(p for p in device if p[0] not in ("cores", "cpus")) for device in listed]
                    for name, listed in devices.items()}
    only_cores = without_cores(before) == without_cores(after)
    # Jobs hold GPUs only where there were some: the devices of a new node, or a node's first ones, hurt none.
    held = any(before.get(name) for name in changed)
    names = fold(name for name in changed if name) or "every node"
    return [Change("gres.conf", "devices of %s" % names, shown(before), shown(after), RESTART,
                   RESTART if mine else RECONFIGURE, ("slurmctld",) if held and not only_cores else (),
                   mine and not only_cores,
                   "slurmctld takes Cores= only when it starts" if only_cores
                   else "slurmctld and slurmd must agree on type and number; jobs whose GPUs no longer fit are aborted",
                   "gres.conf(5) Cores" if only_cores
                   else "gres.conf(5) Type; source slurmctld/read_config.c (invalid GRES configuration)", False)]


def _cgroup_rule(parameter, version):
    # type: (str, str) -> Rule
    if parameter.lower() == "cgroupplugin":
        return _both(_NEEDS_BOTH, "cgroup.conf(5) CgroupPlugin", ("slurmd",))
    return _DEFAULT_RULE._replace(source="cgroup.conf(5) DESCRIPTION")


def _topology_conf(old, new):
    # type: (str, str) -> list[Change]
    before = [sorted((k.lower(), v) for k, v in pairs(line)) for line in logical_lines(old)]
    after = [sorted((k.lower(), v) for k, v in pairs(line)) for line in logical_lines(new)]
    if before == after:
        return []
    return [Change("topology.conf", "switches", "%d lines" % len(before), "%d lines" % len(after), RECONFIGURE,
                   RECONFIGURE, (), False, "taken at a reconfigure", "topology.conf(5) DESCRIPTION", False)]


def classify(old, new, version, node=None, shown=None):
    # type: (dict[str, str], dict[str, str], str, str | None, Shown | None) -> list[Change]
    """Return the list of Change between two configurations; empty when they mean the same.

    old, new: {file name: text}, of slurm.conf, gres.conf, cgroup.conf and topology.conf; a missing one is empty.
    version: of Slurm, "22.05.8". node: the slurmd to judge for; None judges for any.
    shown: what the running slurmctld has (shown.Shown), where its slurm.conf may be newer than itself.
    A text that cannot be read is one Change that needs restarts of both and is unsafe: what it would do is not known.
    """
    release(version)
    changes = []
    for name in sorted(set(old) | set(new)):
        before, after = old.get(name, ""), new.get(name, "")
        if before == after and (shown is None or name != "slurm.conf"):
            continue
        try:
            if name == "slurm.conf":
                changes += _slurm_conf(before, after, version, node, shown)
            elif name == "gres.conf":
                changes += _gres_conf(before, after, node)
            elif name == "cgroup.conf":
                changes += _parameters(name, parse_flat(before), parse_flat(after), version, _cgroup_rule)
            elif name == "topology.conf":
                changes += _topology_conf(before, after)
            else:
                raise SlurmConfError("no rules for this file")
        except SlurmConfError as error:
            changes.append(Change(name, "the whole file", None, None, RESTART, RESTART, DAEMONS, True,
                                  "cannot be compared: %s" % error.args[0], "none", True))
    return changes


def unread(path, why):
    # type: (str, str) -> Change
    """Return the Change of a daemon of which nobody knows what it read: the file at `path` is newer than it."""
    return Change(path.rpartition("/")[2], "as the daemon read it", None, None, RESTART, RESTART, DAEMONS, False,
                  "%s is newer than the daemon, what it read is not recorded, and %s" % (path, why), "none", True)


def needed(changes, daemon):
    # type: (Iterable[Change], str) -> str
    """Return what a daemon needs for all changes together: nothing, reconfigure or restart."""
    actions = [getattr(change, daemon) for change in changes]
    return max(actions, key=lambda action: _ORDER[action]) if actions else NOTHING


def _difference(change):
    # type: (Change) -> str
    """Return where, what, and from what to what."""
    values = ""
    if change.old is not None or change.new is not None:
        values = ": %s -> %s" % (change.old if change.old is not None else "(not set)",
                                 change.new if change.new is not None else "(not set)")
    return "%s %s%s" % (change.file, change.subject, values)


def describe(change):
    # type: (Change) -> str
    """Return one line for people: where, what, from what to what, and why it needs what it needs."""
    return "%s (%s; %s)" % (_difference(change), change.reason, change.source)


# What to do with a daemon now.
#
# action: nothing, start, reconfigure or restart. pending: what it still needs but must not get now (nothing if done).
# blocked: why not, one line, or "". why: the lines that explain what it needs.
Plan = collections.namedtuple("Plan", "action pending blocked why")


def _number(jobs, verb):
    # type: (int, str) -> str
    return "1 job %ss" % verb if jobs == 1 else "%d jobs %s" % (jobs, verb)


def _loss(queued, jobs_in_cluster, jobs_queued):
    # type: (bool, int | None, int | None) -> str
    """Return why a change that loses jobs is not made now, or ""; queued: whether it loses those that wait, too."""
    if jobs_in_cluster is None or (queued and jobs_queued is None):
        return "it would lose jobs, and whether there are any is not known"
    told = [_number(jobs_in_cluster, "run")] if jobs_in_cluster else []
    told += [_number(jobs_queued, "wait")] if queued and jobs_queued else []
    if not told:
        return ""
    return "%s in the cluster, and it would lose them: repeat when %s, no permission overrides this" % (
        " and ".join(told), "there is none" if queued else "none runs")


def _refusal(need, unsafe, restart_ok, recorded, jobs_that_hurt, jobs_in_cluster, jobs_queued):
    # type: (str, list[Change], bool, bool, int | None, int | None, int | None) -> str
    """Return why an action is not allowed now, or ""."""
    if unsafe:
        return _loss(any(change.queued for change in unsafe), jobs_in_cluster, jobs_queued)
    if need == RECONFIGURE or (restart_ok and recorded):
        return ""
    permits = "slurm_restart_ok=true permits it" if recorded else (
        "it was started before the toolkit kept what it reads, so no permission overrides this")
    if jobs_that_hurt is None:
        return "whether jobs run is not known (no answer from slurmctld); %s" % permits
    if jobs_that_hurt:
        return "%s there; %s%s repeat when none runs" % (
            _number(jobs_that_hurt, "run"), permits, ", or" if recorded else ":")
    return ""


def _unsafe(daemon, need, changes):
    # type: (str, str, list[Change]) -> list[Change]
    """Return the changes that lose jobs if a daemon takes them now."""
    own = [change for change in changes if change.unsafe and getattr(change, daemon) != NOTHING]
    if daemon == "slurmd":
        return own  # what slurmctld waits for, too: a slurmd at a new port hears nothing of one at the old port
    # A reconfigure by slurmctld reaches every slurmd: what is unsafe for them is unsafe for it.
    return [change for change in changes if change.unsafe] if need == RECONFIGURE else [
        change for change in own if daemon in change.unsafe]


def decide(daemon, running, changes, causes, restart_ok, jobs_on_node=None, jobs_in_cluster=None, out_of_order="",
           announced="", jobs_queued=None, recorded=True, stake=""):
    # type: (str, bool, list[Change], list[str], bool, int | None, int | None, str, str, int | None, bool, str) -> Plan
    """Return the Plan for slurmctld or slurmd.

    running: whether it runs. changes: of classify. causes: further reasons to restart, as lines (binary replaced, ...).
    restart_ok: the permission. jobs_on_node, jobs_in_cluster, jobs_queued: numbers, of those that run on the node and
    in the cluster, and of those that wait; None for not known.
    recorded: whether it is known what the daemon read. Without that the permission counts for nothing while jobs run.
    stake: what a stopped daemon has of jobs, in words; "" for nothing.
    out_of_order: why slurmd must wait for slurmctld, or "".
    announced: what this run decided for slurmctld before (start, restart, or another action), "" if it did not. Both
    daemons keep to it, though jobs may have begun or ended since; but no job that runs now is lost for it.
    A stopped daemon is always started: that hurts no job, and it is how a node comes back. With something at stake, and
    with what would lose it in its new files, it starts with those that it had.
    """
    need = RESTART if causes else needed(changes, daemon)
    why = list(causes) + [describe(change) for change in changes if getattr(change, daemon) != NOTHING]
    unsafe = _unsafe(daemon, need, changes)
    if not running:
        held = out_of_order or (unsafe and stake)
        down = "%s does not run" % daemon
        return Plan(START, need, "%s: it starts with the files that it had" % held, [down] + why) if held else Plan(
            START, NOTHING, "", [down])
    if need == NOTHING:
        return Plan(NOTHING, NOTHING, "", [])
    hurt = jobs_in_cluster if daemon == "slurmctld" else jobs_on_node
    permitted = restart_ok or announced in (START, RESTART)
    refused = _refusal(need, unsafe, permitted, recorded, hurt, jobs_in_cluster, jobs_queued) or out_of_order
    if need == RESTART and not refused and announced not in ("", START, RESTART):
        refused = "this run decided before, when jobs ran or were not known, that it does not: repeat"
    if refused:
        return Plan(NOTHING, need, refused, why)
    return Plan(need, NOTHING, "", why)


def foretell(daemon, plan, changes, causes, how=""):
    # type: (str, Plan, list[Change], list[str], str) -> list[str]
    """Return lines for people: what would happen to a daemon and when, and for each reason what it needs.

    plan: the Plan for it, made of these changes and causes. how: what happens in words, where a plan has none for it.
    """
    if how:
        head = how
    elif plan.action == START:
        head = "does not run: it is started"
    elif plan.action != NOTHING:
        head = "%s now" % _DOES[plan.action]
    elif plan.pending != NOTHING:
        head = "has to %s and waits: %s" % (_TO_DO[plan.pending], plan.blocked)
    else:
        return ["goes on as it is"]
    lines = ["%s: restart" % cause for cause in causes]
    for change in changes:
        need = getattr(change, daemon)
        if need != NOTHING:
            careful = " when no job runs" if daemon in change.unsafe else ""
            lines.append("%s: %s%s (%s; %s)" % (_difference(change), need, careful, change.reason, change.source))
    return [head] + lines


def stops_first(changes):
    # type: (Iterable[Change]) -> bool
    """Whether slurmd has to be down while slurmctld restarts.

    Up to 20.02 slurmctld drains a node that registers with less than its new line says, for good (source
    slurmctld/node_mgr.c validate_node_specs); 22.05 marks it INVALID_REG until it registers well.
    """
    return any(change.stop_first for change in changes)
