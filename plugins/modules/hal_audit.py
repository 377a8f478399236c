#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Compare a node with its record, in one call."""
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: hal_audit
short_description: Compare a node with its record, in one call
description:
  - Says what differs from the node's record, which expectations do not hold, and what nobody declared in watched
    folders. Makes the standing checks.
  - C(playbooks/audit.yml) calls it. The action plugin of the same name adds the arguments, and makes findings of the
    answers. C(docs/audit.md) says how to read a report, and what to do then.
  - Only reads, in check mode as well. Any number of audits can run at once.
options:
  node:
    description: Name of the node in the inventory.
    type: str
    required: true
  record:
    description: The controller's copy of the node's record, as M(hal_record) returned it. It counts when the node's own
      is not usable.
    type: str
    default: ""
  planned:
    description:
      - What roles that never rolled out here would manage, as entries of a record without what was observed. They are
        compared like recorded ones, and are not kept.
      - V(text) is what a public file would have in it; it makes a diff possible.
    type: list
    elements: dict
    default: []
  planned_key:
    description: The key of the hashes of secret contents in O(planned), in base64. It is made for one call.
    type: str
    default: ""
  questions:
    description: Expectations, as M(hal_expect) sends them to a node.
    type: list
    elements: dict
    default: []
  roles:
    description: Compare only what these roles manage. The default is everything.
    type: list
    elements: str
    default: []
  watched:
    description:
      - Folders in which every file has to be recorded, or has to belong to a package.
      - Each has V(path), which may have patterns; a last part V(**) means all folders below.
      - V(names) are patterns of file names that matter, default all. V(accepted) are patterns of full paths that are
        known. V(what) says what the folder is, in words.
    type: list
    elements: dict
    default: []
  accepted:
    description:
      - For O(tree) and O(deep), patterns of full paths that are right whatever happens to them. They are left out
        before a list is cut, so they do not fill it.
    type: list
    elements: str
    default: []
  checks:
    description: Standing checks to make.
    type: list
    elements: str
    choices: [uid_0, kernel, packages, clock]
    default: []
  tree:
    description: Compare what C(/etc) and C(/boot) hold with what the record keeps of it, whoever put it there.
    type: bool
    default: false
  deep:
    description:
      - Verify every file of every package by RPM's digests. Read every file below C(/etc) and C(/boot), not only those
        with another size, change time or inode.
      - Everything else on the node goes first, so this may take long.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: It only reads.}
  diff_mode: {support: none, description: Differences are in RV(differences).}
requirements:
  - Python 2.7, or 3.6 or later, on the node. Nothing else. Without rpm, systemctl or getfacl what they tell is unknown.
notes:
  - Needs C(become). What it may not read is V(unreadable), and never clean.
author: HAL toolkit
'''

EXAMPLES = r'''
- name: Look at this node
  hal_audit:
    node: "{{ inventory_hostname }}"
    watched:
      - path: /etc/yum.repos.d
        names: ["*.repo"]
        what: package repositories
    checks: [uid_0, kernel, packages, clock]
  register: __audit_answer
'''

RETURN = r'''
record:
  description:
    - The record that the node was compared with. V(used) is own, copy or none.
    - V(status) of the node's own is ok, none, corrupt, foreign, newer (its format), older (than the copy) or differs
      (from the copy with the same serial).
    - V(packed) is there if its digest is not the copy's.
  returned: success
  type: dict
  sample:
    status: ok
    reason: ""
    used: own
    serial: 17
    digest: 5e88
    sealed_at: "2026-11-21T04:00:00Z"
    commit: abc1234
    roles: {}
differences:
  description: What is not as recorded, each with the role, task, source, commit, converged_at and units of its entry.
  returned: success
  type: list
  elements: dict
  sample:
    - resource: file:/etc/chrony.conf
      kind: mode
      attribute: mode
      should: "0644"
      is: "0666"
      note: ""
      role: time
      task: Write the configuration
      source: roles/time/tasks/configure.yml:2
      commit: abc1234
      converged_at: "2026-11-21T04:00:00Z"
      units: [chronyd.service]
planned:
  description: What is not as O(planned) says, as in RV(differences).
  returned: success
  type: list
  elements: dict
  sample: [{resource: file:/etc/chrony.conf, kind: changed, attribute: sha1, should: a, is: b, role: time}]
