# -*- coding: utf-8 -*-
"""Files of network scripts: which of them compete for an interface, and what a change of one needs.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only. As a program it prints the competing files of the
folder $1 for the devices in $2 (JSON): the promise of roles/network.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import io
import json
import os
import re
import sys

MYPY = False
if MYPY:
    from typing import Any, Iterable, Mapping  # noqa: F401  in comments

PREFIX = "ifcfg-"
#: How each file of the role begins (hal_cluster/rules/network.py).
HEADER = "# Written by the role network"
_SETTING = re.compile(r"^\s*(\w+)=(.*)$")
#: The scripts leave these alone (/etc/init.d/functions of initscripts 9.49).
_IGNORED = re.compile(r"(~|\.bak|\.old|\.orig|\.rpmnew|\.rpmorig|\.rpmsave)$")
#: What the kernel shows when it is in force, and what matters to a boot alone or to the role firewall.
_SHOWN = frozenset((
    "DEVICE", "TYPE", "HWADDR", "ONBOOT", "BOOTPROTO", "NM_CONTROLLED", "IPV6INIT", "PEERDNS", "IPADDR", "PREFIX",
    "GATEWAY", "DEFROUTE", "MTU", "CONNECTED_MODE", "MASTER", "SLAVE", "BONDING_MASTER", "ZONE"))


def competing(files, devices):
    # type: (Mapping[str, str], Iterable[Mapping[str, Any]]) -> dict[str, str]
    """Return {file name: the declared interface that it would bring up, too}.

    `files`: {name: text} of the folder. NetworkManager names files as it likes (ifcfg-Wired_connection_1), and
    ifcfg-eth0:1 gives eth0 a second address. What names neither DEVICE nor HWADDR is of the interface in its name.
    One more port of a bond is that bond's.
    """
    by_name = {device["name"]: device for device in devices}
    by_mac = {device["mac"].lower(): device for device in devices if device.get("mac")}
    competitors = {}
    for name, text in files.items():
        if not name.startswith(PREFIX) or _IGNORED.search(name) or name[len(PREFIX):] in by_name:
            continue
        said = {key: value.split("#")[0].strip().strip("'\"") for key, value in settings(text).items()}
        wanted = said.get("DEVICE") or ("" if said.get("HWADDR") else name[len(PREFIX):])
        device = (by_name.get(wanted.partition(":")[0]) or (not wanted and by_mac.get(said["HWADDR"].lower()))
                  or by_name.get(said.get("MASTER")))
        if device:
            competitors[name] = device["name"]
    return competitors


def unshown(before, after):
    # type: (str, str) -> list[str]
    """Return the settings that change between two texts of a file, and of which the kernel shows nothing.

    What was in a file that somebody else wrote, and is not in ours, is not wanted: only what is added counts.
    """
    had, has = settings(before), settings(after)
    changed = {key for key in has if has[key] != had.get(key)}
    if before.startswith(HEADER):
        changed |= set(had) - set(has)
    return sorted(changed - _SHOWN)


def settings(text):
    # type: (str) -> dict[str, str]
    """Return {key: value} of a file, as it is written there."""
    values = {}
    for line in text.splitlines():
        match = _SETTING.match(line)
        if match:
            values[match.group(1)] = match.group(2).strip()
    return values


def files_of(folder):
    # type: (str) -> dict[str, str]
    """Return {name: text} of the files of interfaces."""
    texts = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.startswith(PREFIX) and os.path.isfile(path):
            with io.open(path, encoding="utf-8", errors="replace") as stream:
                texts[name] = stream.read()
    return texts


if __name__ == "__main__":
    for name in sorted(competing(files_of(sys.argv[1]), json.loads(sys.argv[2]))):
        print(name)
