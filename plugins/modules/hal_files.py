#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Write directories and files of a role in one call."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_files
short_description: Write directories and files in one call
description:
  - What ansible.builtin.file and ansible.builtin.template do one by one, for a list.
    Files are rendered at the controller with the template lookup. Each is replaced at once or not at all.
  - A file that changes is read by its own program first, where it has one (module_utils/hal_judges.py), in check mode
    as well. If that refuses one, nothing of the call is written. Where it does not judge, that is a warning.
  - Nothing here is secret; diffs show everything.
options:
  directories:
    description: Directories to have, parents first.
    type: list
    elements: dict
    default: []
    suboptions:
      path: {type: path, required: true, description: Where.}
      owner: {type: str, default: root, description: User; the group has the same name.}
      mode: {type: str, required: true, description: Such as "0755".}
  files:
    description: Files to have; their directories are there or among C(directories).
    type: list
    elements: dict
    default: []
    suboptions:
      path: {type: path, required: true, description: Where.}
      content: {type: str, required: true, description: The whole content.}
      owner: {type: str, default: root, description: User; the group has the same name.}
      mode: {type: str, default: "0644", description: Such as "0644".}
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would change.}
  diff_mode: {support: full, description: Shows files before and after.}
"""

EXAMPLES = r"""
- name: Write the configuration
  hal_files:
    directories:
      - {path: /etc/slurm, mode: "0755"}
    files:
      - {path: /etc/slurm/slurm.conf, content: "{{ lookup('ansible.builtin.template', 'slurm.conf.j2') }}"}
"""

RETURN = r"""
paths:
  description: What was changed.
  type: list
  elements: str
  returned: always
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.text.converters import to_bytes
from ansible.module_utils.hal_judges import judged
from ansible.module_utils.hal_node_files import content_of, has_user, replace_content

DIRECTORY = {"path": {"type": "path", "required": True}, "owner": {"type": "str", "default": "root"},
             "mode": {"type": "str", "required": True}}
FILE = {"path": {"type": "path", "required": True}, "content": {"type": "str", "required": True},
        "owner": {"type": "str", "default": "root"}, "mode": {"type": "str", "default": "0644"}}


def attributes(module, entry, changed):
    """Give owner, group and mode; return whether anything changed, this included."""
    path = entry["path"]
    if not os.path.exists(path) or masked(path) or (module.check_mode and not has_user(entry["owner"])):
        return True
    arguments = {"path": entry["path"], "owner": entry["owner"], "group": entry["owner"], "mode": entry["mode"],
                 "seuser": None, "serole": None, "setype": None, "selevel": None, "unsafe_writes": False,
                 "attributes": None}
    return module.set_fs_attributes_if_different(module.load_file_common_arguments(arguments), changed)


def directory(module, entry):
    """Make a directory as declared; return whether that changed it."""
    changed = not os.path.isdir(entry["path"])
    if changed and os.path.lexists(entry["path"]):
        module.fail_json(msg="%s is there and is not a directory" % entry["path"])
    if changed and not module.check_mode:
        os.makedirs(entry["path"])
    return attributes(module, entry, changed)


def masked(path):
    """Return whether systemctl has masked a unit there: a file replaces that, as with ansible.builtin.copy."""
    return os.path.islink(path) and os.path.realpath(path) == os.devnull


def write(module, entry):
    """Make a file as declared; return (whether that changed it, its diff or None)."""
    path, wanted = entry["path"], to_bytes(entry["content"])
    found = content_of(path)
    if found is None and os.path.lexists(path) and not masked(path):
        module.fail_json(msg="%s is there and is not a file" % path)
    changed = found != wanted
    diff = None
    if changed:
        diff = {"before": (found or b"").decode("utf-8", "replace"), "after": entry["content"],
                "before_header": path, "after_header": path}
    if changed and not module.check_mode:
        if not os.path.isdir(os.path.dirname(path)):
            module.fail_json(msg="%s: its directory is not there" % path)
        replace_content(module, path, wanted)
    return attributes(module, entry, changed), diff


def main():
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directories": {"type": "list", "elements": "dict", "default": [], "options": DIRECTORY},
            "files": {"type": "list", "elements": "dict", "default": [], "options": FILE},
        },
        supports_check_mode=True,
    )
    files = [(entry["path"], to_bytes(entry["content"])) for entry in module.params["files"]]
    refused, unjudged = judged(module, [(path, wanted) for path, wanted in files if content_of(path) != wanted])
    for line in unjudged:
        module.warn(line)
    if refused:
        module.fail_json(msg="%s; nothing was written" % "; ".join(refused))
    paths = [entry["path"] for entry in module.params["directories"] if directory(module, entry)]
    diffs = []
    for entry in module.params["files"]:
        changed, diff = write(module, entry)
        if changed:
            paths.append(entry["path"])
        if diff:
            diffs.append(diff)
    module.exit_json(changed=bool(paths), paths=paths, diff=diffs)


if __name__ == "__main__":
    main()