extra:
  description: Files in watched folders that are not recorded and belong to no package.
  returned: success
  type: list
  elements: dict
  sample: [{path: /etc/yum.repos.d/mine.repo, what: package repositories, type: file, note: "", when: 1795233600}]
packages:
  description: V(extra) are packages that no run installed. V(unknown) says why nobody can tell, or is empty.
  returned: success
  type: dict
  sample: {extra: [nmap-ncat-6.40-19.el7.x86_64], unknown: ""}
unmanaged:
  description:
    - What no role manages below C(/etc) and C(/boot), and is not as the record keeps it.
    - V(when) is the time of the path's last change, in seconds since the epoch; for a path that is gone, of its
      folder's. V(within) has the resources of the record that are lines of the file.
  returned: success
  type: list
  elements: dict
  sample:
    - path: /etc/group
      kind: changed
      attribute: entries
      should: ["wheel: gid 10, members alice"]
      is: ["wheel: gid 10, members alice mallory"]
      when: 1795233600
      within: []
      note: ""
      package: setup
package_files:
  description: With O(deep), files that are not as their package brought them, each with role, task and source of
    its package's entry.
  returned: success
  type: list
  elements: dict
  sample:
    - path: /usr/bin/sinfo
      differs: [content]
      package: slurm
      when: 1795233600
      role: slurm
      task: Install Slurm
      source: roles/slurm/tasks/install.yml:2
      commit: abc1234
      converged_at: "2026-11-21T04:00:00Z"
software:
  description: Versions of the recorded packages.
  returned: success
  type: dict
  sample: {slurm: 22.05.9-1.el7.x86_64}
checks:
  description: Results of the standing checks. Their status is pass, fail or unknown.
  returned: success
  type: list
  elements: dict
  sample: [{check: uid_0, status: fail, observed: [root, toor], expected: [root], reason: users with uid 0}]
answers:
  description: Results of the questions, in their order, as M(hal_expect) has them.
  returned: success
  type: list
  elements: dict
problems:
  description:
    - What the module could not look at, and is not a matter of one resource. If it is not empty, not everything was
      seen.
  returned: success
  type: list
  elements: str
more:
  description: By name of a list that got too long, how many items were left out.
  returned: success
  type: dict
  sample: {differences: 0, extra: 0}
counts:
  description: How much was looked at.
  returned: success
  type: dict
  sample: {resources: 312, questions: 80, watched_files: 61, unmanaged_files: 2811}
seconds:
  description: How long it took.
  returned: success
  type: float
cpu_seconds:
  description: CPU time of the module and of what it started.
  returned: success
  type: float
memory_mb:
  description: The most memory that the module, or something it started, had.
  returned: success
  type: float
'''

from ansible.module_utils.hal_node.audit.module import QuietModule, one_line
from ansible.module_utils.hal_node.audit.look import look


def main():
    # type: () -> None
    module = QuietModule(
        argument_spec={
            'node': {'type': 'str', 'required': True},
            'record': {'type': 'str', 'default': '', 'no_log': False},
            'questions': {'type': 'list', 'elements': 'dict', 'default': [], 'no_log': False},
            'planned': {'type': 'list', 'elements': 'dict', 'default': [], 'no_log': False},
            'planned_key': {'type': 'str', 'default': '', 'no_log': True},
            'roles': {'type': 'list', 'elements': 'str', 'default': []},
            'watched': {'type': 'list', 'elements': 'dict', 'default': []},
            'accepted': {'type': 'list', 'elements': 'str', 'default': []},
            'checks': {'type': 'list', 'elements': 'str', 'default': [],
                       'choices': ['uid_0', 'kernel', 'packages', 'clock']},
            'tree': {'type': 'bool', 'default': False},
            'deep': {'type': 'bool', 'default': False},
        },
        supports_check_mode=True,
    )
    try:
        answer = look(module.params)
    except Exception as error:  # noqa: B902 - one line, whatever it is: arguments may hold what a traceback must not show
        module.fail_json(msg=one_line('this node could not be audited', error), invocation={})
    module.exit_json(changed=False, invocation={}, **answer)


if __name__ == '__main__':
    main()
