# -*- coding: utf-8 -*-
"""The connection that this process came by, and the interfaces that it needs.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os

from ansible.module_utils.common.text.converters import to_text

from .kernel import run
from .live import client_address, device_of_route, head_of, server_address

MYPY = False
if MYPY:
    from typing import Any, Mapping  # noqa: F401  in comments


def contact_heads(module, now):
    # type: (Any, Mapping[str, Any]) -> set[str] | None
    """Return what this connection needs: the interface that it came in by, and that of the answers; None if unknown.

    Where answers go by a gateway, what would change the default route is needed, too.
    """
    connection = ssh_connection()
    server, client = server_address(connection), client_address(connection)
    if not server or not client:
        return None
    route = run(module, "ip", "-o", "route", "get", client, check_rc=False)
    device_of_answers = device_of_route(route)
    needed = set(devices_with(server, now) + ([device_of_answers] if device_of_answers else []))
    if not needed:
        return None
    if "via" in route.split():
        needed.update(device["name"] for device in module.params["devices"]
                      if device.get("gateway") and now["routes"].get(device["name"]) != [device["gateway"]])
    heads = {device["name"]: head_of(device) for device in module.params["devices"]}
    return {heads.get(name, name) for name in needed}


def devices_with(address, now):
    # type: (str | None, Mapping[str, Any]) -> list[str]
    """Return the interfaces that have an address."""
    return sorted(name for name, listed in now["addresses"].items()
                  if address in [interface["address"].partition("/")[0] for interface in listed])


def ssh_connection():
    # type: () -> str | None
    """Return SSH_CONNECTION of this process or of the nearest above it: sudo does not hand it on."""
    pid = os.getpid()
    while pid > 1:
        try:
            with open("/proc/%d/environ" % pid, "rb") as stream:
                for entry in stream.read().split(b"\0"):
                    if entry.startswith(b"SSH_CONNECTION="):
                        return to_text(entry.partition(b"=")[2])  # type: ignore[no-any-return]  # Ansible has no types
            with open("/proc/%d/stat" % pid, "rb") as stream:
                pid = int(stream.read().rpartition(b")")[2].split()[1])
        except (IOError, OSError, ValueError):
            return None
    return None
