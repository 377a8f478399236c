# -*- coding: utf-8 -*-
"""Which files of network scripts would bring up an interface that has a file of its own.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

PREFIX = "ifcfg-"
_SETTING = re.compile(r"^\s*(DEVICE|HWADDR)=(.*)$")
#: The scripts leave these alone (/etc/init.d/functions of initscripts 9.49).
_IGNORED = re.compile(r"(~|\.bak|\.old|\.orig|\.rpmnew|\.rpmorig|\.rpmsave)$")


def competing(files, devices):
    """Return {file name: the declared interface that it would bring up, too}.

    `files`: {name: text} of the folder. NetworkManager names files as it likes (ifcfg-Wired_connection_1), and
    ifcfg-eth0:1 gives eth0 a second address. What names neither DEVICE nor HWADDR is of the interface in its name.
    """
    by_name = {device["name"]: device for device in devices}
    by_mac = {device["mac"].lower(): device for device in devices if device.get("mac")}
    found = {}
    for name, text in files.items():
        if not name.startswith(PREFIX) or _IGNORED.search(name) or name[len(PREFIX):] in by_name:
            continue
        said = _settings(text)
        wanted = said.get("DEVICE") or ("" if said.get("HWADDR") else name[len(PREFIX):])
        device = by_name.get(wanted.partition(":")[0]) or (not wanted and by_mac.get(said["HWADDR"].lower()))
        if device:
            found[name] = device["name"]
    return found


def _settings(text):
    found = {}
    for line in text.splitlines():
        match = _SETTING.match(line)
        if match:
            found[match.group(1)] = match.group(2).split("#")[0].strip().strip("'\"")
    return found
