# -*- coding: utf-8 -*-
"""The way back to what the kernel has, as commands of the program that puts it back.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from .kernel import routes
from .live import head_of

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping  # noqa: F401  in comments


def commands(module, now, heads):
    # type: (Any, Mapping[str, Any], Iterable[str]) -> list[str]
    """Return what the kernel has of interfaces, as commands of files/rollback.sh in the order in which they work."""
    names = [device["name"] for device in module.params["devices"] if head_of(device) in heads]
    there = [name for name in names if name in now["links"]]
    lines = ["%s absent" % name for name in names if name not in there]
    lines += ["%s mode %s" % (name, now["modes"][name]) for name in there if name in now["modes"]]
    lines += ["%s alone" % name for name in there if not now["links"][name]["master"]]
    for name in there:
        if name in now["bonds"]:
            lines.append("%s bond %s" % (name, " ".join([now["bonds"][name]["mode"]] + now["bonds"][name]["members"])))
    for name in there:
        lines.append("%s flush" % name)
        lines.append("%s mtu %d" % (name, now["links"][name]["mtu"]))
        lines.append("%s %s" % (name, "up" if now["links"][name]["up"] else "down"))
        for listed in now["addresses"].get(name, []):
            broadcast = " brd " + listed["broadcast"] if listed["broadcast"] else ""
            lines.append("%s addr %s%s" % (name, listed["address"], broadcast))
    # The kernel makes its own routes again. Default routes follow below.
    for name in there:
        lines += ["route %s dev %s" % (route, name) for route in routes(module, "dev", name)
                  if "proto kernel" not in route and not route.startswith("default")]
    # Whatever interface they are of: ifup replaces the one that there is.
    lines += ["route " + route for route in routes(module, "default")]
    firewall = module.get_bin_path("firewall-cmd")
    if firewall and module.run_command([firewall, "--state"])[0] == 0:
        for name in there:
            code, zone, _ = module.run_command([firewall, "--get-zone-of-interface=" + name])
            lines.append(("%s zone %s" % (name, zone if code == 0 else "")).strip())  # without one it is the default
    return lines
