#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Build the root file system of an image, step by step, on the node that this runs on."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_image
short_description: Build the root file system of an image
description:
  - Takes the steps of C(playbooks/image.yml) on the node that builds. There is one build at a time. The systemd unit
    C(hal-image) is the lock; it keeps the mounts in a namespace of its own, which ends with the unit.
options:
  action:
    description:
      - V(state) says who builds.
      - V(begin) takes the lock and clears the folder.
      - V(enter) unpacks a base, if there is one, and mounts what programs in the root need.
      - V(install) installs packages.
      - V(finish) cleans, checks and packs.
      - V(end) ends the build of this owner and removes what it made, however far it came.
    type: str
    required: true
    choices: [state, begin, enter, install, finish, end]
  folder:
    description: The folder to build in, with room for the root and its packed file. It has to be empty, or of an
      older build, which V(begin) removes.
    type: path
    required: true
  owner:
    description: One line that says who builds what. Only the owner of a build can end it.
    type: str
    default: ''
  seconds:
    description: For V(begin), after how long a build ends by itself if nobody ends it.
    type: int
    default: 14400
  base:
    description: For V(enter), a tar file in O(folder) that the root begins with.
    type: str
    default: ''
  manager:
    description: For V(install), the package manager.
    type: str
    choices: [dnf, yum]
    default: yum
  release:
    description: For V(install), the release that the package manager assumes.
    type: str
    default: '7'
  packages:
    description: For V(install), names of packages.
    type: list
    elements: str
    default: []
  repositories:
    description: For V(begin), the repositories as in a node's file. The build sees the folders that they are in.
    type: str
    default: ''
  keys:
    description: For V(begin), keys of the repositories. Each has C(id), C(source) (URL or path here), C(fingerprint).
    type: list
    elements: dict
    default: []
  kernel:
    description: For V(install) and V(finish), the one kernel that has to be there, such as V(4.18.0-80.7.2.el7).
    type: str
    default: ''
  digests:
    description: For V(finish), keyed digests of secrets that must not be in the image, each with the secret's name.
    type: dict
    default: {}
  key:
    description: For V(finish), the key of the digests, made for this one build.
    type: str
    default: ''
  level:
    description: For V(finish), how hard gzip compresses. 1 is the quickest, 9 the smallest.
    type: int
    choices: [1, 2, 3, 4, 5, 6, 7, 8, 9]
    default: 6
author: [HAL toolkit]
attributes:
  check_mode: {support: none, description: "Skipped, except V(state)."}
  diff_mode: {support: none, description: There is nothing to show.}
"""

EXAMPLES = r"""
- name: Install the packages
  hal_image:
    action: install
    folder: /srv/images/build
    packages: [systemd, openssh-server, kernel-4.18.0-80.7.2.el7]
    kernel: 4.18.0-80.7.2.el7
"""

RETURN = r"""
running:
  description: For V(state), whether an image is built here now.
  type: bool
  returned: state
owner:
  description: For V(state), who builds it.
  type: str
  returned: state
pid:
  description: The process whose mount namespace the build is in.
  type: int
  returned: state, begin, enter
packages:
  description: For V(finish), every package, as name-version-release.arch.
  type: list
  elements: str
  returned: finish
size:
  description: For V(finish), the size of the packed root in bytes.
  type: int
  returned: finish
sha256:
  description: For V(finish), its sha256.
  type: str
  returned: finish
labels:
  description: For V(finish), where its SELinux labels come from.
  type: str
  returned: finish
