# -*- coding: utf-8 -*-
"""A change of interfaces, under a timer that puts everything back unless a new connection confirms it.

Runs on nodes: Python 2.7 and 3.6 and later, standard library only.
"""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import os
import shutil

from ansible.module_utils.common.text.converters import to_text

from ..files import content_of
from . import places
from .back import commands
from .contact import devices_with, ssh_connection
from .kept import forget, put, settle, shown
from .kernel import look, run
from .live import server_address
from .pending import may_change, pending_of

MYPY = False
if MYPY:
    from typing import Any, Mapping, Sequence  # noqa: F401  in comments


def apply(module):
    # type: (Any) -> dict[str, Any]
    """Start the timer that puts everything back, then the change of what is permitted."""
    now = look(module)
    pending = pending_of(module, now)
    started = [waiting["name"] for waiting in pending
               if may_change(module, waiting) and can_start(module, waiting["name"], now)]
    server = server_address(ssh_connection())
    result = {"changed": bool(started), "started": started, "server_address": server,
              "server_device": next(iter(devices_with(server, now)), None),
              "pending": [waiting for waiting in pending if waiting["name"] not in started]}
    if not started or module.check_mode:
        return result
    for folder in (places.ROLLBACK, places.UNDONE):
        if os.path.isdir(folder):
            module.fail_json(msg="%s is there: an earlier change was neither confirmed nor put back. `systemctl start"
                                 " %s.service` puts it back" % (folder, places.UNIT))
    for folder in (places.ROLLBACK + ".new", places.CONFIRMED):  # a run was cut short
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(places.ROLLBACK + ".new/files", 0o700)
    if not os.path.isdir(places.RUN):
        os.makedirs(places.RUN, 0o700)
    for path in (places.SAID, places.DONE, places.SEEN, places.LIVE):
        if os.path.exists(path):
            os.unlink(path)
    absent = []
    for head in started:
        folder = places.SAVED + "/" + head
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if name.endswith(".absent"):
                absent.append(name[:-len(".absent")])
            else:
                shutil.copy2(folder + "/" + name, places.ROLLBACK + ".new/files/")
    put(places.ROLLBACK + ".new/absent", absent)
    put(places.LIVE, commands(module, now, started))
    put(places.CHANGED, started)
    os.rename(places.ROLLBACK + ".new", places.ROLLBACK)
    settle(places.STATE)
    run(module, "systemctl", "restart", places.UNIT + ".timer")
    # A unit of an earlier change that failed would keep its name.
    run(module, "systemctl", "reset-failed", "hal-network-change.service", check_rc=False)
    run(module, "systemd-run", "--quiet", "--unit=hal-network-change", "/bin/sh", places.CHANGE, *started)
    return result


def can_start(module, head, now):
    # type: (Any, str, Mapping[str, Any]) -> bool
    """Return whether there is what ifup needs: the interface, or the members of a bond, which ifup makes."""
    members = [device["name"] for device in module.params["devices"] if device["master"] == head]
    return all(name in now["links"] for name in members or [head])


def confirm(module):
    # type: (Any) -> dict[str, Any]
    """Keep what is in force, if that is what was declared; put it back at once if not.

    Nobody has come in by what was changed as long as ifup is at work, or while it ended: then the answer is "not yet",
    and the next connection confirms.
    """
    if module.check_mode:
        return {"changed": False, "confirmed": False}
    started = to_text(content_of(places.CHANGED) or b"").split()
    if not os.path.isdir(places.ROLLBACK):
        too_late(module, started)
    if not os.path.exists(places.DONE):
        return {"changed": False, "confirmed": False}
    pending = [waiting for waiting in pending_of(module, look(module), files=False) if waiting["name"] in started]
    if pending:
        run(module, "systemctl", "start", "--no-block", places.UNIT + ".service")
        why = "; ".join("%s %s" % (waiting["name"], ", ".join(waiting["why"])) for waiting in pending)
        module.fail_json(msg="%s: files and interfaces are put back as they were. ifdown and ifup said: %s"
                             % (why, words_of(places.DONE)))
    if not os.path.exists(places.SEEN):
        put(places.SEEN, [])
        return {"changed": False, "confirmed": False}
    try:
        os.rename(places.ROLLBACK, places.CONFIRMED)  # whoever renames it first has it: this, or the timer
    except OSError as error:
        if not os.path.isdir(places.ROLLBACK):
            too_late(module, started)
        module.fail_json(msg="%s cannot be confirmed: %s" % (" and ".join(started), to_text(error)))
    run(module, "systemctl", "stop", places.UNIT + ".timer")
    shutil.rmtree(places.CONFIRMED)
    forget(started)
    return {"changed": True, "confirmed": True}


def too_late(module, started):
    # type: (Any, Sequence[str]) -> None
    """Say that the timer was first."""
    module.fail_json(msg="too late: %s as before, since nobody confirmed in time. ifdown and ifup said: %s"
                     % (" and ".join(started) + " was put back" if started else "nothing was begun, all is",
                        words_of(places.DONE, places.SAID)))


def words_of(*paths):
    # type: (*str) -> str
    """Return what the first of these files says that is there."""
    return next((shown(content_of(path)).strip() for path in paths if os.path.exists(path)), "") or "nothing"
