#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Mirror exactly the locked packages, verified, and switch to them at once."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
---
module: hal_package_mirror
short_description: Mirror the packages of a lock file
description:
  - Fetches the named files of package repositories, and no others, into a pool. Keeps a file only if its size, its
    checksum and its signature by the locked key are right. Continues what an interrupted run left.
  - Makes a snapshot of them with metadata of its own, and switches the link C(current) to it at once. If anything is
    wrong, the old snapshot stays current.
  - Takes one call for all packages; M(ansible.builtin.get_url) would take one for each.
options:
  folder:
    description: The folder of the mirror. It has to exist.
    type: path
    required: true
  digest:
    description: The digest of what is locked. It is the name of the snapshot.
    type: str
    required: true
  trees:
    description: Repositories by architecture.
    type: list
    elements: dict
    required: true
    suboptions:
      repository: {description: The repository's id., type: str, required: true}
      arch: {description: Its architecture., type: str, required: true}
      url: {description: "Where its files are; http, https, ftp or file.", type: str, required: true}
      packages:
        description: Files below url.
        type: list
        elements: dict
        required: true
        suboptions:
          file: {description: Path below url., type: str, required: true}
          size: {description: Bytes., type: int, required: true}
          sha256: {description: Checksum., type: str, required: true}
          key: {description: Id of the key that signed it (16 hex digits)., type: str, required: true}
  keys:
    description: Signing keys.
    type: list
    elements: dict
    required: true
    suboptions:
      id: {description: Its name., type: str, required: true}
      source: {description: URL or path on the node., type: str, required: true}
      fingerprint: {description: 40 hex digits., type: str, required: true}
  createrepo:
    description: Program that writes the metadata of a folder.
    type: str
    default: createrepo_c
  keep:
    description: How many old snapshots to keep.
    type: int
    default: 2
  timeout_seconds:
    description: How long a server may be silent.
    type: int
    default: 60
author: [HAL toolkit]
attributes:
  check_mode: {support: full, description: Says whether the locked packages are published. Fetches nothing.}
  diff_mode: {support: none, description: There is nothing to read in packages.}
"""

EXAMPLES = r"""
- name: Mirror the locked packages
  hal_package_mirror:
    folder: /srv/www/mirror
    digest: "{{ __mirror_lock.digest }}"
    trees: "{{ __mirror_lock.trees }}"
    keys: "{{ __mirror_lock['keys'] }}"
  vars:
    __mirror_lock: "{{ lookup('hal_packages', mirror_lock_file, keys=mirror_keys) }}"
"""

RETURN = r"""
snapshot:
  description: Name of the current snapshot.
  type: str
  returned: success
fetched:
  description: How many packages had to be fetched.
  type: int
  returned: success
fetched_bytes:
  description: How many bytes of them this run fetched.
  type: int
  returned: success
faults:
  description: Why packages cannot be published, one text each.
  type: list
  elements: str
  returned: failure
"""

import io
import os
import shutil
import tempfile

from ansible.module_utils.hal_node.digest import sha256_of
from ansible.module_utils.hal_node.mirror.fetch import MirrorError, fetch
from ansible.module_utils.hal_node.mirror.keys import Keyring
from ansible.module_utils.hal_node.mirror.snapshot import (
    current, free_name, is_whole, make, place, pooled, prune, surplus, switch)
from ansible.module_utils.hal_node.run_command import AnsibleModule
from ansible.module_utils.urls import open_url

MYPY = False
if MYPY:
    from typing import Any, Mapping, Sequence  # noqa: F401  in comments

PACKAGE = {"file": {"type": "str", "required": True}, "size": {"type": "int", "required": True},
           "sha256": {"type": "str", "required": True}, "key": {"type": "str", "required": True, "no_log": False}}
TREE = {"repository": {"type": "str", "required": True}, "arch": {"type": "str", "required": True},
        "url": {"type": "str", "required": True},
        "packages": {"type": "list", "elements": "dict", "required": True, "options": PACKAGE}}
KEY = {"id": {"type": "str", "required": True}, "source": {"type": "str", "required": True},
       "fingerprint": {"type": "str", "required": True}}
SHOWN = 20


def main():
    # type: () -> None
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "digest": {"type": "str", "required": True},
            "trees": {"type": "list", "elements": "dict", "required": True, "options": TREE},
            "keys": {"type": "list", "elements": "dict", "required": True, "options": KEY, "no_log": False},
            "createrepo": {"type": "str", "default": "createrepo_c"},
            "keep": {"type": "int", "default": 2},
            "timeout_seconds": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    work = tempfile.mkdtemp(dir=module.tmpdir)
    try:
        result = _mirror(module, work)
    except MirrorError as error:
        module.fail_json(msg="mirror: %s" % error)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    module.exit_json(**result)


def _mirror(module, work):
    # type: (Any, str) -> dict[str, Any]
    params = module.params
    folder, trees = params["folder"], params["trees"]
    before = current(folder)
    mine = before if before and before.partition(".")[0] == params["digest"] else ""
    # By checksum: trees of two architectures may have one file.
    missing = list({package["sha256"]: (tree, package) for tree in trees for package in tree["packages"]
                    if not _is_pooled(folder, package)}.values())
    if module.check_mode:
        return {"changed": bool(missing) or not mine, "snapshot": before or "", "fetched": 0, "fetched_bytes": 0}
    os.umask(0o022)
    keyring, keys = Keyring(module, work), {}
    for key in params["keys"]:
        keys[key["id"]] = _key_file(key, work, params["timeout_seconds"])
        keyring.trust(key["id"], keys[key["id"]], key["fingerprint"])
    fetched_bytes = _fetch(module, keyring, missing)
    whole = bool(mine) and is_whole(folder, mine, trees, keys)
    if not whole:
        name = free_name(folder, params["digest"])
        make(folder, name, trees, keys, lambda here: _index(module, here))
        switch(folder, name)
    old = surplus(folder, params["keep"])
    prune(folder, old, trees)
    return {"changed": bool(missing or old) or not whole, "snapshot": current(folder), "fetched": len(missing),
            "fetched_bytes": fetched_bytes}


def _is_pooled(folder, package):
    # type: (str, Mapping[str, Any]) -> bool
    path = pooled(folder, package)
    return os.path.isfile(path) and os.path.getsize(path) == package["size"] and sha256_of(path) == package["sha256"]


def _fetch(module, keyring, missing):
    # type: (Any, Keyring, Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> int
    """Bring what is missing into the pool, or fail with every fault; a file with a fault does not stay."""
    folder, faults, fetched_bytes, signers = module.params["folder"], [], 0, {}
    for tree, package in missing:
        path = pooled(folder, package)
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
        try:
            # Under another name until its signature is verified as well.
            fetched_bytes += fetch("%s/%s" % (tree["url"].rstrip("/"), package["file"]), path + ".new",
                                   package["size"], package["sha256"], module.params["timeout_seconds"])
            signers[path + ".new"] = package["key"]
        except MirrorError as error:
            faults.append(str(error))
    bad = keyring.faults(signers)
    names = {pooled(folder, package) + ".new": place(tree, package) for tree, package in missing}
    for path in signers:
        if path in bad:
            faults.append("%s: %s: not published" % (names[path], bad[path]))
            os.unlink(path)
        else:
            os.rename(path, path[:-len(".new")])
    if faults:
        text = "\n".join(faults[:SHOWN])
        more = "\nand %d more" % (len(faults) - SHOWN) if len(faults) > SHOWN else ""
        module.fail_json(msg="mirror: %d packages cannot be published, %s stays current\n%s%s"
                             % (len(faults), current(folder) or "nothing", text, more), faults=faults)
    return fetched_bytes


def _key_file(key, work, timeout_seconds):
    # type: (Mapping[str, str], str, int) -> str
    path = os.path.join(work, "key-" + key["id"])
    try:
        if "://" in key["source"]:
            content = open_url(key["source"], timeout=timeout_seconds, http_agent="hal-mirror").read()
        else:
            with io.open(key["source"], "rb") as stream:
                content = stream.read()
    except Exception as error:  # urllib, ssl and socket have no common root in Python 2
        raise MirrorError("key %s: %s cannot be read: %s" % (key["id"], key["source"], error))
    with io.open(path, "wb") as stream:
        stream.write(content)
    return path


def _index(module, here):
    # type: (Any, str) -> None
    status, output, errors = module.run_command([module.params["createrepo"], "--quiet", here])
    if status != 0:
        raise MirrorError("%s %s: %s" % (module.params["createrepo"], here, (errors or output).strip()))


if __name__ == "__main__":
    main()
