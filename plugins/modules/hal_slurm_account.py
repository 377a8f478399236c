#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Keep QOS, accounts and users of Slurm's accounting as declared."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_slurm_account
short_description: Keep QOS, accounts and users of Slurm as declared
description:
  - Leaves a value as it is if its key is not given, and clears it if the key is null.
  - Leaves alone what the database has and nobody declared, and returns it in C(unmanaged). C(state=absent) deletes.
  - Reads everything with four C(sacctmgr show) queries (five if coordinators are declared), and runs one C(sacctmgr)
    command for each difference.
options:
  cluster:
    description: ClusterName of slurm.conf. It is added to the database if it is not there.
    type: str
    required: true
  qos:
    description:
      - Qualities of service. Keys are name, state, description, priority, flags (list), max_wall, max_tres_per_user,
        max_tres_per_job, max_jobs_per_user, max_submit_jobs_per_user, grp_tres, grp_jobs, preempt (list), usage_factor.
    type: list
    elements: dict
    default: []
  accounts:
    description:
      - Accounts. Keys are name, state, description, organization, parent, fairshare (number, or C(parent)), qos (list),
        default_qos, max_jobs, max_wall, grp_tres, grp_jobs, coordinators (list of users; others are taken away).
    type: list
    elements: dict
    default: []
  users:
    description:
      - Users. Keys are name, state, accounts (list; the first is the default one; others are taken away), admin_level
        (None, Operator, Administrator), fairshare (number, or C(parent)), qos (list), default_qos, max_jobs, max_wall,
        grp_tres, grp_jobs.
    type: list
    elements: dict
    default: []
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would be changed. Without sacctmgr or slurmdbd everything would.}
  diff_mode: {support: none, description: The differences are in C(steps).}
"""

EXAMPLES = r"""
- name: Keep accounts as declared
  hal_slurm_account:
    cluster: hal
    qos:
      - {name: prolonged, flags: [PartitionTimeLimit, DenyOnLimit], max_wall: 7-00:00:00}
    accounts:
      - {name: isl, description: Innovative Systems Lab, organization: ncsa}
    users:
      - {name: alice, accounts: [isl], qos: [normal, prolonged]}
"""

RETURN = r"""
steps:
  description: What was changed, one line each.
  type: list
  elements: str
  returned: always
unmanaged:
  description: What is in the database and not declared, in the lists qos, accounts and users.
  type: dict
  returned: always
"""

from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.slurm.accounting import (
    COORDINATORS, AccountingError, coordinator_steps, coordinators, coordinators_query, queries, read, steps, unmanaged)

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments


def ask(module, argv):
    # type: (Any, list[str]) -> str
    """Return the output of a query; end the module with one line when there is none."""
    status, out, err = module.run_command(["timeout", "60"] + argv, environ_update={"LC_ALL": "C"})
    if status != 0:
        module.fail_json(msg="%s: %s" % (" ".join(argv[:5]), (err or out).strip().splitlines()[-1:]))
    return out


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "cluster": {"type": "str", "required": True},
            "qos": {"type": "list", "elements": "dict", "default": []},
            "accounts": {"type": "list", "elements": "dict", "default": []},
            "users": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    cluster = module.params["cluster"]
    declared = [module.params[key] for key in ("qos", "accounts", "users")]
    if module.check_mode:
        status = 1
        if module.get_bin_path("sacctmgr"):
            status, _out, _err = module.run_command(["timeout", "20", "sacctmgr", "--noheader", "show", "cluster"])
        if status != 0:
            module.exit_json(changed=any(declared), steps=["slurmdbd does not answer yet: everything would be added"],
                             unmanaged={})
    done = []
    try:
        known = ask(module, ["sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=Cluster"]).split()
        if cluster not in known:
            done.append("cluster %s added" % cluster)
            if not module.check_mode:
                ask(module, ["sacctmgr", "--immediate", "add", "cluster", cluster])
        state = read([ask(module, argv) for argv in queries(cluster)])
        todo = steps(cluster, declared[0], declared[1], declared[2], state)
        if any(COORDINATORS in entry for entry in declared[1]):
            present = coordinators(ask(module, coordinators_query()), state.associations.values())
            todo += coordinator_steps(declared[1], present)
        for step in todo:
            done.append(step.text)
            if not module.check_mode:
                ask(module, step.argv)
    except AccountingError as error:
        module.fail_json(msg=error.args[0], steps=done)
    module.exit_json(changed=bool(done), steps=done, unmanaged=unmanaged(*(declared + [state])))


if __name__ == "__main__":
    main()
