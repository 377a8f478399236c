# -*- coding: utf-8 -*-
"""Files of interfaces are written; no interface is touched.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ansible.module_utils.common.text.converters import to_bytes

from ..files import content_of, replace_content
from . import places
from .files import competing, files_of
from .kept import forget, keep, keep_first, settle, shown
from .kernel import look
from .live import foreign, head_of
from .pending import may_change, pending_of

MYPY = False
if MYPY:
    from typing import Any, Mapping  # noqa: F401  in comments


def write(module):
    # type: (Any) -> dict[str, Any]
    """Write what differs, and say what is not in force."""
    devices = module.params["devices"]
    now = look(module)
    wrong = [words for words in (foreign(device, now["links"].get(device["name"])) for device in devices) if words]
    if wrong:
        module.fail_json(msg="%s. ifup would leave it down: nothing was written. Is the cable in another port, or"
                             " the model wrong?" % "; ".join(wrong))
    if not os.path.isdir(places.SCRIPTS):
        module.fail_json(msg="there is no %s: the package initscripts brings it" % places.SCRIPTS)
    dropped = sorted(set(now["routes"]) & {device["name"] for device in devices})
    if dropped and not module.params["no_default_route_ok"] and not any(device["gateway"] for device in devices):
        module.fail_json(msg="%s has the default route, and no network of this node has a gateway in the model: after"
                             " the next boot there would be none. Nothing was written. Declare `gateway` of a network"
                             " in cluster.yml, or `network_default_route: []` for a node that needs none"
                             % ", ".join(dropped))
    pending = pending_of(module, now)
    waiting = {interface["name"] for interface in pending}
    held = {interface["name"] for interface in pending if not may_change(module, interface)}
    heads = {device["name"]: head_of(device) for device in devices}
    diffs = [write_file(module, device, waiting) for device in devices if head_of(device) not in held]
    # A bond's member can be named by a file, too: what it stands for is the bond.
    withdrawn = {name: heads[device] for name, device in competing(files_of(places.SCRIPTS), devices).items()}
    withdrawn = {name: head for name, head in withdrawn.items() if head not in held}
    diffs += [withdraw(module, name, withdrawn[name], waiting) for name in sorted(withdrawn)]
    diffs = [diff for diff in diffs if diff]
    if not module.check_mode:
        forget(set(heads.values()) - waiting)
        if diffs:
            settle(places.BEFORE, places.SCRIPTS)
    return {"changed": bool(diffs), "diff": diffs, "pending": pending, "held": sorted(held),
            "withdrawn": sorted(withdrawn)}


def write_file(module, device, waiting):
    # type: (Any, Mapping[str, Any], set[str]) -> dict[str, str] | None
    """Write the file of an interface; return the diff, None where nothing differs."""
    path = device["path"]
    before, wanted = content_of(path), to_bytes(device["text"])
    different = before != wanted
    if different and not module.check_mode:
        keep_first(path, before)
        keep(path, before, head_of(device), waiting)
        replace_content(module, path, wanted)
    if os.path.exists(path):
        arguments = {"path": path, "owner": "root", "group": "root", "mode": "0644", "seuser": None, "serole": None,
                     "setype": None, "selevel": None, "unsafe_writes": False, "attributes": None}
        different = module.set_fs_attributes_if_different(module.load_file_common_arguments(arguments), different)
    if not different:
        return None
    return {"before_header": path, "after_header": path, "before": shown(before), "after": device["text"]}


def withdraw(module, name, head, waiting):
    # type: (Any, str, str, set[str]) -> dict[str, str]
    """Take away a file that would bring up a declared interface, too; return the diff."""
    path = places.SCRIPTS + "/" + name
    before = content_of(path)
    if not module.check_mode:
        keep_first(path, before)
        keep(path, before, head, waiting)
        os.unlink(path)
    return {"before_header": path, "after_header": path, "before": shown(before), "after": ""}
