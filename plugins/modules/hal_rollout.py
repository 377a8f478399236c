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
  - Notes on the node which rollout holds it, and refuses a second one with who, where from and since when.
  - A holder whose process is gone is replaced, where the same controller asks and can see that.
  - A holder of another controller is replaced only with O(take_over).
  - The callback C(hal_rollout) calls it when a rollout begins and ends. Plays only ask, with O(state=free).
  - "How it is used: C(docs/operations.md), Two rollouts at once."
options:
  state:
    description:
      - V(held) holds the node for the rollout O(holder).
      - V(released) lets it go, if O(run) holds it.
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
    description: The rollout that lets go.
    type: str
    default: ''
  former:
    description: The mark of a holder that is over, as this module returned it. Set by the action plugin.
    type: str
    default: ''
  take_over:
    description:
      - Replace a holder that cannot be seen from here, such as one of a controller that is gone.
      - With O(state=free), count the node as free then.
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
