#!/usr/bin/python
"""Stands in for the node: keeps requests in a folder of the test's and answers as hal_record does."""

import base64
import hashlib
import json
import os
import zlib

from ansible.module_utils.basic import AnsibleModule


def main() -> None:
    """Keep one request."""
    kinds = {"node": "str", "run": "dict", "entries": "list", "roles": "dict", "reached": "list", "skipped": "list"}
    kinds |= {"windows": "list", "handled": "list", "copy": "str", "rollout": "str"}
    module = AnsibleModule(argument_spec={name: {"type": kind} for name, kind in kinds.items()})
    folder = os.environ["STAND_IN_REQUESTS"]
    if os.path.exists(os.path.join(folder, "broken")):
        module.fail_json(msg="no space left on the node")
    os.makedirs(folder, exist_ok=True)  # of several nodes at once
    number = len([name for name in os.listdir(folder) if name.startswith(module.params["node"] + ".")]) + 1
    data = json.dumps(module.params, sort_keys=True).encode()
    with open(os.path.join(folder, f"{module.params['node']}.{number:03d}.json"), "wb") as stream:
        stream.write(data)
    module.exit_json(
        changed=False,
        serial=number,
        digest=hashlib.sha256(data).hexdigest(),
        problems=[],
        record=base64.b64encode(zlib.compress(data)).decode(),
        observed=len(module.params["entries"]),
    )


if __name__ == "__main__":
    main()
