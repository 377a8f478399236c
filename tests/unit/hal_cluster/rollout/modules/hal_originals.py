#!/usr/bin/python
"""Stands in for the node: keeps what it was asked in a folder of the test's, and answers as hal_originals does."""

import json
import os
from typing import Any

from ansible.module_utils.basic import AnsibleModule

ANSWERS: dict[str, dict[str, Any]] = {
    "kept": {"kept": ["file:/etc/x"], "absent": 0, "lost": [], "record": "none"},
    "planned": {"steps": [["file:/etc/x", "remove"]], "stays": [], "changed": [], "jobs": [], "serving": [], "kept": 1},
    "given_back": {"done": ["file:/etc/x: remove"], "left": [], "stayed": []},
}


def main() -> None:
    """Answer; in an answer of the test's own is what it says."""
    kinds = {"state": "str", "node": "str", "resources": "list", "roles": "list", "copy": "str", "most_mib": "int"}
    kinds |= {"lost_ok": "bool", "role": "str", "fingerprint": "str", "changed_ok": "bool"}
    module = AnsibleModule(
        argument_spec={name: {"type": kind} for name, kind in kinds.items()}, supports_check_mode=True
    )
    asked = module.params
    own = os.path.join(os.environ["STAND_IN_NODE"], "originals.json")
    answer = dict(ANSWERS[asked["state"]], changed=asked["state"] == "given_back")
    if asked["state"] == "planned":
        answer["fingerprint"] = f"of {asked['node']}"
    if os.path.exists(own):
        with open(own) as stream:
            answer.update(json.load(stream))
    with open(os.path.join(os.environ["STAND_IN_NODE"], "originals-asked"), "a") as stream:
        stream.write(json.dumps(asked) + "\n")
    (module.fail_json if answer.get("failed") else module.exit_json)(**answer)


if __name__ == "__main__":
    main()
