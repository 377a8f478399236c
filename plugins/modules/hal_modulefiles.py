#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Write the modulefiles of a role, and remove those that it wrote earlier and does not declare any more."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_modulefiles
short_description: Write the modulefiles of one role into the tree of modulefiles, and withdraw its old ones
description:
  - Removes what this role wrote earlier and does not declare any more. Leaves files of other roles, and files that
    nobody declared. The first line of each file says which role wrote it.
  - Fails and writes nothing if somebody else's file is in the place of a declared one, unless I(replace_ok).
  - Writes TREE/.changed anew if anything changed. Then role lmod's units renew Lmod's cache.
options:
  tree: {type: path, required: true, description: The root of the modulefiles. It is made if it is not there.}
  role: {type: str, required: true, description: The role that owns the files.}
  files:
    description: All files that the role has in the tree, as the filter hal_module_files returns them. An empty list
      withdraws all.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {type: path, required: true, description: TREE/NAME/FILE.}
      content: {type: str, required: true, description: The whole content. Its first line names the role.}
  replace_ok: {type: bool, default: false, description: Whether to replace somebody else's files in the same places.}
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says what would change.}
  diff_mode: {support: full, description: Shows files before and after.}
"""

EXAMPLES = r"""
- name: Write the modulefiles
  hal_modulefiles:
    tree: "{{ software_modulefiles }}"
    role: compilers
    files: "{{ __compilers_modules | hal_module_files(software_modulefiles) }}"
"""

RETURN = r"""
written:
  description: Files that were written.
  type: list
  elements: str
  returned: always
removed:
  description: Files that were withdrawn.
  type: list
  elements: str
  returned: always
