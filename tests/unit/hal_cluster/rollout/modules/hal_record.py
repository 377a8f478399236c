#!/usr/bin/python
"""Stands in for the module of this name: roles alone are recorded, and the rollout lets the node go as it does."""

import base64
import hashlib
import json
import os
import zlib

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hal_node import rollout_lock as hal_rollout_lock


def main() -> None:
    """Answer as if a record had been written."""
    kinds = {"node": "str", "run": "dict", "entries": "list", "roles": "dict", "reached": "list", "skipped": "list"}
    kinds |= {"windows": "list", "handled": "list", "copy": "str", "rollout": "str"}
    module = AnsibleModule(argument_spec={name: {"type": kind} for name, kind in kinds.items()})
    hal_rollout_lock.FOLDER = os.path.join(os.environ["STAND_IN_NODE"], "hal-rollout")
    released = hal_rollout_lock.release(module.params["rollout"])
    content = json.dumps({"roles": module.params["roles"]}).encode()
    record, digest = base64.b64encode(zlib.compress(content)).decode(), hashlib.sha256(content).hexdigest()
    module.exit_json(changed=False, serial=1, digest=digest, problems=[], record=record, observed=1, released=released)


if __name__ == "__main__":
    main()
