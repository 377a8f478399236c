#!/usr/bin/python
# -*- coding: utf-8 -*-
"""What users of a node have of environment modules that is not this project's, before anything of it is replaced."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_lmod_site
short_description: Refuse to take modules away from users
description:
  - Asks a login shell of an ordinary user for its trees of modulefiles, its settings of Lmod and its default modules.
    Looks at the files that role lmod writes. Fails if any of that would be lost, with a line for each that says how you
    keep it.
  - Names also a login script that sets MODULEPATH or adds trees to it. It would undo what role lmod writes.
  - Trees without a modulefile, trees of the packages themselves, and files as a package brought them belong to nobody.
    On a node where role lmod has been before, everything is ours, and nothing is asked.
options:
  modulepath:
    description: Trees that users are to have.
    type: list
    elements: str
    required: true
  dropped:
    description: Trees that users are not to have any more.
    type: list
    elements: str
    default: []
  default_modules:
    description: Modules that are loaded for everybody.
    type: list
    elements: str
    default: []
  replace_ok:
    description: Whether to replace settings, and modules that are loaded for everybody.
    type: bool
    default: false
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Changes nothing.}
  diff_mode: {support: none, description: Has nothing to show.}
"""

EXAMPLES = r"""
- name: Refuse to take modules away from users
  hal_lmod_site:
    modulepath: [/opt/apps/modulefiles]
"""

RETURN = r"""
lost:
  description: What users would lose, a line each.
  type: list
  elements: str
  returned: always
"""

import glob
import os
import re

from ansible.module_utils.common.text.converters import to_native
from ansible.module_utils.hal_node.files import content_of
from ansible.module_utils.hal_node.printable import shown
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.hal_node.text import name_of

MYPY = False
if MYPY:
    from typing import Any, Iterator, Mapping  # noqa: F401  in comments

RECORD = "/etc/profile.d/00-modulepath.sh"
MINE = b'Written by the role "lmod"'
PACKAGES = ("/usr/share/lmod/", "/usr/share/Modules/")  # what Lmod and environment-modules bring themselves
FOLDER = "/etc/lmod"
SETTINGS = (FOLDER + "/SitePackage.lua", FOLDER + "/lmodrc.lua", "/usr/share/lmod/lmod/libexec/SitePackage.lua")
# What login shells read; this role writes those in OURS.
SCRIPTS = ("/etc/profile", "/etc/bashrc", "/etc/csh.cshrc", "/etc/csh.login",
           "/etc/profile.d/*.sh", "/etc/profile.d/*.csh")
OURS = ("00-modulepath.sh", "00-modulepath.csh", "z01_default_modules.sh", "z01_default_modules.csh")
# At the beginning of a command: what a script prints says nothing.
SETS_TREES = re.compile(
    br"(?:^|[;&|{(]|\b(?:then|do|else)\b)[ \t]*(?:\w+=\S*[ \t]+)*"
    br"(?:(?:(?:export|declare|typeset)[ \t]+(?:-\w+[ \t]+)*)?MODULEPATH(?:_ROOT)?\+?="
    br"|setenv[ \t]+MODULEPATH(?:_ROOT)?\b|(?:\w+[ \t]+)??module[ \t]+(?:un)?use\b)", re.MULTILINE)
NOBODY = 65534  # a user for whom login scripts do all that they do for users
SECONDS = 60
SHELL = [
    "timeout", "--kill-after=5", "%d" % SECONDS,
    "setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups",
    "env", "-i", "HOME=/", "TERM=dumb", "PATH=/usr/bin:/bin",
    "bash", "-l", "-c", "printf '\\0hal-begins\\0'; exec env -0"]
BEGINS = b"\0hal-begins\0"  # login scripts may print something, too
MOST = 1000  # modulefiles that are counted


class NoAnswer(Exception):
    """What users have is not known."""


# ---------------------------------------------------------------- what a user's shell has
def login_environment(module):
    # type: (Any) -> dict[str, str]
    """Return the variables of a login shell of bash, as an ordinary user has it. NoAnswer when it does not end."""
    status, out, err = module.run_command(SHELL, encoding=None, cwd="/", data="")
    if status == 124:  # timeout's own
        raise NoAnswer("a login shell did not end within %d s" % SECONDS)
    if BEGINS not in out:
        said = (out + err).strip().splitlines()
        raise NoAnswer("a login shell did not come so far: %s" % (native(said[-1]) if said else "status %d" % status))
    entries = map(name_of, out.split(BEGINS)[-1].split(b"\0"))
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def native(text):
    # type: (str | bytes) -> str
    """Return text that others chose as one printable line."""
    return to_native(shown(text))


