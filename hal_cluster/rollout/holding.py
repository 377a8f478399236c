"""A rollout holds the nodes that it changes, from before the first play that has roles until its end."""

from __future__ import annotations

import functools
import getpass
import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.executor.task_queue_manager import TaskQueueManager
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.callback import CallbackBase
from ansible.template import Templar
from ansible.utils.display import Display

from hal_cluster.aside import AsidePlay, play_aside
from hal_cluster.audit.recording import Run
from hal_cluster.audit.sealing import folded
from hal_cluster.rollout import managing, notes
from hal_cluster.rollout.processes import Here, started
from hal_cluster.rollout.words import PERMISSION, command_line
from hal_inventory.printable import one_line

PLAY_HOLDS = "rollout_holds"
"""A play's variable: the play holds its hosts although it lists no roles."""
EVERY_HOST = "every host"
"""Value of that variable: the play also holds hosts on which no role is managed."""
LOGIN = ("remote_user", "become", "become_user", "become_method", "become_flags", "become_exe", "connection", "port")
HOLD = "Hold the node for this rollout"
LET_GO = "Let the node go"


class Answers(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """Prints nothing, keeps what hosts answered: by host, and those that did not answer."""

    def __init__(self) -> None:
        """Nobody has answered yet."""
        super().__init__()
        self.ok: dict[str, Any] = {}
        self.failed: dict[str, Any] = {}
        self.unreachable: dict[str, Any] = {}

    def v2_runner_on_ok(self, result: Any) -> None:
        """It did what it was asked."""
        self.ok[result._host.get_name()] = result

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """It could not, or somebody else holds it."""
        self.failed[result._host.get_name()] = result

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """It does not answer."""
        self.unreachable[result._host.get_name()] = result


class Rollout:
    """The one rollout of this process. `held`: its nodes."""

    def __init__(self) -> None:
        """It holds nothing yet."""
        self.id = ""
        self.held: set[str] = set()
        self._process = os.getpid()
        self._lost: set[str] = set()
        self._failed: set[str] = set()
        self._holder: dict[str, Any] = {}
        self._note: notes.Note | None = None
        self._play: Any = None
        self._passwords: Mapping[str, str] = {}

    # --- before a play

    def before(self, queue: Any, play: Any) -> bool:
        """Hold the hosts of a play that are not held yet. Return False if the run has to end here."""
        names = self._wanted(queue, play)
        if not names:
            return True
        self._play, self._passwords = play, queue.passwords
        self._begin(names[0])
        answers = self._ask(
            names,
            {
                "state": "held",
                "holder": self._holder,
                "take_over": boolean(play._variable_manager.extra_vars.get(PERMISSION, False), strict=False),
            },
        )
        self.held.update(answers.ok)
        self._say_what_was_taken_over(answers.ok)
        return self._outcome(queue, answers)

    def _wanted(self, queue: Any, play: Any) -> list[str]:
        """The nodes to hold: of the site, not roots of images that are being built, and answering until now."""
        listed = isinstance(play._ds, dict) and play._ds.get("roles")
        if not listed and not holds_hosts(play):
            return []
        away = self.held | self._failed | set(queue._unreachable_hosts) | set(queue._failed_hosts)
        return [
            host.get_name()
            for host in queue._inventory.get_hosts(play.hosts, order=play.order)
            if host.get_name() not in away and "hal_node" in host.get_vars() and "hal_image_root" not in host.get_vars()
        ]

    def _begin(self, host: str) -> None:
        """Find out who we are, note it, and end what killed rollouts have left here."""
        if self._note is not None:
            return
        here, self._process = Here.look(), os.getpid()
        self.id = Run.begin("", time.time()).id
        self._holder = {
            "run": self.id,
            "user": os.environ.get("SUDO_USER") or getpass.getuser(),
            **vars(here),
            "pid": os.getpid(),
            "start": started(os.getpid()),
            "since": round(time.time(), 3),
            "command": command_line(sys.argv),
        }
        folder = self._folder(host)
        try:
            for line in notes.clear_away(folder, here):
                Display().display(line)
            self._note = notes.Note.begin(folder, self._holder)
        except OSError as error:
            raise AnsibleError(f"{folder}: a rollout notes its processes here: {error.strerror}") from error

    def _folder(self, host: str) -> Path:
        """`rollouts` in the site's state folder."""
        manager, loader = self._play._variable_manager, self._play._loader
        variables = manager.get_vars(host=manager._inventory.get_host(host))
        state = Templar(loader=loader, variables=variables).template(variables.get("hal_state_dir"))
        if not state:
            raise AnsibleError("hal_state_dir is not set: a rollout notes its processes there")
        return Path(str(state)) / "rollouts"

    def _ask(self, names: Iterable[str], arguments: Mapping[str, Any]) -> Answers:
        answers = Answers()
        play = self._play
        login = {key: getattr(play, key, None) for key in LOGIN}
        keywords = {key: value for key, value in login.items() if value is not None}
        title = HOLD if arguments["state"] == "held" else LET_GO
        task = {"name": title, "hal_rollout": dict(arguments)}
        play_aside(list(names), task, play, self._passwords, answers, vars=dict(play.vars), **keywords)
        return answers

    def _say_what_was_taken_over(self, answered: Mapping[str, Any]) -> None:
        said: dict[str, set[str]] = {}
        for name, result in answered.items():
            if result._result.get("taken_over"):
                said.setdefault(str(result._result["taken_over"]), set()).add(name)
        for words, hosts in sorted(said.items()):
            Display().display(f"{folded(hosts)}: {words}")

    def _outcome(self, queue: Any, answers: Answers) -> bool:
        """Tell Ansible who failed, as if a task had failed. A node that another rollout holds ends the run for all."""
        for name, result in answers.unreachable.items():
            queue._unreachable_hosts[name] = True
            queue._stats.increment("dark", name)
            queue.send_callback("v2_runner_on_unreachable", result)
        reasons: dict[tuple[bool, str], set[str]] = {}
        for name, result in answers.failed.items():
            self._failed.add(name)
            queue._failed_hosts[name] = True
            queue._stats.increment("failures", name)
            for callback in queue._callback_plugins:  # people get one line for all nodes, below
                if hasattr(callback, "v2_runner_on_failed"):
                    callback.v2_runner_on_failed(result)
            said = result._result
            words = str(said.get("msg") or "it cannot be told who rolls it out")
            reasons.setdefault((bool(said.get("refused")), one_line(words)), set()).add(name)
        refused = any(by_another for by_another, _words in reasons)
        for (by_another, words), hosts in sorted(reasons.items()):
            end = "" if not by_another or len(self.held) > len(answers.ok) else ". Nothing was changed"
            Display().error(f"{folded(hosts)}: {words}{end}", wrap_text=False)
        if refused:
            left = {host.get_name() for host in queue._inventory.get_hosts(self._play.hosts)} - set(answers.unreachable)
            queue._failed_hosts.update(dict.fromkeys(left, True))
        return not refused

    # --- while it runs, and at its end

    def lost(self, name: str) -> None:
        """A node does not answer any more."""
        self._lost.add(name)

    def let_go(self, names: Iterable[str]) -> None:
        """These nodes were told that the rollout is over."""
        self.held.difference_update(names)

    def end(self) -> None:
        """Let go of what is still held, name the nodes that stay held, and take back the note."""
        names = sorted(self.held - self._lost)
        if names:
            try:
                self.let_go(self._ask(names, {"state": "released", "run": self.id}).ok)
            except AnsibleError as error:
                Display().warning(one_line(str(error)), formatted=True)
        self.warn()
        self.held.clear()
        self._failed.clear()
        if self._note is not None:
            self._note.end()
            self._note = None

    def warn(self) -> None:
        """Name the nodes that this run leaves held."""
        if self.held and os.getpid() == self._process:
            Display().warning(
                f"{folded(self.held)}: still held by this rollout, which could not let go. The next rollout from this"
                " controller takes over",
                formatted=True,
            )


CURRENT = Rollout()


def holds_hosts(play: Any) -> bool:
    """Tell whether a play that lists no roles holds its hosts all the same."""
    value = play.vars.get(PLAY_HOLDS, False)
    return bool(value == EVERY_HOST or boolean(value, strict=False))


def stand_before_plays(rollout: Rollout, *, holds: bool = True) -> None:
    """From now on ask `rollout` before Ansible runs a play: only there can a run be refused or a host left out.

    In check mode (`holds` is false) nothing is held, but hosts are left out all the same.
    """
    run = TaskQueueManager.run
    if hasattr(run, "__wrapped__"):
        return

    @functools.wraps(run)
    def run_held(self: Any, play: Any) -> Any:
        if isinstance(play, AsidePlay):
            return run(self, play)
        if play.vars.get(PLAY_HOLDS) != EVERY_HOST and not managing.CURRENT.narrow(self, play, holds=holds_hosts(play)):
            return so_far(self)
        if holds and not rollout.before(self, play):
            return self.RUN_FAILED_BREAK_PLAY
        return run(self, play)

    TaskQueueManager.run = run_held


def so_far(queue: Any) -> int:
    """Return how the run has gone, for a play that is not run: Ansible ends with the result of the last play."""
    if queue._unreachable_hosts:
        return int(queue.RUN_UNREACHABLE_HOSTS)
    return int(queue.RUN_FAILED_HOSTS if queue._failed_hosts else queue.RUN_OK)
