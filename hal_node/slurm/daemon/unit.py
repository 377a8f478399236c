# -*- coding: utf-8 -*-
"""The systemd unit of a daemon: what it says, and what it is told.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..process import NoAnswer, epoch, unit_properties

MYPY = False
if MYPY:
    from typing import Any  # noqa: F401  in comments

PROPERTIES = ("LoadState", "ActiveState", "UnitFileState", "MainPID", "ExecMainStartTimestampMonotonic",
              "NeedDaemonReload")


class Unit(object):
    """One unit. `state`: its properties when somebody looked last; a missing unit has LoadState "not-found"."""

    def __init__(self, module, daemon):
        # type: (Any, str) -> None
        self.module = module
        self.daemon = daemon
        self.name = daemon + ".service"
        self.state = {}  # type: dict[str, str]
        self.look()

    def look(self):
        # type: () -> None
        """Ask systemd. Without an answer the module ends."""
        try:
            self.state = unit_properties(self.module, self.name, PROPERTIES)
        except NoAnswer as error:
            self.fail("%s. Repeat the run when the machine is less busy" % error)

    def systemctl(self, *words):
        # type: (*str) -> None
        """Run systemctl; a failure ends the module with what the daemon last logged."""
        status, out, err = self.module.run_command(["systemctl"] + list(words))
        if status != 0:
            self.fail("systemctl %s: %s" % (" ".join(words), (err or out).strip()))

    def fail(self, message):
        # type: (str) -> None
        """End with one line, and the daemon's last own lines beside it."""
        _status, out, _err = self.module.run_command(
            ["journalctl", "--unit", self.name, "--lines", "15", "--no-pager", "--output", "cat"])
        self.module.fail_json(msg="%s: %s" % (self.daemon, message), log=out.splitlines()[-15:])

    @property
    def running(self):
        # type: () -> bool
        """Whether the daemon runs."""
        return self.state["ActiveState"] in ("active", "reloading") and self.state["MainPID"] not in ("", "0")

    @property
    def started(self):
        # type: () -> float
        """When it was started, in seconds since the epoch; comparable with file times to about 10 ms."""
        return epoch(self.state["ExecMainStartTimestampMonotonic"])

    def prepare(self):
        # type: () -> list[str]
        """Unmask and enable the unit; return what that changed."""
        done = []
        if self.state["LoadState"] == "masked":
            done.append("unmasked")
        if self.state["UnitFileState"] not in ("enabled", "enabled-runtime", "static", "generated"):
            done.append("enabled")
        if not self.module.check_mode:
            if "unmasked" in done:
                self.systemctl("unmask", self.name)
            if self.state["NeedDaemonReload"] == "yes" or "unmasked" in done:
                self.systemctl("daemon-reload")
            if "enabled" in done:
                self.systemctl("enable", self.name)
        return done
