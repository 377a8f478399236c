"""Package and service tasks mean the same on CentOS 7 and on what comes after it."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import yaml

from tests.contract.project import Finding, Map, Task, all_tasks, playbooks, plays, rule

# Only one of the two package managers, or found out by gathering facts.
INSTEAD = {
    "yum": "ansible.builtin.package",
    "dnf": "ansible.builtin.package",
    "dnf5": "ansible.builtin.package",
    "apt": "ansible.builtin.package",
    "service": "ansible.builtin.systemd_service",
    "systemd": "ansible.builtin.systemd_service",
    "sysvinit": "ansible.builtin.systemd_service",
}
# systemd 219, and a system manager only.
UNIT_ARGUMENTS = frozenset({"name", "state", "enabled", "masked", "daemon_reload", "daemon_reexec", "no_block"})


@functools.cache
def shared_arguments() -> frozenset[str]:
    """What both of Ansible's modules yum and dnf document, aliases included."""
    both = []
    for name in ("yum", "dnf"):
        options = yaml.safe_load(import_module(f"ansible.modules.{name}").DOCUMENTATION)["options"]
        both.append({word for key, option in options.items() for word in (key, *option.get("aliases", []))})
    return frozenset(both[0] & both[1]) | {"use"}


def _arguments(root: Path, module: str) -> Iterator[tuple[Path, int, str]]:
    """Path, line and name of each argument that the module gets: from a task, in either form, or by module_defaults."""
    for task in all_tasks(root):
        if task.short == module:
            yield from _of_task(task)
        yield from _defaults(task.path, task.body, module)
    for path in playbooks(root):
        for play in plays(path):
            yield from _defaults(path, play, module)


def _of_task(task: Task) -> Iterator[tuple[Path, int, str]]:
    if isinstance(task.arguments, Map):
        for name in task.arguments:
            yield task.path, task.arguments.at(name), name
    elif isinstance(task.arguments, str):
        for name in re.findall(r"(?:^|\s)(\w+)=", task.arguments):
            yield task.path, task.body.at(task.module), name
    more = task.body.get("args")
    if isinstance(more, Map):
        for name in more:
            yield task.path, more.at(name), name


def _defaults(path: Path, body: Map, module: str) -> Iterator[tuple[Path, int, str]]:
    for name, arguments in (body.get("module_defaults") or {}).items():
        if name.rpartition(".")[2] == module and isinstance(arguments, Map):
            for argument in arguments:
                yield path, arguments.at(argument), argument


@rule
def package_tasks_fit_both_managers(root: Path) -> Iterator[Finding]:
    """Packages come through ansible.builtin.package with arguments that yum and dnf share."""
    for path, line, name in _arguments(root, "package"):
        if name not in shared_arguments():
            yield Finding(path, line, f"{name} is not an argument of both yum and dnf; do without it")


@rule
def unit_tasks_fit_systemd(root: Path) -> Iterator[Finding]:
    """Units are handled by ansible.builtin.systemd_service with arguments that systemd 219 has a meaning for."""
    for path, line, name in _arguments(root, "systemd_service"):
        if name not in UNIT_ARGUMENTS:
            yield Finding(path, line, f"{name}; use only {', '.join(sorted(UNIT_ARGUMENTS))}")


@rule
def managers_are_not_named(root: Path) -> Iterator[Finding]:
    """Roles do not choose the package or service manager; the site does."""
    for task in all_tasks(root):
        if task.module.startswith("ansible.builtin.") and task.short in INSTEAD:
            yield task.finding(f"{task.short} is one manager only; use {INSTEAD[task.short]}", task.module)
        elif task.short.startswith("dnf_") or task.short == "copr":
            yield task.finding(f"{task.short} needs dnf, which CentOS 7 does not have", task.module)
