"""Read Ansible's plays and tasks: who owns what, all tasks of a role, and which handler restarts which unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.playbook.block import Block

from hal_cluster.audit import inputs
from hal_cluster.audit.recording import LoadedRole, Owner
from hal_cluster.audit.resources import COMMANDS, MANAGING, UNITS, Resource, module_name, units_of
from hal_cluster.audit.resources.model import PRESENT

DYNAMIC = frozenset({"ansible.builtin.include_tasks", "ansible.builtin.include_role"})
# A template that a text looks up.
LOOKED_UP = re.compile(r"""lookup\(\s*['"](?:ansible\.builtin\.)?template['"],\s*['"]([^'"]+)['"]""")
# Keys of a task that do not get into what it writes.
NO_CONTENT = frozenset({"name", "when", "changed_when", "failed_when", "until", "notify", "tags"})
NO_RESULT = DYNAMIC | {"ansible.builtin.meta"}


@dataclass(frozen=True)
class Known:
    """What is known of a task before it runs."""

    owner: Owner
    folder: str
    module: str
    looped: bool
    handler: bool
    manages: Any
    loop: Any
    # As written: what is templated no longer shows where it came from.
    written: Any
    variables: dict[str, Any]
    conditions: tuple[str, ...]

    @property
    def records(self) -> bool:
        """True when a call of it can own something or make a unit read its files."""
        return self.manages is not None or self.module in MANAGING or self.module in UNITS


def known(task: Any, base: str) -> Known | None:
    """Return what there is to know of a task of a role; None for one that is in no role."""
    role = task._role
    if role is None:
        return None
    name, folder = role.get_name(), role.get_role_path()
    path, _, line = task.get_path().rpartition(":")
    place = relative(path, base)
    words = getattr(task, "_ds", None)
    words = words if isinstance(words, dict) else {}
    title = words.get("name") or task.name or task.action
    variables = task.vars if isinstance(task.vars, dict) else {}
    return Known(
        owner=Owner(name, f"{name}|{place}|{title}", f"{place}:{line}"),
        folder=folder,
        module=module_name(task.resolved_action or task.action),
        looped=task.loop is not None or bool(task.loop_with),
        handler=is_handler(task),
        manages=variables.get("hal_manages"),
        loop=words.get("loop", task.loop),
        written=[value for key, value in words.items() if key not in NO_CONTENT],
        variables=task.get_vars(),
        conditions=tuple(str(condition) for condition in task.when or []),
    )


def template_text(known_task: Known, arguments: Any, loader: Any) -> str:
    """Return what the templates of a task evaluate, those that it looks up included: a secret may be only there."""
    source = arguments.get("src")
    names = [source] if known_task.module == "ansible.builtin.template" and isinstance(source, str) else []
    names += LOOKED_UP.findall("\n".join(inputs.strings(known_task.written)))
    return "\n".join(_expressions(known_task, name, loader) for name in names)


def _expressions(known_task: Known, name: str, loader: Any) -> str:
    try:
        path = loader.path_dwim_relative_stack([known_task.folder], "templates", name)
    except AnsibleError:
        return ""
    return inputs.expressions(Path(path))


def said(entry: Any) -> Resource:
    """A resource of hal_manages: {resource, declared}, or its name alone for one that shall be there."""
    if isinstance(entry, dict):
        return Resource(str(entry["resource"]), dict(entry.get("declared") or {}))
    return Resource(str(entry), PRESENT)


def is_handler(task: Any) -> bool:
    """True for a handler: it acts on what tasks own."""
    return hasattr(task, "notified_hosts")


def only_looks(known_task: Known, task: Any) -> bool:
    """True for a command that says it changes nothing."""
    return known_task.module in COMMANDS and [str(word) for word in task.changed_when or []] == ["False"]


def relative(path: str, base: str) -> str:
    """A path below `base` as an administrator would type it there."""
    try:
        return str(Path(path).relative_to(base))
    except ValueError:
        return path


def loaded_roles(play: Any, base: str) -> dict[str, LoadedRole]:
    """Return the roles of a play that are loaded as a whole, by name, with the ids of all their tasks.

    A role of which one file is called (tasks_from) says nothing about its other tasks.
    """
    roles: dict[str, LoadedRole] = {}
    for listed in play.roles:
        for role in [*listed.get_all_dependencies(), listed]:
            if role._from_files.get("tasks"):
                continue
            tasks = [task for block in role._task_blocks for task in tasks_of(block)]
            ids = {
                known_task.owner.task for known_task in (known(task, base) for task in tasks) if known_task is not None
            }
            if any(module_name(task.action) in DYNAMIC for task in tasks):
                ids.update(_ids_in_files(role, base))
            whole = not context.CLIARGS.get("start_at_task") and all(_wanted(task, play) for task in tasks)
            needed = _needed(role, base)
            roles[role.get_name()] = LoadedRole(role.get_role_path(), tuple(sorted(ids)), whole, needed)
    return roles


def _needed(role: Any, base: str) -> frozenset[str]:
    """Ids of the tasks that give a result on every host. Tasks of a rescue do so only if something fails."""
    ids: set[str] = set()
    for task in (task for block in role._task_blocks for task in tasks_of(block, rescue=False)):
        elsewhere = task.delegate_to or task.run_once or task.check_mode
        if task._role is role and not elsewhere and module_name(task.action) not in NO_RESULT:
            known_task = known(task, base)
            ids.update({known_task.owner.task} if known_task else ())
    return frozenset(ids)


def rescue_of(task: Any, base: str) -> tuple[set[str], set[str]] | None:
    """Return (ids of the tasks that are left out when this one fails, ids of their rescue); None without one."""
    inner, outer = task, task._parent
    while outer is not None:
        if isinstance(outer, Block) and outer.rescue and _is_in(inner, outer.block):
            return _ids(outer.block, base), _ids(outer.rescue, base)
        inner, outer = outer, outer._parent
    return None


def _is_in(task: Any, tasks: Any) -> bool:
    return any(task._uuid == other._uuid for other in tasks)


def _ids(blocks: Any, base: str) -> set[str]:
    ids = set()
    for task in (task for part in blocks for task in ([part] if not isinstance(part, Block) else tasks_of(part))):
        known_task = known(task, base)
        if known_task is not None and module_name(task.action) not in NO_RESULT:
            ids.add(known_task.owner.task)
    return ids


def _wanted(task: Any, play: Any) -> bool:
    """True when --tags and --skip-tags let a task run."""
    return bool(task.evaluate_tags(play.only_tags, play.skip_tags, all_vars={}))


def tasks_of(block: Any, *, rescue: bool = True) -> Iterator[Any]:
    """Every task of a block, those of inner blocks included; without a rescue if nothing is to fail."""
    for part in (block.block, block.rescue if rescue else [], block.always):
        for inner in part:
            if isinstance(inner, Block):
                yield from tasks_of(inner, rescue=rescue)
            else:
                yield inner


def _ids_in_files(role: Any, base: str) -> Iterator[str]:
    """Ids of all tasks in the role's files: an include decides while running which of them are used."""
    for path in sorted(Path(role.get_role_path(), "tasks").rglob("*.yml")):
        try:
            data = role._loader.load_from_file(str(path))
        except AnsibleError:
            continue
        for name in _names(data):
            yield f"{role.get_name()}|{relative(str(path), base)}|{name}"


def _names(data: Any) -> Iterator[str]:
    for entry in data if isinstance(data, list) else []:
        if isinstance(entry, dict):
            if entry.get("name"):
                yield str(entry["name"])
            for part in ("block", "rescue", "always"):
                yield from _names(entry.get(part))


def handler_units(play: Any, templar: Any) -> dict[str, set[str]]:
    """Return the name (or what it listens to) of each handler -> units that it restarts or reloads.

    Handlers whose unit cannot be told before they run are left out.
    """
    handlers: dict[str, set[str]] = {}
    for block in play.handlers:
        for task in tasks_of(block):
            module = module_name(task.resolved_action or task.action)
            if module not in UNITS:
                continue
            try:
                units = units_of(module, templar.template(dict(task.args)), {}).effective
            except AnsibleError:
                continue
            listens = task.listen if isinstance(task.listen, list) else [task.listen] if task.listen else []
            for name in {task.name, task.get_name(), task.get_name(include_role_fqcn=False), *listens} - {"", None}:
                handlers.setdefault(str(name), set()).update(units)
    return handlers
