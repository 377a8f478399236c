#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Hold a node for one rollout at a time."""
from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r'''
---
module: hal_rollout
short_description: Hold a node for one rollout at a time
description:
  - Notes on the node which rollout holds it. Refuses a second rollout, and says who holds the node, from where, and
    since when.
  - In a play, use only O(state=free). The callback C(hal_rollout) uses the other states when a rollout begins and ends.
  - Replaces a holder whose process is gone, if the same controller asks and can see that. Replaces a holder of another
    controller only with O(take_over).
  - "How you use it: C(docs/operations.md), Two rollouts at once."
options:
  state:
    description:
      - V(held) holds the node for the rollout O(holder).
      - V(released) releases the node, if O(run) holds it.
      - V(free) changes nothing, and fails while a rollout holds the node.
    type: str
    choices: [held, released, free]
    required: true
  holder:
    description:
      - The rollout. Has V(run), V(user), V(host), V(machine), V(boot), V(namespace), V(pid), V(start), V(since),
        V(command).
    type: dict
  run:
    description: The rollout that releases the node.
    type: str
    default: ''
  former:
    description: The mark of a holder that has ended, as this module returned it. The action plugin sets it.
    type: str
    default: ''
  take_over:
    description:
      - Whether to replace a holder that cannot be seen from here, such as one of a controller that is gone.
      - With O(state=free), whether to count the node as free then.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Only asks.}
  diff_mode: {support: none, description: There is nothing to show.}
requirements:
  - Python 2.7, or 3.6 or later, on the node. Nothing else.
notes:
  - Needs C(become).
author: HAL toolkit
'''

EXAMPLES = r'''
- name: Refuse a node that is being rolled out
  hal_rollout:
    state: free
'''

RETURN = r'''
held:
  description: Whether the rollout of O(holder) holds the node now.
  returned: success
  type: bool
other:
  description: Who holds the node, or held it before. Empty for nobody.
  returned: success
  type: dict
'''

from ansible.module_utils.hal_node.audit.module import QuietModule, one_line
from ansible.module_utils.hal_node.rollout_lock import RolloutError, answer


def main():
    # type: () -> None
    """Run the module."""
    module = QuietModule(
        argument_spec={
            "state": {"type": "str", "choices": ["held", "released", "free"], "required": True},
            "holder": {"type": "dict"},
            "run": {"type": "str", "default": ""},
            "former": {"type": "str", "default": ""},
            "take_over": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    try:
        said = answer(module.params, module.check_mode)
    except RolloutError as error:
        module.fail_json(msg="%s" % error, invocation={})
    except Exception as error:  # noqa: B902 - one line, whatever it is
        module.fail_json(msg=one_line("it cannot be told who rolls out this node", error), invocation={})
    module.exit_json(changed=False, invocation={}, **said)


if __name__ == "__main__":
    main()
