#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Bring a Slurm daemon to run with the configuration that its files hold, without hurting running jobs."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_slurm_daemon
short_description: Run a Slurm daemon with the configuration that its files hold
description:
  - Compares the configuration that the running daemon read with its files, says for every difference what it needs
    (nothing, a reconfigure, a restart) and does the least that is needed.
  - A restart is done only if I(restart_ok) is true or no job runs that it could hurt (on this node for slurmd, in the
    cluster for slurmctld). A change that would lose jobs waits until there is none that it would lose, running or
    waiting, whatever I(restart_ok) says.
  - What is not allowed now is returned as C(pending); the daemon goes on with the configuration it has, and its files
    stay as they are. New files wait in I(staged_dir), and are put in place when the daemon takes them, not before.
  - A stopped daemon is unmasked, enabled and started. If it has jobs of which the new files would lose some, it is
    started with the files that it had.
  - A slurmd whose node slurmctld set DOWN because it did not answer is restarted by the same rules: then it registers.
  - What the daemon runs with is known from copies in I(record_dir), which a drop-in of its unit writes at every start
    and this module after a reconfigure. Without valid copies, as on a machine that was configured otherwise, it is what
    the files say that are older than the daemon. Of files that are newer, what slurmctld shows counts for slurmctld;
    what slurmd has read is not known, which counts as a change that loses jobs. Then I(restart_ok) counts for nothing
    while jobs run.
options:
  name:
    description: The daemon; its unit has the same name.
    type: str
    required: true
    choices: [slurmctld, slurmd, slurmdbd]
  files:
    description: Configuration files that it reads, by full path.
    type: list
    elements: path
    required: true
  staged_dir:
    description: Directory in which the new I(files) wait, by the same names. Not used for slurmdbd.
    type: path
  unit_files:
    description: Drop-ins of its unit. One that is newer than the daemon needs a restart.
    type: list
    elements: path
    default: []
  record_dir:
    description:
      - Directory with the copies of I(files) as the daemon read them. Not used for slurmdbd, whose file has a password.
    type: path
  version:
    description: Slurm's version, for the rules on what needs a restart.
    type: str
    required: true
  node:
    description: This node's name in slurm.conf. Needed for slurmd.
    type: str
  restart_ok:
    description: Permission to restart while jobs run.
    type: bool
    default: false
  phase:
    description:
      - C(apply) does what is needed.
      - C(plan), for slurmctld, only says what C(apply) would do now. The nodes and C(apply) get its I(action) as
        I(announced), so that all of them keep to one decision.
      - C(stop_first), for slurmd, only stops it where slurmctld is about to (re)start with another line for this node
        (C(apply) starts it again). A slurmd that registers with the old line would get its node drained.
    type: str
    choices: [apply, plan, stop_first]
    default: apply
  announced:
    description:
      - The I(action) that C(plan) returned on the controller in this run. An announced restart is done though jobs
        began since, unless it would lose them; one that was not announced is not done.
    type: str
    choices: [nothing, start, reconfigure, restart]
  planned:
    description:
      - In check mode, the files that the run would write, as C(files) of M(hal_files); those of I(staged_dir), I(files)
        and I(unit_files) are taken for what is there. One without C(content) changes, and nobody says to what.
      - Ignored otherwise.
    type: list
    elements: dict
    default: []
  wait_seconds:
    description: How long a started daemon may take until it answers, and slurmctld until it has heard of a slurmd.
    type: int
    default: 45
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would be done and changes nothing.}
  diff_mode: {support: full, description: Shows what happens to the daemon for which line.}
"""

EXAMPLES = r"""
- name: Run slurmd with the configuration
  hal_slurm_daemon:
    name: slurmd
    node: hal05
    version: 20.02.7
    record_dir: /var/lib/hal/slurm/slurmd
    staged_dir: /var/lib/hal/slurm/next
    files: [/etc/slurm/slurm.conf, /etc/slurm/gres.conf, /etc/slurm/cgroup.conf, /etc/slurm/topology.conf]
    restart_ok: "{{ slurm_restart_ok }}"
