#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Seal what a run managed on a node into the node's record."""
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: hal_record
short_description: Seal what a run managed on a node into the node's record
description:
  - You need not call it from a play. The callback C(hal_provenance) calls it at the end of a run.
  - Observes every resource that the run reached on the node, and merges it into C(/var/lib/hal/record.json). The audit
    compares the node with that record.
  - What the run did not reach keeps its older entry. An entry whose task is gone becomes orphaned.
  - The record is replaced as a whole or not at all. Only root can read it. It holds no secret; of files that not
    everybody may read it has keyed hashes.
  - C(docs/audit.md) describes the format of the record.
options:
  node:
    description: Name of the node in the inventory. A record of another node is put aside, and a new one is begun.
    type: str
    required: true
  run:
    description:
      - The run, with V(id), V(commit), V(started) and V(now). Times are seconds since the epoch by the controller's
        clock.
      - V(now) is when this was sent. V(windows) and V(changes) are corrected by the difference to the node's clock.
      - V(changes), as pairs of begin and end, is when tasks changed something. What changed below C(/etc) and C(/boot)
        at these times is kept as it is now, all else as it was kept before.
    type: dict
    required: true
  entries:
    description:
      - What the run managed, in this order. Each has V(resource), V(declared), V(role), V(task), V(source), V(secret),
        V(units), V(inputs_hash).
      - V(changed) says whether its task changed something, default true. If it did not, what is neither declared nor as
        recorded is not recorded anew, so that the audit goes on reporting it.
    type: list
    elements: dict
    default: []
  roles:
    description: For each role that was loaded, its V(inputs_hash) and V(tasks), the ids of all its tasks.
    type: dict
    default: {}
  reached:
    description: Ids of the tasks that ran and succeeded with all their items.
    type: list
    elements: str
    default: []
  skipped:
    description: Ids of the tasks that were skipped for a reason that may be different next time.
    type: list
    elements: str
    default: []
  windows:
    description: When tasks installed packages, as pairs of begin and end by the controller's clock.
    type: list
    elements: list
    default: []
  handled:
    description: Units that handlers restarted or reloaded.
    type: list
    elements: str
    default: []
  copy:
    description:
      - The record as the controller has it, compressed, in base64. It counts if the node's own is gone, damaged or
        older.
    type: str
    default: ''
  rollout:
    description: The rollout that releases the node when the record is written, see M(hal_rollout). Empty for none.
    type: str
    default: ''
attributes:
  check_mode: {support: none, description: Nothing is recorded in check mode. The module is skipped.}
  diff_mode: {support: none, description: The record is not shown.}
requirements:
  - Python 2.7, or 3.6 or later, on the node. Nothing else.
notes:
  - Needs C(become).
author: HAL toolkit
'''

EXAMPLES = r'''
- name: Seal what this run managed
  hal_record:
    node: "{{ inventory_hostname }}"
    run: {id: 7f3a, commit: abc1234, started: 1795233600, now: 1795233660}
    entries:
      - resource: file:/etc/chrony.conf
        declared: {state: present, mode: "0644", owner: root, group: root}
        role: time
        task: Write the configuration
        source: roles/time/tasks/configure.yml:2
        units: [chronyd.service]
    roles:
      time: {inputs_hash: 9c1e, tasks: ["time|roles/time/tasks/configure.yml|Write the configuration"]}
    reached: ["time|roles/time/tasks/configure.yml|Write the configuration"]
'''

RETURN = r'''
serial:
  description: The number of this seal of the node's record, counted from 1.
  returned: success
  type: int
  sample: 17
digest:
  description: SHA-256 of the record's bytes.
  returned: success
  type: str
record:
  description: The record, compressed, in base64.
  returned: success
  type: str
problems:
  description: What was wrong, though the record could be written.
  returned: success
  type: list
  elements: str
  sample: ["record.json was corrupt (not JSON): kept as /var/lib/hal/record.json.bad-1795233660, a new one is begun"]
observed:
  description: How many resources were observed.
  returned: success
  type: int
  sample: 42
released:
  description: Whether O(rollout) held the node and has released it.
  returned: success
  type: bool
'''

from ansible.module_utils.hal_node.audit.module import QuietModule, one_line
from ansible.module_utils.hal_node.audit.seal import SealError, seal
from ansible.module_utils.hal_node.rollout_lock import RolloutError, release


def released(run):
    # type: (str) -> bool
    """Let the node go. Whoever reads the answer sees that it could not be, and asks once more."""
    try:
        return bool(run) and release(run)
    except RolloutError:
        return False


def main():
    # type: () -> None
    module = QuietModule(
        argument_spec={
            'node': {'type': 'str', 'required': True},
            'run': {'type': 'dict', 'required': True},
            'entries': {'type': 'list', 'elements': 'dict', 'default': []},
            'roles': {'type': 'dict', 'default': {}},
            'reached': {'type': 'list', 'elements': 'str', 'default': []},
            'skipped': {'type': 'list', 'elements': 'str', 'default': []},
            'windows': {'type': 'list', 'elements': 'list', 'default': []},
            'handled': {'type': 'list', 'elements': 'str', 'default': []},
            'copy': {'type': 'str', 'default': ''},
            'rollout': {'type': 'str', 'default': ''},
        },
    )
    try:
        answer = seal(module.params)
    except SealError as error:
        module.fail_json(msg='%s' % error, invocation={})
    except Exception as error:  # noqa: B902 - one line, whatever it is: arguments may hold what a traceback must not show
        module.fail_json(msg=one_line('the record of this node was not written', error), invocation={})
    module.exit_json(changed=False, invocation={}, released=released(module.params['rollout']), **answer)


if __name__ == '__main__':
    main()
