# -*- coding: utf-8 -*-
"""What the kernel has of interfaces now: asked of ip, and read from /sys and /proc.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ansible.module_utils.common.text.converters import to_text

from ..files import content_of
from .live import addresses, bond, default_routes, links

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments


def look(module):
    # type: (Any) -> dict[str, Any]
    """Return what the kernel has, in the form that differences() reads."""
    now = {"links": links(run(module, "ip", "-o", "link")),
           "addresses": addresses(run(module, "ip", "-o", "-4", "addr")),
           "routes": default_routes(run(module, "ip", "-4", "route", "show", "default")), "modes": {}, "bonds": {}}  # type: dict[str, Any]
    for name in now["links"]:
        mode = content_of("/sys/class/net/%s/mode" % name)
        if mode is not None:
            now["modes"][name] = to_text(mode).strip()
        members = content_of("/proc/net/bonding/" + name)
        if members is not None:
            now["bonds"][name] = bond(to_text(members))
    return now


def routes(module, *which):
    # type: (Any, *str) -> list[str]
    """Return the routes of `ip route show` as ip takes them."""
    # -o: a route with several gateways is several lines otherwise. ip does not take what the kernel notes of a route.
    shown_lines = run(module, "ip", "-o", "-4", "route", "show", *which).splitlines()
    return [" ".join(word for word in line.replace("\\", " ").split() if word not in ("linkdown", "dead", "offload"))
            for line in shown_lines]


def run(module, *argv, **more):
    # type: (Any, *str, **bool) -> str
    """Return the output of a program, which has to succeed unless check_rc is False; PATH may lack sbin."""
    program = module.get_bin_path(argv[0], required=True)
    return module.run_command([program] + list(argv[1:]), check_rc=more.get("check_rc", True),  # type: ignore[no-any-return]  # Ansible has no types
                              environ_update={"LC_ALL": "C"})[1]
