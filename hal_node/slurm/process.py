# -*- coding: utf-8 -*-
"""When the process of a systemd unit was started, in a clock that compares with file times.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import time

MYPY = False
if MYPY:
    from typing import Any, Sequence  # noqa: F401  in comments

# Where systemctl takes another limit than its own 25 s for an answer (systemd 240 and later; 219 goes on with 25 s).
LONGER = {"SYSTEMD_BUS_TIMEOUT": "300"}


STEP = b"slurmstepd"


def job_steps(proc="/proc"):
    # type: (str) -> list[int]
    """Return the processes of steps of jobs on this node (proc(5), comm); they live on without slurmd."""
    pids = []
    for name in os.listdir(proc):
        if name.isdigit():
            try:
                with open(os.path.join(proc, name, b"comm" if isinstance(name, bytes) else "comm"), "rb") as stream:
                    if stream.read().strip() == STEP:
                        pids.append(int(name))
            except EnvironmentError:
                continue  # it has ended
    return pids


class NoAnswer(Exception):
    """systemd did not say what it was asked; the message is one line. What it would have said is not known."""


def monotonic_seconds():
    # type: () -> float
    """Return the clock of systemd's ...Monotonic properties, in seconds. Python 2.7 has no clock_gettime."""
    if hasattr(time, "clock_gettime"):
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    with open("/proc/uptime") as uptime:
        return float(uptime.read().split()[0])


def unit_properties(module, unit, names):
    # type: (Any, str, Sequence[str]) -> dict[str, str]
    """Return {property: text} of a unit; a missing unit has LoadState not-found and empty texts. Needs systemctl.

    A busy systemd may not answer in time, so it is asked three times, with a longer limit from the second time on.
    Raises NoAnswer when it still does not say: that is not the answer of a unit which is missing or dead.
    """
    argv = ["systemctl", "show", "--property", ",".join(names), unit]
    said = ""
    for environ in ({}, LONGER, LONGER):
        if environ:
            time.sleep(2)
        status, out, err = module.run_command(argv, environ_update=environ)
        answered = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
        properties = {name: answered.get(name, "") for name in names}
        if status == 0 and any(properties.values()):
            return properties
        said = ((err or out).strip().splitlines() or ["it said nothing"])[-1]
    raise NoAnswer("systemd did not answer, asked 3 times (systemctl show %s: %s); the state of the unit is not known"
                   % (unit, said))


def epoch(monotonic_microseconds):
    # type: (str | int) -> float
    """Return a ...Monotonic property as seconds since the epoch, good to about 10 ms."""
    return time.time() - (monotonic_seconds() - int(monotonic_microseconds) / 1e6)