"""

RETURN = r"""
action:
  description:
    - What was done (or would be, in check mode and with C(plan)); nothing, start, reconfigure, restart or stop.
  type: str
  returned: always
pending:
  description: What the daemon still needs; nothing, reconfigure or restart.
  type: str
  returned: always
blocked:
  description: Why that was not done now; empty when nothing is pending.
  type: str
  returned: always
why:
  description: One line for each reason; a configuration change names file, parameter, values, reason and Slurm's page.
  type: list
  elements: str
  returned: always
foretold:
  description:
    - For people, what would happen to the daemon and when, and then for which line of which file.
  type: list
  elements: str
  returned: in check mode, with C(apply)
accounting:
  description: Whether the configuration in place has accounting by slurmdbd.
  type: bool
  returned: always
placed:
  description: The configuration files that were put in place.
  type: list
  elements: str
  returned: always
unit_changes:
  description: What was changed on the unit; unmasked, enabled.
  type: list
  elements: str
  returned: always
"""

import os
import re
import time

from ansible.module_utils.hal_node.slurm.shown import read as read_shown
from ansible.module_utils.common.text.converters import to_text
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.change import (NOTHING, RESTART, START, Plan, classify, decide, foretell,
                                                  stops_first, unread)
from ansible.module_utils.hal_node.slurm.conf import SlurmConfError, expand, parse
from ansible.module_utils.hal_node.slurm.drains import BUSY
from ansible.module_utils.hal_node.slurm.nodes import has_to_register, read_nodes
from ansible.module_utils.hal_node.slurm.placed import Files, at_stake, text_of
from ansible.module_utils.hal_node.slurm.process import NoAnswer, epoch, unit_properties

PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "MainPID", "ExecMainStartTimestampMonotonic",
              "NeedDaemonReload")
WAITING = "PENDING"
# scontrol's name for a node's value, by the key in slurm.conf.
SHOWN = {"cpus": "CPUTot", "realmemory": "RealMemory", "gres": "Gres", "sockets": "Sockets",
         "corespersocket": "CoresPerSocket", "threadspercore": "ThreadsPerCore"}
# States of a node that slurmctld has not heard of since its slurmd started; 20.02 writes the mark, 22.05 the word.
SILENT = re.compile(r"NOT_RESPONDING|UNK|\*")


class Daemon(object):
    """One daemon on this node: what it runs with, what it needs, and the means to change it."""

    def __init__(self, module):
        self.module = module
        params = module.params
        self.name = params["name"]
        self.unit = self.name + ".service"
        self.files = params["files"]
        self.record_dir = params["record_dir"] if self.name != "slurmdbd" else None
        self.node = params["node"]
        self.restart_ok = params["restart_ok"]
        self.announced = params["announced"] or ""
        self.unit_files = params["unit_files"]
        planned = params["planned"] if module.check_mode else []
        self.planned = {one["path"]: one.get("content") for one in planned}
        self.new_files = Files(self.files, params["staged_dir"] if self.record_dir else None, self.planned)
        self.state = self.unit_state()

    # --- commands

    def run(self, argv, seconds=20, conf=True):
        """Run a read-only or systemctl command with a time limit; return (exit status, output, error output)."""
        environ = {"LC_ALL": "C"}
        if conf and self.record_dir and os.path.exists(self.copy("slurm.conf")):
            # Ask where the running daemons listen, not where the new file says they will.
            environ["SLURM_CONF"] = self.copy("slurm.conf")
        return self.module.run_command(["timeout", str(seconds)] + argv, environ_update=environ)

    def systemctl(self, *words):
        """Run systemctl; a failure ends the module with what the daemon last logged."""
        status, out, err = self.module.run_command(["systemctl"] + list(words))
        if status != 0:
            self.fail("systemctl %s: %s" % (" ".join(words), (err or out).strip()))

    def fail(self, message):
        """End with one line, and the daemon's last own lines beside it."""
        _status, out, _err = self.module.run_command(
            ["journalctl", "--unit", self.unit, "--lines", "15", "--no-pager", "--output", "cat"])
        self.module.fail_json(msg="%s: %s" % (self.name, message), log=out.splitlines()[-15:])

    def unit_state(self):
        """Return systemd's properties of the unit; a missing one is "not-found". Without an answer the module ends."""
        try:
            return unit_properties(self.module, self.unit, PROPERTIES)
        except NoAnswer as error:
            return self.fail("%s. Repeat the run when the machine is less busy" % error)

    # --- what it runs with

    @property
    def running(self):
        """Whether the daemon runs."""
        return self.state["ActiveState"] in ("active", "reloading") and self.state["MainPID"] not in ("", "0")

    @property
    def started(self):
        """When it was started, in seconds since the epoch; comparable with file times to about 10 ms."""
        return epoch(self.state["ExecMainStartTimestampMonotonic"])

    def copy(self, path):
        """Return the place of the record's copy of a file."""
        return os.path.join(self.record_dir, os.path.basename(path))

    def recorded(self):
        """Return {file name: text} that the daemon read, or None when the copies are not of this process."""
        if not self.record_dir or not os.path.exists(self.copy("slurm.conf")):
            return None
        # The drop-in copies just before the start, so older copies are of an earlier process.
        if os.path.getmtime(self.copy("slurm.conf")) < self.started - 30:
            return None
        return {os.path.basename(path): text_of(self.copy(path)) for path in self.files}

    def record(self):
        """Note that the daemon runs with the files as they are now."""
        if not self.record_dir or self.module.check_mode or self.module.params["phase"] == "plan":
            return
        if not os.path.isdir(self.record_dir):
            os.makedirs(self.record_dir, 0o755)
        for path in self.files:
            temporary = self.copy(path) + ".new"
            with open(temporary, "wb") as stream:
                stream.write(text_of(path).encode("utf-8"))
            os.rename(temporary, self.copy(path))

    def text(self, path):
        """Return a file's new text; in check mode the one that would be written."""
        return to_text(self.new_files.new(path) or b"", errors="replace")

    def would_be_written(self, path):
        """Return whether check mode leaves a file as it is that would be another."""
        planned = self.planned.get(path)
        return path in self.planned and (planned is None or to_text(planned) != text_of(path))

    def newness(self, path):
        """Say of a file of newer_than_daemon that it is newer."""
        return "%s %s" % (path, "would be written anew" if self.would_be_written(path) else "is newer than the daemon")

    def newer_than_daemon(self, paths):
        """Return those of the files that were (or would be) written after the daemon started."""
        return [path for path in paths if self.would_be_written(path)
                or (os.path.exists(path) and os.path.getmtime(path) > self.started)]

    def compare(self):
        """Return (changes, causes): what differs from the running configuration, and other reasons to restart."""
        if not self.running:
            return [], []
        causes = []
        program = self.module.get_bin_path(self.name)
        # The time of the change of the inode: packages keep the time at which a file was built. /proc/PID/exe would say
        # it too, but cannot be read of a daemon that changed its user where root lacks CAP_SYS_PTRACE.
        if program and os.stat(program).st_ctime > self.started:
            causes.append("%s was replaced after the daemon started" % program)
        causes += [self.newness(path) for path in self.newer_than_daemon(self.unit_files)]
        causes += self.unregistered()
        if not self.record_dir:
            return [], causes + ["%s, and what it read is not recorded" % self.newness(path)
                                 for path in self.newer_than_daemon(self.files)]
        return self.changes(), causes

    def changes(self):
        """Return what differs between the configuration that the daemon runs with and the new one."""
        now = {os.path.basename(path): self.text(path) for path in self.files}
        version = self.module.params["version"]
        before = self.recorded()
        if before is not None:
            return classify(before, now, version, self.node)
        before = {os.path.basename(path): text_of(path) for path in self.files}
        newer = self.newer_than_daemon(self.files)
        if not newer:
            return classify(before, now, version, self.node)
        if self.name == "slurmd":
            return [unread(newer[0], "slurmd does not show it")] + classify(before, now, version, self.node)
        shown = self.shown()
        if shown is None:
            return [unread(newer[0], "slurmctld does not show it")] + classify(before, now, version, self.node)
        return classify(before, now, version, self.node, shown)

    def shown(self):
        """Return the Shown of the running slurmctld, None when it does not answer."""
        said = [self.run(["scontrol", "--all", "--oneliner", "show", what])
                for what in ("config", "node", "partition")]
        if any(status != 0 for status, _out, _err in said):
            return None
        return read_shown(*[out for _status, out, _err in said])

    # --- jobs and the controller

    def jobs(self, node=None, states=BUSY):
        """Return how many jobs are in these states, on a node or in the cluster; None when slurmctld does not say."""
        argv = ["squeue", "--noheader", "--states", states, "--format", "%A"]
        if node:
            argv += ["--nodelist", node]
        status, out, _err = self.run(argv)
        return len(set(out.split())) if status == 0 else None

    def seen_by_controller(self, node):
        """Return what slurmctld says of a node as {key: value}, {} for an unknown node, None without an answer."""
        status, out, err = self.run(["scontrol", "--oneliner", "show", "node", node])
        if status == 0 and "NodeName=" in out:
            return dict(re.findall(r"(\w+)=(\S+)", out))
        return {} if "not found" in out + err or "Invalid node name" in out + err else None

    def unregistered(self):
        """Return why slurmd has to register with slurmctld again, as lines: by a restart, there is no other way."""
        if self.name != "slurmd" or self.module.params["phase"] != "apply":
            return []
        status, out, _err = self.run(["scontrol", "--oneliner", "show", "node", self.node])
        node = read_nodes(out).get(self.node) if status == 0 else None
        if not node or not has_to_register(node):
            return []
        return ["slurmctld has %s %s (%s) and asks it no more: slurmd registers again when it starts" % (
            self.node, node["state"], node["reason"])]

    def out_of_order(self, changes):
        """Return why slurmd has to wait for slurmctld, or "".

        slurmctld learns a new node line first: a slurmd that registers with another line gets its node drained.
        """
        if not changes or not any(change.slurmd == RESTART for change in changes):
            return ""
        nodes = parse(self.text(self.files[0])).nodes
        for change in changes:
            if change.subject == "nodes added" and self.seen_by_controller(expand(change.new)[0]) == {}:
                return "slurmctld does not know %s yet: it has to restart first" % change.new
        seen, mine = self.seen_by_controller(self.node), nodes.get(self.node, {})
        if not seen or not stops_first(changes):
            return ""
        for key, shown in sorted(SHOWN.items()):
            if key in mine and shown in seen and re.sub(r"\(.*?\)", "", seen[shown]) != mine[key]:
                return "slurmctld runs with %s=%s for this node, the file says %s: slurmctld has to restart first" % (
                    shown, seen[shown], mine[key])
        return ""

    # --- changing it

    def prepare_unit(self):
        """Unmask and enable the unit; return what that changed."""
        done = []
        if self.state["LoadState"] == "masked":
            done.append("unmasked")
        if self.state["UnitFileState"] not in ("enabled", "enabled-runtime", "static", "generated"):
            done.append("enabled")
        if not self.module.check_mode:
            if "unmasked" in done:
                self.systemctl("unmask", self.unit)
            if self.state["NeedDaemonReload"] == "yes" or "unmasked" in done:
                self.systemctl("daemon-reload")
            if "enabled" in done:
                self.systemctl("enable", self.unit)
        return done

    def answers(self):
        """Return whether the daemon does its work, not only whether its process lives."""
        if self.name == "slurmctld":
            status, out, _err = self.run(["scontrol", "ping"], 5, conf=False)
            return status == 0 and " UP" in out
        if self.name == "slurmdbd":
            return self.run(["sacctmgr", "--noheader", "--parsable2", "show", "cluster"], 5, conf=False)[0] == 0
        seen = self.seen_by_controller(self.node)
        # Without slurmctld a slurmd waits for it; that is as far as it can get.
        return seen is None or not seen or not SILENT.search(seen.get("State", ""))

    def wait(self):
        """Wait until the daemon answers; end the module if it stopped. slurmd may stay down for other reasons."""
        end = time.time() + self.module.params["wait_seconds"]
        time.sleep(0.5)
        while True:
            self.state = self.unit_state()
            if not self.running:
                self.fail("it was started and ended at once")
            if self.answers():
                return
            if time.time() > end:
                if self.name != "slurmd":
                    self.fail("it runs but does not answer after %d s" % self.module.params["wait_seconds"])
                return
            time.sleep(0.5)

    def wait_until_known(self):
        """Wait until slurmctld has heard of this node: after its own restart it knows none until they answer it."""
        end = time.time() + self.module.params["wait_seconds"]
        while time.time() < end:
            seen = self.seen_by_controller(self.node)
            if not seen or "UNK" not in seen.get("State", ""):
                return
            time.sleep(0.5)

    def act(self, action):
        """Do start, restart or reconfigure, wait for the daemon and record what it runs with."""
        if action == "reconfigure":
            if self.name == "slurmctld":
                status, out, err = self.run(["scontrol", "reconfigure"], 60, conf=False)
                if status != 0:
                    self.fail("scontrol reconfigure: %s" % (err or out).strip())
            else:
                self.systemctl("reload", self.unit)
        else:
            self.systemctl("reset-failed", self.unit)
            self.systemctl(action, self.unit)
            self.wait()
        self.record()

    def plan_of_stopped(self):
        """Return (Plan, changes, causes) for a daemon that does not run; what it would start with is compared."""
        if not self.new_files.differing() or not os.path.exists(self.files[0]):
            return decide(self.name, False, [], [], self.restart_ok), [], []
        changes = classify({os.path.basename(path): text_of(path) for path in self.files},
                           {os.path.basename(path): self.text(path) for path in self.files},
                           self.module.params["version"], self.node)
        # Whom it would ask is in the record of an earlier rollout.
        order = self.out_of_order(changes) if self.name == "slurmd" and os.path.exists(self.copy("slurm.conf")) else ""
        stake = at_stake(self.name, text_of(self.files[0]))
        return decide(self.name, False, changes, [], self.restart_ok, out_of_order=order, stake=stake), changes, []

    def plan(self):
        """Return (Plan, changes, causes) for what is there now."""
        if self.record_dir and not self.running:
            return self.plan_of_stopped()
        changes, causes = self.compare()
        if self.name == "slurmdbd":
            # slurmctld keeps what it cannot deliver, so a restart of slurmdbd hurts no job.
            if not self.running:
                return Plan(START, NOTHING, "", ["slurmdbd does not run"]), [], []
            return Plan(RESTART if causes else NOTHING, NOTHING, "", causes), [], causes
        if not (changes or causes):
            return decide(self.name, True, [], [], self.restart_ok), [], []
        on_node = self.jobs(self.node) if self.name == "slurmd" else None
        announced, order = self.announced, ""
        if self.name == "slurmd" and self.module.params["phase"] == "apply":
            # Only check mode says here what was announced: by now slurmctld would have its new lines, and a slurmd that
            # stops first would be down.
            ahead = self.module.check_mode and announced in (START, RESTART)
            order = "" if ahead else self.out_of_order(changes)
            announced = announced if ahead and stops_first(changes) else ""
        queued = self.jobs(states=WAITING) if any(change.queued for change in changes) else None
        return decide(self.name, True, changes, causes, self.restart_ok, on_node, self.jobs(), order, announced,
                      queued, recorded=self.recorded() is not None), changes, causes

    def stops_now(self, plan, changes):
        """Return whether slurmd has to be down because slurmctld is about to learn another line for its node."""
        return (self.running and self.announced in (START, RESTART) and plan.action == RESTART
                and stops_first(changes))


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True, "choices": ["slurmctld", "slurmd", "slurmdbd"]},
            "files": {"type": "list", "elements": "path", "required": True},
            "staged_dir": {"type": "path"},
            "unit_files": {"type": "list", "elements": "path", "default": []},
            "record_dir": {"type": "path"},
            "version": {"type": "str", "required": True},
            "node": {"type": "str"},
            "restart_ok": {"type": "bool", "default": False},
            "phase": {"type": "str", "choices": ["apply", "plan", "stop_first"], "default": "apply"},
            "announced": {"type": "str", "choices": [NOTHING, START, "reconfigure", RESTART]},
            "planned": {"type": "list", "elements": "dict", "default": []},
            "wait_seconds": {"type": "int", "default": 45},
        },
        required_if=[("name", "slurmd", ("node", "record_dir")), ("name", "slurmctld", ("record_dir",))],
        supports_check_mode=True,
    )
    daemon = Daemon(module)
    result = {"changed": False, "action": NOTHING, "pending": NOTHING, "blocked": "", "why": [], "unit_changes": [],
              "accounting": False, "placed": []}
    phase = module.params["phase"]

    if daemon.state["LoadState"] == "not-found":
        if not module.check_mode:
            module.fail_json(msg="%s: there is no unit %s; is its package installed?" % (daemon.name, daemon.unit))
        if phase == "apply":
            result.update(changed=True, action=START, unit_changes=["enabled"],
                          why=["%s is not installed" % daemon.name],
                          foretold=["is not installed: it is installed and started"])
        module.exit_json(**result)

    plan, changes, causes = daemon.plan()
    if phase == "plan":
        result.update(action=plan.action, pending=plan.pending, blocked=plan.blocked, why=plan.why)
        module.exit_json(**result)
    if phase == "stop_first":
        if daemon.stops_now(plan, changes):
            if not module.check_mode:
                daemon.systemctl("stop", daemon.unit)
            result.update(changed=True, action="stop", why=plan.why)
        module.exit_json(**result)

    stopped = "stops before slurmctld restarts, and is started after it" if daemon.stops_now(plan, changes) else ""
    foretold = foretell(daemon.name, plan, changes, causes, stopped)
    if module.check_mode:
        result["foretold"] = foretold
    if module._diff:
        result["diff"] = {"prepared": "%s %s\n" % (daemon.name, "\n  ".join(foretold))}
    result["unit_changes"] = daemon.prepare_unit()
    placed = daemon.new_files.place(module) if plan.pending == NOTHING else []
    if plan.action != NOTHING and not module.check_mode:
        daemon.act(plan.action)
    elif plan.action == NOTHING and plan.pending == NOTHING and (changes or placed or daemon.recorded() is None):
        daemon.record()
    if daemon.name == "slurmd" and daemon.running and not module.check_mode:
        daemon.wait_until_known()
    result.update(changed=plan.action != NOTHING or bool(result["unit_changes"] or placed), action=plan.action,
                  pending=plan.pending, blocked=plan.blocked, why=plan.why, placed=placed,
                  accounting=has_accounting(text_of(daemon.files[0])))
    module.exit_json(**result)


def has_accounting(conf):
    """Return whether a slurm.conf has slurmdbd keep accounts; False for one that cannot be read."""
    try:
        return parse(conf).parameters.get("accountingstoragetype", ("", ""))[1].endswith("/slurmdbd")
    except SlurmConfError:
        return False


if __name__ == "__main__":
    main()