# ---------------------------------------------------------------- what would be lost
def trees(environment, kept):
    # type: (Mapping[str, str], set[str]) -> Iterator[tuple[str, int | None]]
    """Yield (tree, how many modulefiles) of those that users would not have any more; None: it cannot be read."""
    for tree in environment.get("MODULEPATH", "").split(":"):
        path = os.path.normpath(tree) if tree else ""
        if path and path not in kept and not (path + "/").startswith(PACKAGES):
            count = modulefiles(path)
            if count != 0:
                yield path, count


def modulefiles(tree):
    # type: (str) -> int | None
    """Return how many modulefiles are in a tree; None when that cannot be seen."""
    if not os.path.lexists(tree):
        return 0
    failed, count = [], 0  # type: list[OSError], int
    for _folder, folders, names in os.walk(tree, onerror=failed.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        count += len([name for name in names if not name.startswith(".")])
        if count > MOST:
            break
    return None if failed and not count else count


def edited(module, path):
    # type: (Any, str) -> bool
    """Return whether a file is there that neither this project nor a package has written."""
    content = content_of(path)
    if content is None or MINE in content.split(b"\n", 1)[0]:
        return False
    if module.run_command(["rpm", "--query", "--file", path])[0] != 0:
        return True
    _status, out, _err = module.run_command(["rpm", "--verify", "--nodeps", "--noscripts", "--file", path])
    return any(line.endswith(" " + path) and line[2:3] != "." for line in out.splitlines())


def scripts(module):
    # type: (Any) -> list[str]
    """Return the login scripts of somebody's that say where modules are."""
    paths = sorted(path for pattern in SCRIPTS for path in glob.glob(pattern))
    return [path for path in paths
            if os.path.basename(path) not in OURS and not os.path.realpath(path).startswith(PACKAGES)
            and os.path.isfile(path) and SETS_TREES.search(content_of(path) or b"") and edited(module, path)]


def settings_of(environment):
    # type: (Mapping[str, str]) -> list[str]
    """Return the paths of settings that Lmod reads, or would not read any more."""
    folders = [folder for folder in environment.get("LMOD_PACKAGE_PATH", "").split(":") if folder]
    files = [path for path in environment.get("LMOD_RC", "").split(":") if path]
    return sorted(set(SETTINGS) | {os.path.join(folder, "SitePackage.lua") for folder in folders} | set(files))


def lost(module, environment, params):
    # type: (Any, Mapping[str, str], Mapping[str, Any]) -> list[str]
    """Return a line for each thing that users would lose."""
    kept = {os.path.normpath(tree) for tree in params["modulepath"] + params["dropped"]}
    lines = []
    for tree, count in trees(environment, kept):
        has = "cannot be read" if count is None else "%s modulefiles" % (count if count <= MOST else "over %d" % MOST)
        lines.append("the tree %s (%s): lmod_modulepath_extra keeps it, lmod_modulepath_dropped ends it"
                     % (native(tree), has))
    lines += ["what %s does to MODULEPATH, which would also undo ours: declare its trees as above, and take that out"
              " of it" % native(path) for path in scripts(module)]
    if not params["replace_ok"]:
        lines += ["%s, which somebody wrote: lmod_replace_ok: true replaces what it does" % native(path)
                  for path in settings_of(environment) if edited(module, path)]
        modules = environment.get("LMOD_SYSTEM_DEFAULT_MODULES", "").split(":")
        gone = [name for name in modules if name and name not in params["default_modules"]]
        if gone:
            lines.append("%s, loaded for everybody: lmod_default_modules keeps it, lmod_replace_ok: true ends it"
                         % native(", ".join(gone)))
    return lines


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "modulepath": {"type": "list", "elements": "str", "required": True},
            "dropped": {"type": "list", "elements": "str", "default": []},
            "default_modules": {"type": "list", "elements": "str", "default": []},
            "replace_ok": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    lines = []
    if MINE not in (content_of(RECORD) or b""):
        try:
            lines = lost(module, login_environment(module), module.params)
        except NoAnswer as error:
            module.fail_json(msg="What modules users have is not known: %s. Nothing was changed" % error, lost=[])
    if lines:
        told = ["Users would lose:"] + ["  " + line for line in lines] + ["Nothing was changed"]
        module.fail_json(msg="\n".join(told), lost=lines)
    module.exit_json(changed=False, lost=[])


if __name__ == "__main__":
    main()
