#!/usr/bin/python
# -*- coding: utf-8 -*-
"""RAID sets of a node and the file systems on them: made once, never over what is there."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_raid_set
short_description: Make or assemble the declared RAID sets of a node
description:
  - Reads what is on the disks first. Assembles what exists, and never makes it again. Leaves alone what is only
    watched.
  - Never touches a disk that holds anything without the code of exactly what is on the disks. The failure shows both.
  - Continues an interrupted run where it stopped.
options:
  node:
    description: Name of the node. It is written on the members of its arrays.
    type: str
    required: true
  sets:
    description: The declared sets, from the lookup C(hal_storage).
    type: list
    elements: dict
    required: true
  create_ok:
    description: Whether to make sets of empty disks.
    type: bool
    default: false
  confirm:
    description: The code that an earlier run showed, to erase what it showed.
    type: str
    default: ""
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: "Says what would be done, and changes nothing."}
  diff_mode: {support: none, description: The steps are in C(steps).}
"""

EXAMPLES = r"""
- name: Make the RAID sets
  hal_raid_set:
    node: hal-data
    sets: "{{ lookup('hal_storage', 'sets', node=hal_node, raid_sets=lookup('hal', 'raid_sets')) }}"
    create_ok: true
"""

RETURN = r"""
steps:
  description: What was done, or what would be next in check mode.
  type: list
  returned: always
file_systems:
  description: UUID of each set's file system, by the set's name.
  type: dict
  returned: always
arrays:
  description: The arrays on the declared disks, with C(name), C(uuid) and C(metadata).
  type: list
  returned: always
other_arrays:
  description: The ARRAY lines of C(/etc/mdadm.conf) for arrays that are not in C(arrays), as they are there.
  type: list
  returned: always
erased:
  description: What would be erased, a line for each disk.
  type: list
  returned: always
code:
  description: The code that confirms it.
  type: str
  returned: always
"""

import io
import os

from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.storage.plan import Planner
from ansible.module_utils.hal_node.storage.state import MIB, CannotRead, Node, disk_of, other_arrays, state_of

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping  # noqa: F401  in comments

CONFIG = "/etc/mdadm.conf"
ROUNDS = 12  # of reading, planning and acting; a nested set needs three


def zero_edges(path):
    # type: (str) -> None
    """Write zeros over the first and the last MiB. O_EXCL: the kernel refuses a disk that anything uses."""
    descriptor = os.open(path, os.O_RDWR | os.O_EXCL)
    with io.open(descriptor, "r+b", buffering=0) as stream:
        size = stream.seek(0, os.SEEK_END)
        for offset in (0, max(0, size - MIB)):
            stream.seek(offset)
            stream.write(b"\0" * min(MIB, size))
        os.fsync(descriptor)


def act(module, step):
    # type: (Any, Mapping[str, Any]) -> None
    """Do one step; the module ends when it fails."""
    status, out, err = module.run_command(step["argv"], environ_update={"LC_ALL": "C"}, data="")
    if status == 0 and step.get("zero"):
        try:
            zero_edges(step["zero"])
        except (IOError, OSError) as error:
            status, err = 1, "%s: %s" % (step["zero"], error)
    if status != 0:
        module.fail_json(msg="could not %s: %s" % (step["what"], (err or out).strip()), argv=step["argv"])
    module.run_command(["udevadm", "settle", "--timeout=30"])


def found_arrays(node, sets, state):
    # type: (Node, Iterable[Mapping[str, Any]], Mapping[str, Any]) -> list[dict[str, str]]
    """Return the arrays whose members are all on declared disks, or on such arrays: what mdadm.conf lists."""
    known = {node.kernel_name(disk["path"]) for declared in sets for disk in declared["disks"]}
    arrays = []
    for _ in range(2):  # an array of arrays
        for name in sorted(state["arrays"]):
            array = state["arrays"][name]
            members = {disk_of(node, member) for member in array["members"]}
            if name not in known and members and members <= known and array["uuid"]:
                known.add(name)
                arrays.append({"name": array["name"].split(":")[-1] or name, "uuid": array["uuid"]})
    return sorted(arrays, key=lambda array: array["name"])


def config():
    # type: () -> str
    """Return what is in mdadm.conf now."""
    if not os.path.exists(CONFIG):
        return ""
    with io.open(CONFIG, encoding="utf-8", errors="replace") as stream:
        return stream.read()


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "node": {"type": "str", "required": True},
            "sets": {"type": "list", "elements": "dict", "required": True},
            "create_ok": {"type": "bool", "default": False},
            "confirm": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    params, node = module.params, Node()
    sets, granted = params["sets"], ()  # type: list[dict[str, Any]], Iterable[str]
    done = []  # type: list[str]
    confirm = params["confirm"]
    for _ in range(ROUNDS):
        try:
            state = state_of(node, sets)
            plan = Planner(params["node"], sets, state, params["create_ok"], confirm, granted).plan()
        except CannotRead as error:
            module.fail_json(msg="what is on the disks cannot be read, so nothing is done: %s" % error, steps=done)
        if plan["refused"] or plan["erased"] and not plan["confirmed"] or plan["waiting"]:
            break
        if not plan["steps"] or module.check_mode:
            break
        for step in plan["steps"]:
            act(module, step)
            done.append(step["what"])
        granted, confirm = plan["granted"], ""
    arrays = found_arrays(node, sets, state)
    result = {
        "changed": bool(done or (module.check_mode and plan["steps"])),
        "steps": done or [step["what"] for step in plan["steps"] if module.check_mode],
        "file_systems": plan["file_systems"],
        "arrays": arrays,
        "other_arrays": other_arrays(config(), arrays),
        "erased": plan["erased"],
        "code": plan["code"],
    }
    problem = words(params["node"], plan)
    if problem and not module.check_mode:
        module.fail_json(msg=problem, **result)
    module.exit_json(msg=problem, **result)


def words(node, plan):
    # type: (str, Mapping[str, Any]) -> str
    """Return what keeps the sets from being made, "" for nothing."""
    lines = list(plan["refused"])
    if plan["erased"] and not plan["confirmed"]:
        lines.append("These disks of %s are not empty. This would be ERASED:" % node)
        lines += ["  " + line for line in plan["erased"]]
        lines.append("If that is right: -e local_storage_confirm=%s with --limit %s" % (plan["code"], node))
    if plan["waiting"]:
        lines.append(
            "%s: not there yet, and its disks are empty: -e local_storage_create_ok=true makes it"
            % ", ".join(plan["waiting"])
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
