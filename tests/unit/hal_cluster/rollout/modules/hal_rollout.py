#!/usr/bin/python
"""Stands in for the module of this name on one of several nodes that are all this machine: each has a folder."""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hal_node import rollout_lock as hal_rollout_lock


def main() -> None:
    """Answer as the real one does, in the node's own folder (conftest.Site)."""
    kinds = {"state": "str", "run": "str", "former": "str", "holder": "dict", "take_over": "bool"}
    module = AnsibleModule(argument_spec={name: {"type": kind} for name, kind in kinds.items()})
    hal_rollout_lock.FOLDER = os.path.join(os.environ["STAND_IN_NODE"], "hal-rollout")
    with open(os.path.join(os.environ["STAND_IN_NODE"], "asked"), "a") as log:
        log.write(f"{module.params['state']}\n")
    asked = {key: value if value is not None else "" for key, value in module.params.items()}
    try:
        module.exit_json(changed=False, **hal_rollout_lock.answer(asked, module.check_mode))
    except hal_rollout_lock.RolloutError as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
