"""Follows a run of ansible-playbook and gathers what its audit of each node found."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import time
from pathlib import Path
from typing import Any, TextIO

from ansible import context
from ansible.errors import AnsibleError

from hal_cluster.audit import examine, findings, history, report, takeover_report
from hal_cluster.audit.document import Audit
from hal_cluster.audit.errors import AuditError
from hal_cluster.audit.store import Store, write_json

ACTION = "hal_audit"
# Set by hal-audit run: where it reads the result, and where it is told how far the audit is.
DOCUMENT = "HAL_AUDIT_DOCUMENT"
PROGRESS = "HAL_AUDIT_PROGRESS"


class Collector:
    """One run. Does nothing in a run that audits nothing."""

    def __init__(self) -> None:
        """Nothing gathered yet."""
        self.audit = Audit()
        self.used = False
        self.started = time.monotonic()
        self._play: Any = None
        self._stores: set[str] = set()
        self._roles: set[str] = set()
        self._progress = _pipe()

    def play_starts(self, play: Any) -> None:
        """Plays that audit are known by their task."""
        self._play = play

    def task_starts(self, task: Any) -> None:
        """Expect an answer of every node of the play, and read what all of them share."""
        if task.action != ACTION:
            return
        self.used = True
        manager = self._play._variable_manager
        hosts = manager._inventory.get_hosts(self._play.hosts)
        self.audit.expected.extend(host.get_name() for host in hosts)
        self.audit.groups = manager._inventory.get_groups_dict()
        self.audit.inventory = [_relative(source) for source in context.CLIARGS.get("inventory") or []]
        self.audit.options = inventory_options(context.CLIARGS.get("inventory") or ())
        self._say({"expected": len(hosts)})
        if hosts:
            # The host with the most groups: its templates are most of what the others need.
            fullest = max(hosts, key=lambda host: len(host.get_groups()))
            with contextlib.suppress(AnsibleError, OSError):  # each host says what is wrong with it
                examine.warm_up(self._play._loader, manager.get_vars(play=self._play, host=fullest))

    def answered(self, result: Any, *, unreachable: bool = False) -> None:
        """Take over a result of the audit; results of other tasks are ignored."""
        host = result._host.get_name()
        if result._task.action != ACTION:
            if unreachable and self.used:
                self.audit.lost(findings.unreachable(host, str(result._result.get("msg") or "")))
            return
        payload = (result._result.get("invocation") or {}).get("audit")
        if isinstance(payload, dict):
            self.audit.add(host, payload)
            self._stores.add(str(payload.get("audit_dir") or ""))
            self._roles.update(payload.get("only") or ())
        else:
            words = str(result._result.get("msg") or "no reason given")
            self.audit.lost((findings.unreachable if unreachable else findings.unreadable)(host, words))
        self._say({"done": host})

    def finish(self, out: TextIO) -> tuple[str, str]:
        """Return (the report, a warning); no report when another program prints it."""
        if not self.used:
            return "", ""
        document = self.audit.document(time.monotonic() - self.started)
        warning = ""
        for folder in sorted(self._stores - {""}):
            try:
                store = Store(folder)
                write_json(store.last, document)
                history.add(store, history.entry(document, sorted(self._roles)))
            except (OSError, AuditError) as error:
                warning = f"the result of the audit could not be kept: {error}"
        elsewhere = os.environ.get(DOCUMENT)
        if elsewhere:
            Path(elsewhere).write_text(json.dumps(document), encoding="utf-8")
            return "", warning
        colour = out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        width = shutil.get_terminal_size((report.WIDTH, 24)).columns if colour else report.WIDTH
        words = takeover_report.text if "takeover" in document else report.text
        return words(document, width=width, colour=colour), warning

    def _say(self, words: dict[str, Any]) -> None:
        if self._progress < 0:
            return
        try:
            os.write(self._progress, json.dumps(words).encode() + b"\n")
        except OSError:
            self._progress = -1  # nobody listens any more


def inventory_options(sources: Any) -> str:
    """Return the -i options that this run was given, as a shell has to get them again; "" for those of ansible.cfg."""
    from ansible import constants

    given = [_relative(source) for source in sources]
    usual = constants.DEFAULT_HOST_LIST or []
    return (
        ""
        if given == [_relative(source) for source in usual]
        else "".join(f"-i {shlex.quote(source)} " for source in given)
    )


def _relative(path: str) -> str:
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) else path


def _pipe() -> int:
    """The pipe to hal-audit run; nothing that is started from here inherits it."""
    try:
        number = int(os.environ.get(PROGRESS, "-1"))
        if number >= 0:
            os.set_inheritable(number, False)
    except (ValueError, OSError):
        return -1
    return number
