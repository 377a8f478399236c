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
  - Compares the configuration that the running daemon has read with its files. Says for every difference what it needs
    (nothing, a reconfigure, a restart), and does the least that is enough.
  - Restarts only if I(restart_ok) is true, or if no job runs that a restart could hurt (on this node for slurmd, in the
    cluster for slurmctld).
  - A change that would lose jobs waits until there is no such job, running or waiting, whatever I(restart_ok) says.
  - New files wait in I(staged_dir), and are put in place when the daemon takes them, not before. What is not allowed
    now is returned as C(pending). Until then the daemon keeps its configuration, and its files stay as they are.
  - A stopped daemon is unmasked, enabled and started. If the new files would lose some of its jobs, it is started with
    the files that it had.
  - If slurmctld set this node DOWN because it did not answer, slurmd is restarted by the same rules, and registers
    again.
  - Copies in I(record_dir) tell what the daemon has read. A drop-in of its unit writes them at every start, this module
    after a reconfigure.
  - Without valid copies, as on a machine that was configured otherwise, files that are older than the daemon count as
    read. If files are newer, slurmctld shows what it has read. What slurmd has read is not known, which counts as a
    change that loses jobs; while jobs run, I(restart_ok) does not help then.
options:
  name:
    description: The daemon. Its unit has the same name.
    type: str
    required: true
    choices: [slurmctld, slurmd, slurmdbd]
  files:
    description: Full paths of the configuration files that it reads.
    type: list
    elements: path
    required: true
  staged_dir:
    description: Directory in which the new I(files) wait, with the same names. Not used for slurmdbd.
    type: path
  unit_files:
    description: Drop-ins of its unit. If one is newer than the daemon, the daemon needs a restart.
    type: list
    elements: path
    default: []
  record_dir:
    description:
      - Directory with copies of I(files) as the daemon read them. Not used for slurmdbd, whose file has a password.
    type: path
  version:
    description: Slurm's version. It decides what needs a restart.
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
      - C(plan), for slurmctld, only says what C(apply) would do now. Give its C(action) to the nodes and to C(apply) as
        I(announced), so that all keep to one decision.
      - C(stop_first), for slurmd, only stops slurmd if slurmctld is about to (re)start with another line for this node.
        C(apply) starts it again. If it registered with the old line, slurmctld would drain the node.
    type: str
    choices: [apply, plan, stop_first]
    default: apply
  announced:
    description:
      - The C(action) that C(plan) returned on the controller in this run. An announced restart is done even if jobs
        began since, unless it would lose them. A restart that was not announced is not done.
    type: str
    choices: [nothing, start, reconfigure, restart]
  planned:
    description:
      - For check mode only, the files that the run would write, like C(files) of M(hal_files). Those of I(staged_dir),
        I(files) and I(unit_files) count as written. A file without C(content) changes, but nobody says to what.
    type: list
    elements: dict
    default: []
  wait_seconds:
    description: How long a started daemon may take to answer, and slurmctld to hear of a slurmd.
    type: int
    default: 45
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would be done and changes nothing.}
  diff_mode: {support: full, description: "Shows what happens to the daemon, and because of which line."}
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
    - What was done, or would be in check mode and with C(plan); nothing, start, reconfigure, restart or stop.
  type: str
  returned: always
pending:
  description: What the daemon still needs; nothing, reconfigure or restart.
  type: str
  returned: always
blocked:
  description: Why that was not done now. Empty when nothing is pending.
  type: str
  returned: always
why:
  description: One line for each reason. A configuration change names file, parameter, values, reason and Slurm's page.
  type: list
  elements: str
  returned: always
foretold:
  description:
    - For people. First what would happen to the daemon, and when; then because of which line of which file.
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
  description: What was changed on the unit (unmasked, enabled).
  type: list
  elements: str
  returned: always
"""

from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.change import NOTHING, RESTART, START, foretell
from ansible.module_utils.hal_node.slurm.daemon.act import act, wait_until_known
from ansible.module_utils.hal_node.slurm.daemon.daemon import Daemon
from ansible.module_utils.hal_node.slurm.daemon.plan import plan_of, stops_now


def main():
    # type: () -> None
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

    if daemon.unit.state["LoadState"] == "not-found":
        if not module.check_mode:
            module.fail_json(msg="%s: there is no unit %s; is its package installed?" % (daemon.name, daemon.unit.name))
        if phase == "apply":
            result.update(changed=True, action=START, unit_changes=["enabled"],
                          why=["%s is not installed" % daemon.name],
                          foretold=["is not installed: it is installed and started"])
        module.exit_json(**result)

    plan, changes, causes = plan_of(daemon)
    if phase == "plan":
        result.update(action=plan.action, pending=plan.pending, blocked=plan.blocked, why=plan.why)
        module.exit_json(**result)
    if phase == "stop_first":
        if stops_now(daemon, plan, changes):
            if not module.check_mode:
                daemon.unit.systemctl("stop", daemon.unit.name)
            result.update(changed=True, action="stop", why=plan.why)
        module.exit_json(**result)

    stopped = "stops before slurmctld restarts, and is started after it" if stops_now(daemon, plan, changes) else ""
    foretold = foretell(daemon.name, plan, changes, causes, stopped)
    if module.check_mode:
        result["foretold"] = foretold
    if module._diff:
        result["diff"] = {"prepared": "%s %s\n" % (daemon.name, "\n  ".join(foretold))}
    result["unit_changes"] = daemon.unit.prepare()
    placed = daemon.new_files.place(module) if plan.pending == NOTHING else []
    if plan.action != NOTHING and not module.check_mode:
        act(daemon, plan.action)
    elif plan.action == NOTHING and plan.pending == NOTHING and (changes or placed or daemon.recorded() is None):
        daemon.note()
    if daemon.name == "slurmd" and daemon.unit.running and not module.check_mode:
        wait_until_known(daemon)
    result.update(changed=plan.action != NOTHING or bool(result["unit_changes"] or placed), action=plan.action,
                  pending=plan.pending, blocked=plan.blocked, why=plan.why, placed=placed,
                  accounting=daemon.accounting)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
