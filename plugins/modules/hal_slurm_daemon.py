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