"""

import io
import os
import re

from ansible.module_utils.hal_node.image.clean import clean, faults, refuse
from ansible.module_utils.hal_node.image.hold import LOG, ImageError, begin, end, enter, state
from ansible.module_utils.hal_node.image.install import (
    MANAGERS,
    all_packages,
    bring_keys,
    install,
    kernels,
    missing,
    settings,
)
from ansible.module_utils.hal_node.image.pack import label, pack
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.urls import open_url

MYPY = False
if MYPY:
    from typing import Any, Callable, Iterable  # noqa: F401  in comments

KEY_SECONDS = 60


def _begin(module, run, folder):
    # type: (Any, Callable[..., Any], str) -> dict[str, Any]
    given = module.params
    if not re.match(r"[ -~]{1,200}$", given["owner"]):
        raise ImageError("owner is %r: one line of printable characters" % given["owner"])
    local = re.findall(r"^baseurl=file://(/\S+)$", given["repositories"], re.M)
    for path in local:
        if not os.path.isdir(path):
            raise ImageError("repository %s is not on this node; build where it is, or install from the mirror" % path)
    pid = begin(run, folder, given["owner"], given["seconds"], _outermost(local))
    with open(LOG, "wb"):
        pass
    os.chmod(LOG, 0o600)
    keys = bring_keys(module, folder, given["keys"], lambda url: open_url(url, timeout=KEY_SECONDS))
    with io.open(os.path.join(folder, "yum.conf"), "w", encoding="utf-8") as file:
        file.write(settings(given["repositories"], keys))
    return {"changed": True, "pid": pid}


def _outermost(paths):
    # type: (Iterable[str]) -> list[str]
    """Return the folders that are in none of the others."""
    folders = sorted({path.rstrip("/") for path in paths})
    return [path for path in folders if not any(path.startswith(other + "/") for other in folders)]


def _enter(module, run, folder):
    # type: (Any, Callable[..., Any], str) -> dict[str, Any]
    root, base = os.path.join(folder, "root"), module.params["base"]
    if base:
        path = os.path.join(folder, base)
        status, _, errors = run(["tar", "--extract", "--numeric-owner", "--xattrs", "--xattrs-include=*",
                                 "--file=%s" % path, "--directory=%s" % root])
        if status != 0:
            raise ImageError("%s cannot be unpacked: %s" % (path, (errors.strip().splitlines() or ["no reason"])[-1]))
        os.unlink(path)
    return {"changed": True, "pid": enter(run, root)}


def _install(module, run, folder):
    # type: (Any, Callable[..., Any], str) -> dict[str, Any]
    given, root = module.params, os.path.join(folder, "root")
    there = state(run)
    if not there["running"] or there["owner"] != given["owner"]:
        raise ImageError("this build has ended: its time was over, or somebody stopped the unit hal-image")
    install(there["pid"], folder, given["manager"], given["packages"], given["release"])
    absent = missing(run, root, given["packages"])
    if absent:
        raise ImageError("in no repository: %s. All of it is in %s" % (", ".join(absent), LOG))
    _one_kernel(run, root, given["kernel"])
    return {"changed": True}


def _one_kernel(run, root, wanted):
    # type: (Callable[..., Any], str, str) -> None
    installed = kernels(run, root)
    if installed != [wanted]:
        raise ImageError("kernel %s is declared, and the root has %s" % (wanted, ", ".join(installed) or "none"))


def _finish(module, run, folder):
    # type: (Any, Callable[..., Any], str) -> dict[str, Any]
    given, root = module.params, os.path.join(folder, "root")
    _one_kernel(run, root, given["kernel"])  # roles may have installed another
    packages = all_packages(run, root)
    clean(root)
    refuse(faults(root, given["digests"], given["key"]))
    labels = label(run, root)
    return dict(pack(folder, given["level"]), changed=True, packages=packages, labels=labels)


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "action": {"type": "str", "required": True,
                       "choices": ["state", "begin", "enter", "install", "finish", "end"]},
            "folder": {"type": "path", "required": True},
            "owner": {"type": "str", "default": ""},
            "seconds": {"type": "int", "default": 14400},
            "base": {"type": "str", "default": ""},
            "manager": {"type": "str", "choices": sorted(MANAGERS), "default": "yum"},
            "release": {"type": "str", "default": "7"},
            "packages": {"type": "list", "elements": "str", "default": []},
            "repositories": {"type": "str", "default": ""},
            "keys": {"type": "list", "elements": "dict", "default": [], "no_log": False},
            "kernel": {"type": "str", "default": ""},
            "digests": {"type": "dict", "default": {}},
            "key": {"type": "str", "default": "", "no_log": True},
            "level": {"type": "int", "choices": list(range(1, 10)), "default": 6},
        },
        supports_check_mode=True,
    )
    run, action = module.run_command, module.params["action"]
    folder = module.params["folder"].rstrip("/")
    try:
        if action == "state":
            module.exit_json(changed=False, **state(run))
        if module.check_mode:
            module.exit_json(changed=False, skipped=True, msg="an image is not built in check mode")
        if not folder.startswith("/") or folder.count("/") < 2:
            raise ImageError("folder is %s: name one below another, such as /srv/images/build" % folder)
        if action == "end":
            module.exit_json(changed=end(run, folder, module.params["owner"]))
        step = {"begin": _begin, "enter": _enter, "install": _install, "finish": _finish}[action]
        module.exit_json(**step(module, run, folder))
    except ImageError as error:
        module.fail_json(msg="%s" % error)
    except (IOError, OSError) as error:
        module.fail_json(msg="%s: %s" % (error.filename or folder, error.strerror))


if __name__ == "__main__":
    main()
