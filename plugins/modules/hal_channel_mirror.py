#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Keep exactly the locked packages of conda channels in a folder that a web server serves, verified."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_channel_mirror
short_description: Mirror the locked packages of conda channels
description:
  - Fetches the named files, and no others, to FOLDER/CHANNEL/SUBDIR/FILE. Keeps a file only if its size and its
    checksum are right. Continues what an interrupted run left.
  - FOLDER/SHA256SUMS lists the files. A listed file that nobody touched since the list was written is not read again.
    Role mirror promises that every file has its checksum.
  - Files of older lock files stay until C(prune).
options:
  folder:
    description: The folder of the mirror. It is made.
    type: path
    required: true
  packages:
    description: The packages, as the lookup hal_channels returns them.
    type: list
    elements: dict
    required: true
    suboptions:
      channel: {description: Alias of the channel., type: str, required: true}
      subdir: {description: Folder of the channel., type: str, required: true}
      file: {description: Name of the file., type: str, required: true}
      url: {description: "Where it is; http, https, ftp or file.", type: str, required: true}
      size: {description: Bytes., type: int, required: true}
      sha256: {description: Checksum., type: str, required: true}
  prune:
    description: Whether to remove packages that no lock file names. Refused if no package is named at all.
    type: bool
    default: false
  timeout_seconds:
    description: How long a server may be silent.
    type: int
    default: 60
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says whether all packages are there. Fetches nothing.}
  diff_mode: {support: none, description: There is nothing to read in packages.}
"""

EXAMPLES = r"""
- name: Mirror the packages of environments
  hal_channel_mirror:
    folder: /srv/mirror/www/channels
    packages: "{{ lookup('hal_channels', mirror_channel_locks).packages }}"
"""

RETURN = r"""
faults:
  description: Why packages cannot be published, one text each.
  type: list
  elements: str
  returned: failure
fetched:
  description: How many packages had to be fetched.
  type: int
  returned: success
removed:
  description: Files that were removed.
  type: list
  elements: str
  returned: success
"""

import io
import os

from ansible.module_utils.common.text.converters import to_bytes
from ansible.module_utils.hal_node.digest import sha256_of
from ansible.module_utils.hal_node.mirror.fetch import MirrorError, fetch
from ansible.module_utils.hal_node.run_command import AnsibleModule

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping  # noqa: F401  in comments

PACKAGE = {"size": {"type": "int", "required": True}}
for _name in ("channel", "subdir", "file", "url", "sha256"):
    PACKAGE[_name] = {"type": "str", "required": True}
SUMS = "SHA256SUMS"
ENDINGS = (".tar.bz2", ".conda", ".part")
SHOWN = 20


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "packages": {"type": "list", "elements": "dict", "required": True, "options": PACKAGE},
            "prune": {"type": "bool", "default": False},
            "timeout_seconds": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    folder, packages = module.params["folder"], module.params["packages"]
    surplus = others(folder, packages) if module.params["prune"] else []
    if surplus and not packages:
        module.fail_json(msg="mirror: no lock file names a package, and %s has %d: nothing is removed; if all are to "
                             "go, remove the folder by hand" % (folder, len(surplus)))
    lines = [to_bytes("%s  %s\n" % (package["sha256"], place("", package))) for package in packages]
    sums, before = b"".join(lines), content_of(os.path.join(folder, SUMS))
    known, since = set(before.splitlines(True)), time_of(os.path.join(folder, SUMS))
    missing = [package for line, package in zip(lines, packages)
               if not is_here(place(folder, package), package, since if line in known else 0)]
    changed = bool(missing or surplus) or before != sums
    if not module.check_mode:
        os.umask(0o022)
        bring(module, folder, missing)
        for path in surplus:
            os.unlink(os.path.join(folder, path))
        if changed:
            write(os.path.join(folder, SUMS), sums)
    module.exit_json(changed=changed, fetched=len(missing), removed=surplus)


def place(folder, package):
    # type: (str, Mapping[str, Any]) -> str
    """Return the path of a package below a folder."""
    return os.path.join(folder, package["channel"], package["subdir"], package["file"])


def is_here(path, package, since):
    # type: (str, Mapping[str, Any], float) -> bool
    """Return whether the locked file is there; it is read unless it is as it was at a time when it was right.

    since: that time, in seconds since 1970, 0 for none. The kernel sets a file's change time, nobody else can.
    """
    if not os.path.isfile(path) or os.path.getsize(path) != package["size"]:
        return False
    return os.stat(path).st_ctime <= since or sha256_of(path) == package["sha256"]


def time_of(path):
    # type: (str) -> float
    """Return when a file was written, in seconds since 1970; 0 when there is none."""
    return os.stat(path).st_mtime if os.path.isfile(path) else 0


def others(folder, packages):
    # type: (str, Iterable[Mapping[str, Any]]) -> list[str]
    """Return packages below the folder that are not among those named, sorted."""
    named = {place("", package) for package in packages}
    there = []
    for base, _, names in os.walk(folder):
        there += [os.path.relpath(os.path.join(base, name), folder) for name in names if name.endswith(ENDINGS)]
    return sorted(path for path in there if path not in named)


def bring(module, folder, missing):
    # type: (Any, str, Iterable[Mapping[str, Any]]) -> None
    """Fetch what is missing, or fail with every fault; what came stays."""
    faults = []
    for package in missing:
        path = place(folder, package)
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        try:
            fetch(package["url"], path, package["size"], package["sha256"], module.params["timeout_seconds"])
        except MirrorError as error:
            faults.append(str(error))
    if faults:
        more = "\nand %d more" % (len(faults) - SHOWN) if len(faults) > SHOWN else ""
        module.fail_json(msg="mirror: %d packages of channels cannot be published\n%s%s"
                             % (len(faults), "\n".join(faults[:SHOWN]), more), faults=faults)


def content_of(path):
    # type: (str) -> bytes
    """Return the bytes of a file; none when there is no such file."""
    if not os.path.isfile(path):
        return b""
    with io.open(path, "rb") as stream:
        return stream.read()


def write(path, content):
    # type: (str, bytes) -> None
    """Write bytes, whole or not at all."""
    if not os.path.isdir(os.path.dirname(path)):
        os.makedirs(os.path.dirname(path))
    with io.open(path + ".new", "wb") as stream:
        stream.write(content)
    os.rename(path + ".new", path)


if __name__ == "__main__":
    main()
