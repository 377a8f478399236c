# -*- coding: utf-8 -*-
"""When the process of a systemd unit was started, in a clock that compares with file times.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import time


def monotonic_seconds():
    """Return the clock of systemd's ...Monotonic properties, in seconds. Python 2.7 has no clock_gettime."""
    if hasattr(time, "clock_gettime"):
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    with open("/proc/uptime") as uptime:
        return float(uptime.read().split()[0])


def unit_properties(module, unit, names):
    """Return {property: text} of a unit; a missing unit has LoadState not-found and empty texts. Needs systemctl."""
    _status, out, _err = module.run_command(["systemctl", "show", "--property", ",".join(names), unit])
    properties = dict.fromkeys(names, "")
    properties.update(line.split("=", 1) for line in out.splitlines() if "=" in line)
    return properties


def epoch(monotonic_microseconds):
    """Return a ...Monotonic property as seconds since the epoch, good to about 10 ms."""
    return time.time() - (monotonic_seconds() - int(monotonic_microseconds) / 1e6)

