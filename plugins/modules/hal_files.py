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
  - Does for a list what ansible.builtin.file, ansible.builtin.template and ansible.builtin.copy do one by one.
    You render files at the controller, with the template lookup. Each file is replaced at once or not at all.
  - First looks at all destinations, in check mode as well. If one is of another type, such as a directory or a broken
    link where a file belongs, it refuses, and writes nothing of the call. (The other modules would write into a
    directory.)
  - Replaces a link to a file by a file, and leaves what it points to. It does the same with the link by which systemctl
    masks a unit.
  - If a file that changes has a program of its own (hal_node/judges.py), that program reads it first, in check mode as
    well. If it refuses one, nothing of the call is written. If it does not judge, you get a warning.
  - Diffs show everything. If a task writes a secret, give it C(no_log); then there are no diffs.
options:
  directories:
    description: Directories to have, parents first. A missing one above them gets the same owner and mode.
    type: list
    elements: dict
    default: []
    suboptions:
      path: {type: path, required: true, description: Its path.}
      owner: {type: str, description: "User, and group of the same name. The default is root, if root runs this."}
      mode: {type: str, required: true, description: Such as "0755".}
  files:
    description: Files to have. Their directories are there, or among C(directories).
    type: list
    elements: dict
    default: []
    suboptions:
      path: {type: path, required: true, description: Its path.}
      content: {type: str, required: true, description: The whole content.}
      owner: {type: str, description: "User. The default is root, if root runs this."}
      group: {type: str, description: Group. The default has the user's name.}
      mode: {type: str, default: "0644", description: Such as "0644".}
      backup: {type: bool, default: false, description: "Keep the old file beside it, as ansible.builtin.copy does."}
      validate:
        type: str
        description:
          - A command that reads the new file before it replaces the old one. C(%s) is its path. Not called in check
            mode.
          - All commands run before the first file is written. If one fails, nothing of the call is written.
  places:
    description: Paths that another module writes, such as ansible.builtin.get_url. They are only looked at.
    type: list
    elements: path
    default: []
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
import stat
import tempfile

from ansible.module_utils.common.text.converters import to_bytes, to_native
from ansible.module_utils.hal_node.judges import MOST_WORDS, judged
from ansible.module_utils.hal_node.files import content_of, has_user, replace_content
from ansible.module_utils.hal_node.printable import shown
from ansible.module_utils.hal_node.run_command import AnsibleModule

MYPY = False
if MYPY:
    from typing import Any, Callable, Mapping, Sequence  # noqa: F401  in comments

DIRECTORY = {"path": {"type": "path", "required": True}, "owner": {"type": "str"},
             "mode": {"type": "str", "required": True}}
FILE = {"path": {"type": "path", "required": True}, "content": {"type": "str", "required": True},
        "owner": {"type": "str"}, "group": {"type": "str"}, "mode": {"type": "str", "default": "0644"},
        "backup": {"type": "bool", "default": False}, "validate": {"type": "str"}}
KINDS = ((stat.S_ISREG, "a file"), (stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a FIFO"),
         (stat.S_ISSOCK, "a socket"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))


# ---------------------------------------------------------------- what is in the way
def obstacles(module):
    # type: (Any) -> list[str]
    """Return a line for each destination that cannot become what is declared; nothing is changed."""
    folders = [entry["path"] for entry in module.params["directories"]]
    files = [entry["path"] for entry in module.params["files"]]
    lines = [obstacle(path, os.path.isdir, "a directory") for path in folders]
    lines += [obstacle(path, replaceable, "a file") for path in files + module.params["places"]]
    return [line for line in lines if line]


def obstacle(path, fits, wanted):
    # type: (str, Callable[[str], bool], str) -> str | None
    """Return a line about what is at a path, or the nearest above it, and does not fit; else None."""
    path = there = os.path.abspath(path)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if there != path:
        fits, wanted = os.path.isdir, "a directory"
    return None if fits(there) else "%s is %s where %s belongs: move it away" % (there, kind(there), wanted)


def orphans(module):
    # type: (Any) -> list[str]
    """Return a line for each file whose directory is not there, nor made by this call."""
    made = [entry["path"] + "/" for entry in module.params["directories"]]
    parents = [(entry["path"], os.path.dirname(entry["path"])) for entry in module.params["files"]]
    return ["%s: its directory is not there" % path for path, parent in parents
            if not os.path.isdir(parent) and not any(folder.startswith(parent + "/") for folder in made)]


def replaceable(path):
    # type: (str) -> bool
    """Return whether a file may take the place: of a file, of a link to a file, of a unit that is masked."""
    return os.path.isfile(path) or masked(path)


def masked(path):
    # type: (str) -> bool
    """Return whether systemctl has masked a unit there."""
    return os.path.islink(path) and os.path.realpath(path) == os.devnull


def kind(path):
    # type: (str) -> str
    """Return what is there, in words."""
    if os.path.islink(path):
        target = kind(os.path.realpath(path)) if os.path.exists(path) else "which is not there"
        return "a link to %s, %s," % (to_native(shown(os.readlink(path))), target)
    mode = os.stat(path).st_mode
    return next((words for fits, words in KINDS if fits(mode)), "something else")


# ---------------------------------------------------------------- what reads a file first
def invalid(module, entry):
    # type: (Any, Mapping[str, Any]) -> str | None
    """Return the words of the command that refuses a file, None where it does not."""
    handle, copy = tempfile.mkstemp(dir=module.tmpdir)
    with os.fdopen(handle, "wb") as stream:
        stream.write(to_bytes(entry["content"]))
    os.chmod(copy, int(entry["mode"], 8))
    try:
        status, out, err = module.run_command(entry["validate"] % copy)
    finally:
        os.unlink(copy)
    if status == 0:
        return None
    said = [to_native(shown(line)) for line in (out + err).replace(copy, entry["path"]).splitlines()]
    return "%s failed to validate: %s" % (entry["path"], "; ".join(said[-MOST_WORDS:]) or "status %d" % status)


# ---------------------------------------------------------------- what is written
def attributes(module, entry, changed):
    # type: (Any, Mapping[str, Any], bool) -> bool
    """Give owner, group and mode; return whether anything changed, this included."""
    path = entry["path"]
    owner = entry["owner"] or ("root" if os.geteuid() == 0 else None)
    group = entry.get("group") or owner
    if not os.path.exists(path) or masked(path) or (module.check_mode and owner and not has_user(owner)):
        return True
    arguments = {"path": path, "owner": owner, "group": group, "mode": entry["mode"],
                 "seuser": None, "serole": None, "setype": None, "selevel": None, "unsafe_writes": False,
                 "attributes": None}
    return module.set_fs_attributes_if_different(module.load_file_common_arguments(arguments), changed)


def directory(module, entry):
    # type: (Any, Mapping[str, Any]) -> bool
    """Make a directory as declared, and those that are missing above it alike; return whether that changed it."""
    path = entry["path"]
    changed = not os.path.isdir(path)
    if changed and not module.check_mode:
        above = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(above):
            directory(module, dict(entry, path=above))
        os.mkdir(path)
    return attributes(module, entry, changed)


def differs(entry):
    # type: (Mapping[str, Any]) -> bool
    """Return whether a file is not there, or is another: a link is."""
    return os.path.islink(entry["path"]) or content_of(entry["path"]) != to_bytes(entry["content"])


def write(module, entry):
    # type: (Any, Mapping[str, Any]) -> tuple[bool, dict[str, str] | None]
    """Make a file as declared; return (whether that changed it, its diff or None)."""
    path = entry["path"]
    changed, diff = differs(entry), None
    if changed and not module.no_log:
        link = " (%s)" % kind(path).rstrip(",") if os.path.islink(path) else ""
        diff = {"before": (content_of(path) or b"").decode("utf-8", "replace"), "after": entry["content"],
                "before_header": path + link, "after_header": path}
    if changed and not module.check_mode:
        if entry["backup"]:
            module.backup_local(path)
        replace_content(module, path, to_bytes(entry["content"]))
    return attributes(module, entry, changed), diff


def refuse(module, lines):
    # type: (Any, Sequence[str]) -> None
    """End here if there are lines."""
    if lines:
        module.fail_json(msg="%s; nothing was written" % "; ".join(lines))


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directories": {"type": "list", "elements": "dict", "default": [], "options": DIRECTORY},
            "files": {"type": "list", "elements": "dict", "default": [], "options": FILE},
            "places": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    refuse(module, obstacles(module))
    differing = [entry for entry in module.params["files"] if differs(entry)]
    refused, unjudged = judged(module, [(entry["path"], to_bytes(entry["content"])) for entry in differing])
    for line in unjudged:
        module.warn(line)
    refuse(module, refused)
    if not module.check_mode:  # in which a role before has not made the directory, or what validates, yet
        refuse(module, orphans(module))
        refuse(module, [line for line in (invalid(module, entry) for entry in differing if entry["validate"]) if line])
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
