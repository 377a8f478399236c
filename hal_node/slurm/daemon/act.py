# -*- coding: utf-8 -*-
"""A daemon is started, restarted or reconfigured, and waited for until it does its work.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re
import time

from .daemon import Daemon  # noqa: F401  in comments

# States of a node that slurmctld has not heard of since its slurmd started; 20.02 writes the mark, 22.05 the word.
SILENT = re.compile(r"NOT_RESPONDING|UNK|\*")


def act(daemon, action):
    # type: (Daemon, str) -> None
    """Do start, restart or reconfigure, wait for the daemon and record what it runs with."""
    if action == "reconfigure":
        if daemon.name == "slurmctld":
            status, out, err = daemon.slurmctld.run(["scontrol", "reconfigure"], 60, conf=False)
            if status != 0:
                daemon.unit.fail("scontrol reconfigure: %s" % (err or out).strip())
        else:
            daemon.unit.systemctl("reload", daemon.unit.name)
    else:
        daemon.unit.systemctl("reset-failed", daemon.unit.name)
        daemon.unit.systemctl(action, daemon.unit.name)
        _wait(daemon)
    daemon.note()


def wait_until_known(daemon):
    # type: (Daemon) -> None
    """Wait until slurmctld has heard of this node: after its own restart it knows none until they answer it."""
    end = time.time() + daemon.wait_seconds
    while time.time() < end:
        seen = daemon.slurmctld.node(daemon.node)
        if not seen or "UNK" not in seen.get("State", ""):
            return
        time.sleep(0.5)


def _wait(daemon):
    # type: (Daemon) -> None
    """Wait until the daemon answers; end the module if it stopped. slurmd may stay down for other reasons."""
    end = time.time() + daemon.wait_seconds
    time.sleep(0.5)
    while True:
        daemon.unit.look()
        if not daemon.unit.running:
            daemon.unit.fail("it was started and ended at once")
        if _answers(daemon):
            return
        if time.time() > end:
            if daemon.name != "slurmd":
                daemon.unit.fail("it runs but does not answer after %d s" % daemon.wait_seconds)
            return
        time.sleep(0.5)


def _answers(daemon):
    # type: (Daemon) -> bool
    """Return whether the daemon does its work, not only whether its process lives."""
    run = daemon.slurmctld.run
    if daemon.name == "slurmctld":
        status, out, _err = run(["scontrol", "ping"], 5, conf=False)
        return status == 0 and " UP" in out
    if daemon.name == "slurmdbd":
        return run(["sacctmgr", "--noheader", "--parsable2", "show", "cluster"], 5, conf=False)[0] == 0
    seen = daemon.slurmctld.node(daemon.node)
    # Without slurmctld a slurmd waits for it; that is as far as it can get.
    return seen is None or not seen or not SILENT.search(seen.get("State", ""))
