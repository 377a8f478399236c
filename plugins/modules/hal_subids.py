#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Write the declared ranges of subordinate ids of a node, beside those of others."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_subids
short_description: Write the declared ranges of /etc/subuid and /etc/subgid
description:
  - Gives every declared user the line C(uid:start:count), before the lines of others, which stay as they are.
  - A user who is not enabled gets the line with C(!) before it, as C(singularity config fakeroot --disable) writes it,
    so that C(--add) does not give the range to somebody else.
  - A line that somebody disabled on the node stays disabled, unless I(enable_ok). C(disabled_here) names its user.
  - Writes nothing and fails if somebody else's line, or the number of a local account or group, is in a declared range.
    The message has a line for each.
  - Holds the locks of shadow-utils from reading to writing, so that no line is lost to a useradd at the same time,
    neither its line nor ours. Takes no lock if there is nothing to write.
  - Before the node is asked, the controller compares the ranges with those that were ever rolled out (I(ledger)), and
    keeps them there.
options:
  users:
    description: >-
      All users of users.yml, as the filter hal_slots returns them. A user without a slot has no slot, start or count.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {type: str, required: true, description: Account.}
      uid: {type: int, required: true, description: The account's number.}
      slot: {type: int, description: Which range.}
      start: {type: int, description: The first id of the range.}
      count: {type: int, description: How many ids it has.}
      enabled: {type: bool, required: true, description: Whether the user may use it.}
      retired: {type: bool, default: false, description: Whether the user has left.}
  ledger:
    description: File at the controller that remembers which slot was given to whom. The node does not get it.
    type: str
    required: true
  first:
    description: >-
      Whether this is the node that gets each slot before all others, whoever gives it. The ledger learns of a slot when
      this node has it. If the node refuses, because another checkout gave the slot to somebody else, the ledger does
      not learn of it.
    type: bool
    default: false
  enable_ok:
    description: Whether to enable lines again that somebody disabled on the node and users.yml has enabled.
    type: bool
    default: false
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would change.}
  diff_mode: {support: full, description: Shows the files before and after.}
"""

EXAMPLES = r"""
- name: Write the ranges
  hal_subids:
    users: "{{ lookup('hal', 'users') | hal_slots }}"
    ledger: "{{ hal_state_dir }}/singularity/slots.json"
"""

RETURN = r"""
disabled_here:
  description: Users whom users.yml enables, and somebody disabled on this node.
  type: list
  elements: str
  returned: always
"""

import os

from ansible.module_utils.hal_node.files import content_of, replace_content
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.shadow_lock import LockError, shadow_locks
from ansible.module_utils.hal_node.subids import decoded, encoded, parse, planned, problems, readable, taken_ids

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

FILES = {"/etc/subuid": "/etc/passwd", "/etc/subgid": "/etc/group"}
USER = {
    "name": {"type": "str", "required": True},
    "uid": {"type": "int", "required": True},
    "slot": {"type": "int"},
    "start": {"type": "int"},
    "count": {"type": "int"},
    "enabled": {"type": "bool", "required": True},
    "retired": {"type": "bool", "default": False},
}


def text_of(path):
    # type: (str) -> str
    """Return the text of a file; nothing where there is none."""
    return decoded(content_of(path) or b"")


def attributes(module, path, changed):
    # type: (Any, str, bool) -> bool
    """Give root and 0644, which newuidmap and Singularity need; return whether anything changed, this included."""
    if not os.path.exists(path):
        return True
    arguments = {
        "path": path,
        "owner": "root",
        "group": "root",
        "mode": "0644",
        "seuser": None,
        "serole": None,
        "setype": None,
        "selevel": None,
        "unsafe_writes": False,
        "attributes": None,
    }
    return module.set_fs_attributes_if_different(module.load_file_common_arguments(arguments), changed)


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "users": {"type": "list", "elements": "dict", "required": True, "options": USER},
            "ledger": {"type": "str", "required": True},
            "first": {"type": "bool", "default": False},
            "enable_ok": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    users = [user for user in module.params["users"] if user["slot"] is not None]
    plans, disabled = planned_files(module, users)
    if any(before != after for before, after in plans.values()) and not module.check_mode:
        try:
            with shadow_locks(sorted(FILES)):
                plans, disabled = planned_files(module, users)  # somebody may have written until now
                for path, (before, after) in sorted(plans.items()):
                    if before != after:
                        replace_content(module, path, encoded(after))
        except LockError as error:
            module.fail_json(msg=str(error))
    changed, diffs = False, []
    for path, (before, after) in sorted(plans.items()):
        if before != after:
            diffs.append(
                {
                    "before": readable(before or ""),
                    "after": readable(after),
                    "before_header": path,
                    "after_header": path,
                }
            )
        changed = attributes(module, path, before != after) or changed
    module.exit_json(changed=changed, disabled_here=sorted(disabled), diff=diffs)


def planned_files(module, users):
    # type: (Any, list[dict[str, Any]]) -> tuple[dict[str, tuple[str | None, str]], set[str]]
    """Return ({path: (text of the file, None where there is none; text that it gets)}, who was disabled here)."""
    faults, texts = [], {}  # type: list[str], dict[str, str]
    for path, accounts in sorted(FILES.items()):
        if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
            faults.append("%s is not a file of its own: programs that map ids would read something else" % path)
            continue
        texts[path] = text_of(path)
        faults += problems(path, parse(texts[path]), users) + taken_ids(accounts, text_of(accounts), users)
    if faults:
        module.fail_json(msg="\n".join(faults))
    plans, disabled = {}, set()
    for path, before in texts.items():
        after, kept = planned(parse(before), users, module.params["enable_ok"])
        disabled.update(kept)
        plans[path] = (before if os.path.exists(path) else None, after)
    return plans, disabled


if __name__ == "__main__":
    main()
