"""A daemon that runs is told when a file that it reads has changed, before the role proves itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.contract import declared
from tests.contract.declared import Resource
from tests.contract.project import Finding, Task, load, load_map, role_tasks, roles, rule, strings, tasks_in
from tests.contract.rules import places, selinux

# Modules that restart or reload, or ask a program to.
TELLING = frozenset({"systemd_service", "command", "hal_command", "hal_slurm_daemon", "hal_network"})
# systemd itself: it reads units when it is told to.
INIT = "init_t"
TOLD = ("restarted", "reloaded")


@rule
def daemons_are_told(root: Path) -> Iterator[Finding]:
    """The task that writes what a running daemon reads notifies a handler of that daemon, or a later task asks it.

    Where nobody has to be told, the table of readers or the task's line says why.
    """
    resources = declared.of_project(root).resources
    started = {one.key for one in resources if one.kind == "service" and one.declared.get("state") == "started"}
    running = started | {unit for unit, entry in selinux.table()["units"].items() if entry.get("runs")}
    roles_ = {role.name: _Role(root, role) for role in roles(root)}
    for one in resources:
        path = one.key.partition("#")[0]
        row = selinux.row(path) if one.kind in selinux.IN_FILES else None
        if not row or row.get("anew") or one.declared.get("type") in ("directory", "link"):
            continue
        systemd = {INIT} if path.startswith(places.UNIT_FOLDERS) else set()
        for unit in sorted((systemd | running).intersection(row["readers"])):
            if not roles_[one.role].tells(one, unit):
                what = "systemd" if unit == INIT else unit
                how = "reads units again" if unit == INIT else "restarts or reloads it"
                yield one.finding(f"{what} reads {path} and is not told: notify a handler that {how}")


@rule
def handlers_are_there_and_used(root: Path) -> Iterator[Finding]:
    """Each notified name is a handler's of the role, each handler is notified, and they run before the proof."""
    for role in roles(root):
        one = _Role(root, role)
        notified = {name for task in one.tasks for name in _names(task, "notify")}
        for task in one.tasks:
            for name in _names(task, "notify"):
                if name not in one.topics:
                    yield task.finding(f"no handler of the role is called {name}", "notify")
        for handler in one.handlers:
            names = {str(handler.body.get("name")), *_names(handler, "listen")}
            arguments = handler.arguments if handler.short == "systemd_service" else None
            if arguments and arguments.get("state") not in TOLD and not arguments.get("daemon_reload"):
                yield handler.finding("a handler that tells its unit nothing; restarted, reloaded or daemon_reload")
            if not names & notified:
                yield handler.finding("nobody notifies this handler; notify it, or take it away")
        proof = [task for task in one.tasks if task.path.name == "main.yml" and "verify.yml" in str(task.arguments)]
        flushed = any(task.short == "meta" and "flush_handlers" in str(task.arguments) for task in one.tasks)
        if one.handlers and proof and not flushed:
            yield proof[-1].finding("handlers run at the end of the play, after this; meta: flush_handlers before it")


class _Role:
    """The tasks and handlers of a role, and which of them tell whom."""

    def __init__(self, root: Path, role: Path) -> None:
        self.root, self.name = root, role.name
        self.tasks = list(role_tasks(role))
        self.handlers = [task for path in role.glob("handlers/*.yml") for task in tasks_in(path, load(path))]
        self.variables: Mapping[str, Any] = {**load_map(role / "defaults/main.yml"), **load_map(role / "vars/main.yml")}
        self.topics: dict[str, list[Task]] = {}
        for handler in self.handlers:
            for name in (str(handler.body.get("name")), *_names(handler, "listen")):
                self.topics.setdefault(name, []).append(handler)

    def tells(self, one: Resource, unit: str) -> bool:
        """Whether the task that manages a resource has the unit told of a change."""
        task = next((task for task in self.tasks if (task.path, task.line) == (one.path, one.line)), None)
        if task is None:
            return False
        notified = [handler for name in _names(task, "notify") for handler in self.topics.get(name, [])]
        if any(self._tells(handler, unit) for handler in notified):
            return True
        result = task.body.get("register")
        after = [other for other in self.tasks if other is not task and other.short in TELLING]
        return any(result and result in "\n".join(strings(other.body)) and self._tells(other, unit) for other in after)

    def _tells(self, task: Task, unit: str) -> bool:
        arguments = task.arguments if isinstance(task.arguments, Mapping) else {}
        if unit == INIT:
            return arguments.get("daemon_reload", False) is not False
        return _tells_at_all(task) and unit.partition(".")[0] in self._text(arguments)

    def _text(self, value: Any) -> str:
        """Every string inside, with those of the role's variables that it names."""
        text = "\n".join(strings(value))
        return text + "\n".join(str(given) for name, given in self.variables.items() if name in text)


def _tells_at_all(task: Task) -> bool:
    if task.short != "systemd_service":
        return task.short in TELLING
    state = str(task.arguments.get("state"))
    return any(word in state for word in TOLD) or "daemon_reload" in task.arguments


def _names(task: Task, key: str) -> list[str]:
    value = task.keyword(key) or []
    return [value] if isinstance(value, str) else [str(one) for one in value]
