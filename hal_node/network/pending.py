# -*- coding: utf-8 -*-
"""What of the declared interfaces is not in force, and whether it may be changed now.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.module_utils.common.text.converters import to_text

from .contact import contact_heads
from .files import unshown
from .kept import text_in_force
from .live import differences, head_of, ipoib_differs

MYPY = False
if MYPY:
    from typing import Any, Mapping  # noqa: F401  in comments


def pending_of(module, now, files=True):
    # type: (Any, Mapping[str, Any], bool) -> list[dict[str, Any]]
    """Return [{name, why, contact, ipoib}] of the interfaces that are not as declared; a bond with its members is one.

    `files`: with what of them changes without the kernel showing it.
    """
    why, ipoib = {}, set()  # type: dict[str, list[str]], set[str]
    for device in module.params["devices"]:
        if ipoib_differs(device, now):
            ipoib.add(head_of(device))
        words = differences(device, now)
        if files and not words:
            keys = unshown(text_in_force(device), to_text(device["text"]))
            words = ["has not read %s of its file" % key for key in keys]
        if words:
            prefix = device["name"] + " " if device["master"] else ""
            why.setdefault(head_of(device), []).extend(prefix + word for word in words)
    needed = contact_heads(module, now)
    return [{"name": name, "why": why[name], "contact": needed is None or name in needed, "ipoib": name in ipoib}
            for name in sorted(why)]


def may_change(module, waiting):
    # type: (Any, Mapping[str, Any]) -> bool
    """Return whether an interface of pending_of() has the permission that it needs."""
    params = module.params
    return bool((params["contact_ok"] or not waiting["contact"]) and (params["ipoib_ok"] or not waiting["ipoib"]))