"""

import os
import re

from ansible.module_utils.common.text.converters import to_bytes
from ansible.module_utils.hal_node.files import content_of, replace_content
from ansible.module_utils.hal_node.run_command import AnsibleModule

MYPY = False
if MYPY:
    from typing import Any, Iterable, Iterator, Mapping  # noqa: F401  in comments

STAMP = ".changed"
HEADER = re.compile(br"-- Written by Ansible, role ([a-z0-9_]+);")


def writer_of(content):
    # type: (bytes | None) -> str | None
    """Return the role that wrote a file; None if nobody of this project did."""
    matched = HEADER.match(content or b"")
    return matched.group(1).decode("ascii") if matched else None


def own_files(tree, role):
    # type: (str, str) -> list[str]
    """Return the files TREE/NAME/FILE that a role wrote, sorted."""
    own = []
    for name in sorted(os.listdir(tree)) if os.path.isdir(tree) else []:
        folder = os.path.join(tree, name)
        if os.path.islink(folder) or not os.path.isdir(folder):
            continue
        paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        own += [path for path in paths if not os.path.islink(path) and writer_of(content_of(path)) == role]
    return own


def faults(tree, role, files):
    # type: (str, str, Iterable[Mapping[str, str]]) -> Iterator[str]
    """Yield what is wrong with what is declared."""
    for entry in files:
        if os.path.dirname(os.path.dirname(entry["path"])) != tree:
            yield "%s is not TREE/NAME/FILE, where TREE is %s" % (entry["path"], tree)
        if writer_of(to_bytes(entry["content"])) != role:
            yield "%s: the first line does not say that role %s wrote it" % (entry["path"], role)


def foreign(role, files):
    # type: (str, Iterable[Mapping[str, str]]) -> Iterator[str]
    """Yield what somebody else has in the places of declared files."""
    for entry in files:
        path, folder = entry["path"], os.path.dirname(entry["path"])
        if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
            yield "%s is not a folder" % folder
        elif os.path.isdir(path) and not os.path.islink(path):
            yield "%s is a folder" % path
        elif os.path.lexists(path):
            writer = writer_of(content_of(path)) if not os.path.islink(path) else None
            if writer != role:
                yield "%s is of %s" % (path, "role %s" % writer if writer else "somebody else")


class Tree(object):
    """The tree of modulefiles, as this call changes it."""

    def __init__(self, module):
        # type: (Any) -> None
        self.module, self.path = module, module.params["tree"]
        self.written, self.removed, self.other = [], [], []  # type: list[str], list[str], list[str]
        self.diffs = []  # type: list[dict[str, str]]

    def attributes(self, path, mode):
        # type: (str, str) -> bool
        """Give owner root and a mode; return whether that changed anything."""
        if not os.path.exists(path):
            return True
        arguments = {"path": path, "owner": "root", "group": "root", "mode": mode, "seuser": None, "serole": None,
                     "setype": None, "selevel": None, "unsafe_writes": False, "attributes": None}
        return self.module.set_fs_attributes_if_different(self.module.load_file_common_arguments(arguments), False)

    def folder(self, path):
        # type: (str) -> None
        """Have a folder, with those above it."""
        if not os.path.isdir(path):
            if not self.module.check_mode:
                os.makedirs(path, 0o755)
            self.other.append(path)
        if self.attributes(path, "0755") and path not in self.other:
            self.other.append(path)

    def write(self, path, content):
        # type: (str, str) -> None
        """Have a file with this content."""
        wanted, before = to_bytes(content), None
        if os.path.islink(path):
            if not self.module.check_mode:
                os.unlink(path)
        else:
            before = content_of(path)
        if before != wanted:
            self.diffs.append({"before": (before or b"").decode("utf-8", "replace"), "after": content,
                               "before_header": path, "after_header": path})
            if not self.module.check_mode:
                replace_content(self.module, path, wanted)
        if self.attributes(path, "0644") or before != wanted:
            self.written.append(path)

    def remove(self, path):
        # type: (str) -> None
        """Withdraw a file, and its folder when that was the last one."""
        self.diffs.append({"before": (content_of(path) or b"").decode("utf-8", "replace"), "after": "",
                           "before_header": path, "after_header": "/dev/null"})
        self.removed.append(path)
        if not self.module.check_mode:
            os.unlink(path)
            if not os.listdir(os.path.dirname(path)):
                os.rmdir(os.path.dirname(path))

    def stamp(self):
        # type: () -> None
        """Say that something changed, last of all."""
        path = os.path.join(self.path, STAMP)
        if (self.changed or not os.path.exists(path)) and not self.module.check_mode:
            replace_content(self.module, path, b"")
        if self.attributes(path, "0644"):
            self.other.append(path)

    @property
    def changed(self):
        # type: () -> bool
        """Whether anything was changed, or would be."""
        return bool(self.written or self.removed or self.other)


def main():
    # type: () -> None
    """Run the module."""
    file_options = {"path": {"type": "path", "required": True}, "content": {"type": "str", "required": True}}
    module = AnsibleModule(
        argument_spec={
            "tree": {"type": "path", "required": True},
            "role": {"type": "str", "required": True},
            "files": {"type": "list", "elements": "dict", "required": True, "options": file_options},
            "replace_ok": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    tree, role, files = Tree(module), module.params["role"], module.params["files"]
    wrong = list(faults(tree.path, role, files))
    if wrong:
        module.fail_json(msg="\n".join(wrong))
    others = list(foreign(role, files))
    in_the_way = [line for line in others if line.endswith(" folder")]
    if in_the_way or (others and not module.params["replace_ok"]):
        allowed = "" if in_the_way else ", or allow that it is replaced (replace_ok)"
        module.fail_json(msg="%s\nNothing was written. Move it away%s." % ("\n".join(in_the_way or others), allowed))
    tree.folder(tree.path)
    for path in sorted({os.path.dirname(entry["path"]) for entry in files}):
        tree.folder(path)
    for entry in files:
        tree.write(entry["path"], entry["content"])
    declared = {entry["path"] for entry in files}
    for path in own_files(tree.path, role):
        if path not in declared:
            tree.remove(path)
    tree.stamp()
    module.exit_json(changed=tree.changed, written=tree.written, removed=tree.removed, diff=tree.diffs)


if __name__ == "__main__":
    main()
